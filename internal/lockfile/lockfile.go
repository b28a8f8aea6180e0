// Package lockfile locks files against other processes. The kernel releases a lock when its process ends, so none
// is left behind. On systems without file locks every lock is granted.
package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrHeld reports that another process has the lock.
var ErrHeld = errors.New("locked")

// Open is os.OpenFile for a file in a folder that others may write to. It rejects a symbolic link, which another
// user may have planted.
func Open(path string, flags int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flags|noFollow, mode)
	if errors.Is(err, syscall.ELOOP) {
		err = &fs.PathError{Op: "open", Path: path, Err: errLink}
	}
	return f, err
}

var errLink = errors.New("a symbolic link, which is not followed; remove it, or name another place")

// Take creates the file if it is missing and locks it until it is closed. The file is never removed, because removal
// could take it from a third process. A symbolic link is rejected. The error matches ErrHeld or comes from the file.
func Take(path string, mode fs.FileMode) (*os.File, error) {
	f, err := Open(path, os.O_WRONLY|os.O_CREATE, mode)
	if err != nil {
		return nil, err
	}
	if err := Lock(f, true); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// IsHeld reports whether another process, or another Take in this one, has the lock.
func IsHeld(path string) bool {
	f, err := Open(path, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return Lock(f, true) != nil
}
