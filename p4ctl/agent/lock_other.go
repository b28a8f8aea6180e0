//go:build !unix

package agent

import (
	"io"
	"os"
)

// takeLock holds the file open; where files can't be locked, nobody notices a second agent.
func takeLock(path string) (io.Closer, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
}
