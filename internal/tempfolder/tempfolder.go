// Package tempfolder creates folders that exist as long as the process. If a process is killed, the next process
// removes its folder.
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
	lockName = "lock" // locked by the process that created the folder
)

// MakeFolder creates a folder that only this user can enter. remove removes it.
func MakeFolder() (path string, remove func() error, err error) {
	removeStale(os.TempDir())
	for {
		if path, err = os.MkdirTemp("", prefix); err != nil {
			return "", nil, err
		}
		lock, err := lockfile.Take(filepath.Join(path, lockName), 0o600)
		switch {
		case err == nil && stillHas(path, lock):
			return path, func() error { return errors.Join(os.RemoveAll(path), lock.Close()) }, nil
		case err == nil:
			lock.Close()
		case !errors.Is(err, lockfile.ErrHeld) && !errors.Is(err, fs.ErrNotExist):
			return "", nil, errors.Join(err, os.Remove(path))
		} // otherwise another process removed the folder before it was locked
	}
}

// stillHas reports whether the folder still contains the file that is locked by lock.
func stillHas(path string, lock *os.File) bool {
	named, errNamed := os.Stat(filepath.Join(path, lockName))
	held, errHeld := lock.Stat()
	return errNamed == nil && errHeld == nil && os.SameFile(named, held)
}

// removeStale removes folders that were left behind by processes that have ended. Folders that cannot be removed belong
// to another user or are left for the next call.
func removeStale(parent string) {
	if !lockfile.Works {
		return
	}
	folders, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // the pattern is valid
	for _, folder := range folders {
		if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
			continue
		}
		lock, err := lockfile.Open(filepath.Join(folder, lockName), os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(folder) // fails unless it is empty; a process that is about to lock it creates another folder
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
