// Package lockfile holds files locked against other processes. The kernel lets go of a lock when its process ends in
// whatever way, so that none is left behind. Where files can't be locked, everybody gets every lock.
package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrHeld says that another process holds the lock.
var ErrHeld = errors.New("locked")

// Open is os.OpenFile of a file in a folder that others may write to: a symbolic link is refused, as it may have been laid by
// somebody else.
func Open(path string, flags int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flags|noFollow, mode)
	if errors.Is(err, syscall.ELOOP) {
		err = &fs.PathError{Op: "open", Path: path, Err: errLink}
	}
	return f, err
}

var errLink = errors.New("a symbolic link, which is not followed; remove it, or name another place")

// Take makes the file where it is missing and holds it until it is closed. The file stays: whoever removed it could take it
// from under a third process. A symbolic link is refused. The error matches ErrHeld or is of the file.
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

// Held says whether another process, or another Take of this one, holds the lock.
func Held(path string) bool {
	f, err := Open(path, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return Lock(f, true) != nil
}
