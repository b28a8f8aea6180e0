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

// Builtin in front of a name means an embedded trace: builtin:lander8.
const Builtin = "builtin:"

// builtin holds real recordings; docs/reference/trace-format.md says how they were made.
//
//go:embed builtin/*.trace
var builtin embed.FS

// open finds a trace on disk or among the embedded ones.
func open(path string) (io.ReadCloser, error) {
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

// openFile refuses a folder here, where a read from it would be called a damaged trace.
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
