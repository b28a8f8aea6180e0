//go:build unix

package sshlink

import (
	"os/exec"
	"syscall"
)

// leaveGroup starts a program in a process group of its own, which signals from the terminal do not reach.
func leaveGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
