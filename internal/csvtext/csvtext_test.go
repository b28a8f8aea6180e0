package csvtext

import (
	"io"
	"strings"
	"testing"
)

func TestOpenDropsTheByteOrderMark(t *testing.T) {
	for _, text := range []string{"", "a", "a,b\n1,2\n"} {
		in, err := Open(strings.NewReader("\ufeff" + text))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(in); string(got) != text {
			t.Errorf("a byte order mark and %q are read as %q", text, got)
		}
	}
}

func TestOpenNamesFilesThatAreNotText(t *testing.T) {
	for start, want := range map[string]string{
		"\x1f\x8b\x08": "gzip", "\x28\xb5\x2f\xfd": "zstd", "\xfd7zXZ\x00": "xz", "PK\x03\x04": "workbook", "\xff\xfea\x00": "UTF-16",
	} {
		if _, err := Open(strings.NewReader(start)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a file that starts with %q gives %v, but the error should name %s", start, err, want)
		}
	}
}

func TestCheckSeparatorNamesSemicolonsAndTabs(t *testing.T) {
	for line, want := range map[string]string{"a;b": "semicolons", "a\tb": "tabs", "a;b,c": "", "a": "", "": ""} {
		err := CheckSeparator(line)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("line %q gives %v, want an error about %q", line, err, want)
		}
	}
}
