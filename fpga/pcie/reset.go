package pcie

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf/fpga/regmap"
)

// Target is what a reset reaches.
type Target string

const (
	ResetOlaf Target = "olaf" // our blocks, by their own command: registers, queue, generator
	ResetBox  Target = "box"  // the whole 250 MHz user box, as after programming
	ResetQDMA Target = "qdma" // the host's DMA; needs Force and no bound driver
)

// resets are the targets' bits in the shell's reset registers, as the RTL wires them; the comments in the shell's own
// register file say otherwise.
var resets = map[Target]struct {
	register, bits uint32
	port           int // whose MAC or adapter it is, from 1; 0 for none
}{
	ResetBox:   {UserReset, 1<<31 | 0xFFFF, 0},
	ResetQDMA:  {ShellReset, 1 << 0, 0},
	"cmac0":    {ShellReset, 1 << 4, 1},
	"adapter0": {ShellReset, 1 << 5, 1},
	"cmac1":    {ShellReset, 1 << 8, 2},
	"adapter1": {ShellReset, 1 << 9, 2},
}

// Targets are the names of everything that can be reset.
func Targets() []string {
	names := []string{string(ResetOlaf)}
	for t := range resets {
		names = append(names, string(t))
	}
	slices.Sort(names)
	return names
}

// Reset resets one part of the card, waits a fixed millisecond because the status bits come back too early, and checks
// who the card is. Whatever was written to that part is lost and must be written again. The system reset is not offered.
func (d *Device) Reset(t Target) error {
	if t == ResetOlaf {
		return d.Write32(regmap.CommonCommand, regmap.CommonCommandReset)
	}
	r, ok := resets[t]
	switch {
	case !ok:
		return fmt.Errorf("%w: nothing is named %q; there are %s", ErrDenied, t, strings.Join(Targets(), ", "))
	case d.failed != nil:
		return d.failed
	case d.options.ReadOnly:
		return fmt.Errorf("reset %s: %w: the session is read-only", t, ErrDenied)
	case r.port > len(d.ports):
		return fmt.Errorf("reset %s: %w: this image has %d ports", t, ErrDenied, len(d.ports))
	case t == ResetQDMA && d.card.Driver != "":
		return fmt.Errorf("reset %s: %w: the driver %s is bound and would lose its DMA contexts; unbind it first", t, ErrDenied, d.card.Driver)
	case t == ResetQDMA && !d.options.Force:
		return fmt.Errorf("reset %s: %w unless forced: the host's DMA stops", t, ErrDenied)
	}
	if t == ResetBox && d.ours {
		return d.restart(r.register, r.bits)
	}
	d.window.Store32(r.register, r.bits)
	if r.port > 0 {
		d.ports[r.port-1].restart()
	}
	return d.afterReset(resetWait)
}
