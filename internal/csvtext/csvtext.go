// Package csvtext opens CSV files that were written by other programs.
package csvtext

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// foreign lists the first bytes of files that are not plain UTF-8 text, with advice for each kind of file.
var foreign = []struct{ start, hint string }{
	{"\x1f\x8b", "it is compressed with gzip; decompress it first (gunzip)"},
	{"\x28\xb5\x2f\xfd", "it is compressed with zstd; decompress it first (unzstd)"},
	{"\xfd7zXZ\x00", "it is compressed with xz; decompress it first (unxz)"},
	{"PK\x03\x04", "it is a zip archive or a workbook; save it as CSV"},
	{"\xff\xfe", "it is UTF-16; save it as UTF-8"},
	{"\xfe\xff", "it is UTF-16; save it as UTF-8"},
}

// byteOrderMark is the byte sequence at the beginning of files that spreadsheet programs save as "CSV UTF-8".
const byteOrderMark = "\xef\xbb\xbf"

// Open returns a reader for the text in r without its byte order mark. It returns an error for compressed files,
// workbooks and other encodings.
func Open(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	start, _ := in.Peek(8) // a shorter file is compared up to its end
	for _, f := range foreign {
		if bytes.HasPrefix(start, []byte(f.start)) {
			return nil, errors.New(f.hint)
		}
	}
	if bytes.HasPrefix(start, []byte(byteOrderMark)) {
		_, _ = in.Discard(len(byteOrderMark)) // the bytes were peeked above
	}
	return in, nil
}

// CheckSeparator returns an error if the first line of a file uses semicolons or tabs as column separators.
func CheckSeparator(line string) error {
	if strings.Contains(line, ",") {
		return nil
	}
	for _, s := range []struct{ mark, name string }{{";", "semicolons"}, {"\t", "tabs"}} {
		if strings.Contains(line, s.mark) {
			return fmt.Errorf("columns are separated by %s; save the file with commas", s.name)
		}
	}
	return nil
}
