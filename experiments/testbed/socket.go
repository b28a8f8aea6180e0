package testbed

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest path that a unix socket's address holds.
const maxSocketPath = 103

// privateAddress makes room for a socket that only this user can reach, until remove is called; where the temporary
// folder's path is too long for one, it is a free port of the loopback interface.
func privateAddress() (address string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "olafctl-")
	if err != nil {
		return "", nil, fmt.Errorf("make room for a private socket: %w", err)
	}
	return socketAddress(filepath.Join(dir, "s")), func() error { return os.RemoveAll(dir) }, nil
}

func socketAddress(path string) string {
	if len(path) > maxSocketPath {
		return "127.0.0.1:0"
	}
	return "unix:" + path
}
