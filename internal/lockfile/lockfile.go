// Package lockfile locks files against other processes. The kernel releases a lock when its process ends, so no stale
// locks remain. On operating systems without file locks, every lock is granted.
package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrHeld is returned if another process has the lock.
var ErrHeld = errors.New("locked")

// Open is like os.OpenFile for a file in a folder to which others may write. It rejects a symbolic link, because
// another user may have created it.
func Open(path string, flags int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flags|noFollow, mode)
	if errors.Is(err, syscall.ELOOP) {
		err = &fs.PathError{Op: "open", Path: path, Err: errLink}
	}
	return f, err
}

var errLink = errors.New("a symbolic link, which is not followed; remove it, or name another place")

// Take locks a file until it is closed, and creates the file if it is missing. Take rejects a symbolic link. The error
// matches ErrHeld or comes from opening the file.
//
// The file must never be removed, because a third process might then lose its lock.
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

// IsHeld reports whether the file is locked by another process or by another Take in this process.
func IsHeld(path string) bool {
	f, err := Open(path, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return Lock(f, true) != nil
}
