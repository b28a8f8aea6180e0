package testbed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/olafctl/olaf/internal/lockfile"
	"github.com/olafctl/olaf/internal/tempfolder"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// maxSocketPath is the maximum length of the path in the address of a unix socket.
const maxSocketPath = 103

// privateAddress returns an address for a socket that only this user can access, until remove is called. If the path of
// the temporary folder is too long, it returns a free port on the loopback interface.
func privateAddress() (address string, remove func() error, err error) {
	dir, remove, err := tempfolder.MakeFolder()
	if err != nil {
		return "", nil, fmt.Errorf("create a folder for a private socket: %w", err)
	}
	return socketAddress(filepath.Join(dir, "s")), remove, nil
}

// ownSocket returns the path of a socket for a device that only this user can access. The path is always the same for
// the same device.
func ownSocket(scheme, name string) (string, error) {
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("olafctl-%d", os.Getuid()))
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !lockfile.Own(info) {
		return "", fmt.Errorf("%w: %s is not a private folder of this user; use --listen unix:PATH", agent.ErrListen,
			folder)
	}
	return "unix:" + filepath.Join(folder, scheme+"-"+strings.ReplaceAll(name, ":", "-")), nil
}

func socketAddress(path string) string {
	if len(path) > maxSocketPath {
		return "127.0.0.1:0"
	}
	return "unix:" + path
}
