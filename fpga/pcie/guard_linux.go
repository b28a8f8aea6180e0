package pcie

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/olafctl/olaf/fpga/regmap"
)

// guard is a process that stops a card's generator if this process dies. It shares the card's lock, so that no other
// process can open the card in between.
type guard struct {
	process *exec.Cmd
	alive   *os.File // the guard reads from the other end of this pipe, which ends when this process dies
}

// startGuard starts the card's guard, unless it runs already or the bus has none.
func (d *Device) startGuard() error {
	if d.guard != nil || d.bus.Guard == nil {
		return nil
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	g := &guard{d.bus.Guard(d.card.BDF), ours}
	g.process.Stdin, g.process.ExtraFiles = theirs, []*os.File{d.lock.file}
	g.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals to this process's group do not reach the guard
	if err := g.process.Start(); err != nil {
		return errors.Join(fmt.Errorf("start the process that stops the generator if olafctl is killed: %w", err), ours.Close())
	}
	d.guard = g
	return nil
}

// end ends the guard, which does not access the card then.
func (g *guard) end() {
	if g == nil {
		return
	}
	_ = g.process.Process.Kill() // a guard that has ended is waited for as well
	_ = g.process.Wait()
	g.alive.Close()
}

// Guard stops a card's generator after the process that owns the card has died. alive is the guard's standard input,
// which ends at that moment. The command that Bus.Guard returns must call Guard. It inherits the owner's lock, so that
// no other process can open the card before the generator is stopped.
func Guard(bus Bus, bdf string, alive io.Reader) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // they may also have ended the owner
	inherited, err := inheritLock(bus.Locks, Slot(bdf))
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, alive); err != nil {
		return err
	}
	d, err := Open(bus, bdf, Options{locked: inherited})
	if err != nil {
		return err
	}
	return errors.Join(d.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandAbort), d.Close())
}

// inheritedLock is the descriptor of the first of a process's ExtraFiles.
const inheritedLock = 3
