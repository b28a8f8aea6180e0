//go:build unix

package agent

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// takeLock makes the file and holds it locked until closed, or until the process ends in whatever way. It returns errLocked
// while somebody else does. The file stays: whoever removed it could take it from under a third one.
func takeLock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, err
}
