//go:build unix

package sshlink

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// ShareSocket gives a socket to the owner of the folder that contains it. An agent that runs under sudo has another
// user than the sshd that forwards the socket.
func ShareSocket(target string) error {
	path := strings.TrimPrefix(target, "unix:")
	folder, err := os.Lstat(filepath.Dir(path))
	if err != nil {
		return err
	}
	owner, ok := folder.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Geteuid() {
		return nil
	}
	return os.Lchown(path, int(owner.Uid), int(owner.Gid))
}

// leaveGroup makes a program start in a separate process group, so that it does not receive signals from the terminal.
func leaveGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
