package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// partialSuffix is appended to the name of a file that is being recorded. It is removed when the file is complete.
const partialSuffix = ".partial"

// PayloadSuffix is appended to the name of a trace to form the name of its payload file.
const PayloadSuffix = ".grad"

// File is a trace that is being written to disk. Until Close, its name is path+".partial", it is readable up to the
// last Flush, and an existing file at path is not changed.
type File struct {
	*Writer
	path string
	out  *os.File
	grad *os.File
	pay  *bufio.Writer
}

// CreateFile starts a trace at path, with a payload file if the header requires one. If a partial file already exists,
// CreateFile does not change it, because another recording may be writing to it, and returns an error that matches
// fs.ErrExist.
func CreateFile(path string, h Header) (*File, error) {
	out, err := createPart(path + partialSuffix)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, out: out}
	if f.Writer, err = NewWriter(out, h); err != nil {
		return nil, errors.Join(err, out.Close(), os.Remove(out.Name()))
	}
	if !h.Payload {
		return f, nil
	}
	if f.grad, err = createPart(path + PayloadSuffix + partialSuffix); err != nil {
		return nil, errors.Join(err, out.Close(), os.Remove(out.Name()))
	}
	f.pay = bufio.NewWriterSize(f.grad, 1<<16)
	return f, nil
}

// createPart creates a file, which must not exist yet.
func createPart(name string) (*os.File, error) {
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %s belongs to a recording that is running or was killed; choose another name, "+
			"or convert it to a trace and remove it", fs.ErrExist, name)
	}
	return out, err
}

// Append writes an update and, if there is a payload file, its gradients. gradients is not retained.
func (f *File) Append(u *Update, gradients []float32) error {
	if f.pay != nil {
		if len(gradients) != f.header.Lanes {
			return fmt.Errorf("%w: %d gradients for %d lanes", ErrPayload, len(gradients), f.header.Lanes)
		}
		if err := writeGradients(f.pay, gradients); err != nil {
			return err
		}
	}
	return f.Write(u)
}

// Flush makes all appended updates readable. It writes the gradients first.
func (f *File) Flush() error {
	if f.pay != nil {
		if err := f.pay.Flush(); err != nil {
			return err
		}
	}
	return f.Writer.Flush()
}

// Close completes the trace and renames it to its final path.
func (f *File) Close() error {
	err := errors.Join(f.Flush(), f.Writer.Close(), f.out.Sync(), f.out.Close())
	if f.grad != nil {
		err = errors.Join(err, f.grad.Close())
	}
	if err != nil {
		return err
	}
	if f.grad != nil {
		if err := os.Rename(f.grad.Name(), f.path+PayloadSuffix); err != nil {
			return err
		}
	}
	return os.Rename(f.out.Name(), f.path)
}

// Open opens the trace at path. If path has the prefix Builtin, it opens an embedded trace.
func Open(path string) (*Reader, io.Closer, error) {
	in, err := openTrace(path)
	if err != nil {
		return nil, nil, err
	}
	r, err := newReader(in)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), in.Close())
	}
	return r, in, nil
}
