package onwire

import (
	"errors"
	"io"
	"os/exec"
	"syscall"

	"github.com/olafctl/olaf/experiments/testbed"
)

// programGroup is a process group for the programs of a training run and for everything that they start, unless it
// leaves the group. A guard kills the group if this process dies.
type programGroup struct {
	guard *exec.Cmd
	stdin io.Closer
}

// guardGroup waits until the process that writes to its input has died, and kills its group.
const guardGroup = "trap '' INT TERM; read never; kill -9 0"

// startGroup starts the guard of a new group.
func startGroup() (*programGroup, error) {
	g := &programGroup{guard: exec.Command("sh", "-c", guardGroup)}
	g.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if g.stdin, err = g.guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := g.guard.Start(); err != nil {
		return nil, errors.Join(err, g.stdin.Close())
	}
	return g, nil
}

// add puts a program that is not started yet into the group, and makes the kernel kill it together with this process;
// see testbed.EndWithParent.
func (g *programGroup) add(cmd *exec.Cmd) {
	testbed.EndWithParent(cmd)
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pgid = true, g.guard.Process.Pid
}

// kill ends all processes in the group. The group stays until end is called.
func (g *programGroup) kill() {
	_ = syscall.Kill(-g.guard.Process.Pid, syscall.SIGKILL) // the guard exists until end is called
}

// end kills the group and removes the guard.
func (g *programGroup) end() {
	g.kill()
	_ = g.guard.Wait() // it was killed
}
