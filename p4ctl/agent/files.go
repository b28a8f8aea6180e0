package agent

import (
	"io"
	"os"
	"path/filepath"

	"github.com/olafctl/olaf/internal/lockfile"
)

// fileSystem is where a journal lives. Tests put one in its place that fails.
type fileSystem interface {
	// ReadFile is os.ReadFile.
	ReadFile(path string) ([]byte, error)
	// Open opens an existing file for writing; Create makes a new one, or empties the one that is there, and refuses a
	// symbolic link, which somebody else may have laid in a shared folder.
	Open(path string) (writable, error)
	Create(path string) (writable, error)
	Rename(from, to string) error
	// SyncFolder makes a rename in the folder of path durable.
	SyncFolder(path string) error
}

// writable is one open file.
type writable interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// disk is the operating system's.
type disk struct{}

func (disk) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

func (disk) Open(path string) (writable, error) { return os.OpenFile(path, os.O_WRONLY, 0) }

func (disk) Create(path string) (writable, error) {
	return lockfile.Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

func (disk) Rename(from, to string) error { return os.Rename(from, to) }

func (disk) SyncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// writeWhole puts a new file in place of path: written beside it, synced, renamed. Whatever fails, path holds either what
// it held or all of b.
func writeWhole(fs fileSystem, path string, b []byte) error {
	beside := path + ".new"
	if err := writeSynced(fs, beside, b); err != nil {
		return err
	}
	if err := fs.Rename(beside, path); err != nil {
		return err
	}
	return fs.SyncFolder(path)
}

func writeSynced(fs fileSystem, path string, b []byte) error {
	f, err := fs.Create(path)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	if again := f.Close(); err == nil {
		err = again
	}
	return err
}
