package trace

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// Builtin is the prefix of the names of embedded traces, such as builtin:lander8.
const Builtin = "builtin:"

// builtin contains recordings of real training runs. docs/reference/trace-format.md describes how they were made.
//
//go:embed builtin/*.trace
var builtin embed.FS

// openTrace opens a trace from a file or an embedded trace.
func openTrace(path string) (io.ReadCloser, error) {
	name, ok := strings.CutPrefix(path, Builtin)
	if !ok {
		return openFile(path)
	}
	data, err := builtin.ReadFile("builtin/" + name + ".trace")
	if err != nil {
		return nil, fmt.Errorf("%w: no embedded trace is called %q; there is %slander8", fs.ErrNotExist, name, Builtin)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// openFile opens a file. It rejects a folder, because reading from a folder would be reported as a damaged trace.
func openFile(path string) (io.ReadCloser, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	about, err := in.Stat()
	if err == nil && about.IsDir() {
		err = &os.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}
