package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/olafctl/olaf/internal/lockfile"
)

// fileSystem is the file system in which a journal is stored. Tests replace it with one that fails.
type fileSystem interface {
	// ReadFile works like os.ReadFile.
	ReadFile(path string) ([]byte, error)
	// Open opens an existing file for writing. Create creates or truncates a file and refuses a symbolic link, which
	// another user may have placed in a shared folder.
	Open(path string) (writable, error)
	Create(path string) (writable, error)
	Rename(from, to string) error
	// SyncFolder makes a rename in the folder that contains path durable.
	SyncFolder(path string) error
}

// writable is a file that is open for writing.
type writable interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// disk implements fileSystem with the operating system's file system.
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

// resolvePlace returns the path of a journal with symbolic links resolved, because the journal's lock and its other
// files are named after it. It checks all these files before any of them is opened, because opening a pipe blocks and
// reading a device may never end.
func resolvePlace(path string) (string, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", fmt.Errorf("%s is a dangling symbolic link (%w); name the file itself", path, err)
		}
		path = target
	}
	for _, beside := range []string{"", ".lock", ".ack", ".new", ".ack.new"} {
		if err := rejectSpecial(path + beside); err != nil {
			return "", err
		}
	}
	return path, nil
}

// rejectSpecial rejects existing paths that are not regular files with exactly one hard link.
func rejectSpecial(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link, which is not followed; remove it, or replace it with the file itself",
			path)
	case info.IsDir():
		return fmt.Errorf("%s is a directory; name a file", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is a device, pipe or socket; name a regular file", path)
	case lockfile.Names(info) > 1:
		return fmt.Errorf("%s has %d hard links, so another agent could write it under another name; make a separate "+
			"copy: cp %s COPY && mv COPY %s", path, lockfile.Names(info), path, path)
	}
	return nil
}

// replaceFile writes b to a temporary file, syncs it and renames it to path. If it fails, the file at path contains
// either its old content or all of b.
func replaceFile(fs fileSystem, path string, b []byte) error {
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
