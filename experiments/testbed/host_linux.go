package testbed

import (
	"os/exec"
	"syscall"
)

// endWithParent lets the kernel kill a program when the thread that started it ends.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
