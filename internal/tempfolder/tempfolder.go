// Package tempfolder makes folders that last as long as the process: one that was killed leaves its folder behind, and the
// next one sweeps it away.
package tempfolder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/olafctl/olaf/internal/lockfile"
)

const (
	prefix   = "olafctl-tmp-"
	lockName = "lock" // held by whoever made the folder
)

// Make makes a folder that only this user can enter, until remove is called.
func Make() (path string, remove func() error, err error) {
	sweep(os.TempDir())
	for {
		if path, err = os.MkdirTemp("", prefix); err != nil {
			return "", nil, err
		}
		lock, err := lockfile.Take(filepath.Join(path, lockName), 0o600)
		switch {
		case err == nil && holds(path, lock):
			return path, func() error { return errors.Join(os.RemoveAll(path), lock.Close()) }, nil
		case err == nil:
			lock.Close()
		case !errors.Is(err, lockfile.ErrHeld) && !errors.Is(err, fs.ErrNotExist):
			return "", nil, errors.Join(err, os.Remove(path))
		} // a sweep came before the lock
	}
}

// holds says whether the folder still is there, with the file that was locked.
func holds(path string, lock *os.File) bool {
	named, errNamed := os.Stat(filepath.Join(path, lockName))
	held, errHeld := lock.Stat()
	return errNamed == nil && errHeld == nil && os.SameFile(named, held)
}

// sweep removes the folders of processes that ended without doing so. What it can't remove is somebody else's, or stays for
// the next one.
func sweep(parent string) {
	if !lockfile.Works {
		return
	}
	folders, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // the pattern is right
	for _, folder := range folders {
		if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
			continue
		}
		lock, err := lockfile.Open(filepath.Join(folder, lockName), os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(folder) // if it is empty; who is about to lock it makes another one
		}
		if err != nil {
			continue
		}
		if lockfile.Lock(lock, true) == nil {
			_ = os.RemoveAll(folder)
		}
		lock.Close()
	}
}
