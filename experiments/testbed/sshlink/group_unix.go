//go:build unix

package sshlink

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// ShareSocket gives a socket to the owner of its folder: an agent under sudo is not the user whose sshd forwards it.
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

// leaveGroup starts a program in a separate process group, which signals from the terminal do not reach.
func leaveGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
