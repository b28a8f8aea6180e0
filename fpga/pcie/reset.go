package pcie

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf/fpga/regmap"
)

// Target is the part of the card to reset.
type Target string

const (
	ResetOlaf Target = "olaf" // our blocks, by their own command: registers, queue, generator
	ResetBox  Target = "box"  // the complete 250 MHz user box, as after programming
	ResetQDMA Target = "qdma" // the host's DMA; needs Force and no bound driver
)

// resets maps the targets to bits of the shell's reset registers, as wired in the RTL. The comments in the shell's
// register file differ.
var resets = map[Target]struct {
	register, bits uint32
	port           int  // port of the MAC or adapter, from 1; 0 for none
	own            bool // reset by our own command instead
}{
	ResetOlaf:  {own: true},
	ResetBox:   {register: UserReset, bits: 1<<31 | 0xFFFF},
	ResetQDMA:  {register: ShellReset, bits: 1 << 0},
	"cmac0":    {register: ShellReset, bits: 1 << 4, port: 1},
	"adapter0": {register: ShellReset, bits: 1 << 5, port: 1},
	"cmac1":    {register: ShellReset, bits: 1 << 8, port: 2},
	"adapter1": {register: ShellReset, bits: 1 << 9, port: 2},
}

// Own reports whether a target is reset by our own command, which every device has.
func (t Target) Own() bool { return resets[t].own }

// TargetNames lists the names of all targets.
func TargetNames() []string {
	var names []string
	for t := range resets {
		names = append(names, string(t))
	}
	slices.Sort(names)
	return names
}

// Reset resets one part of the card, waits a fixed millisecond because the status bits return too early, and
// verifies the card. All values written to that part are lost. The system reset is not available.
func (d *Device) Reset(t Target) error {
	r, ok := resets[t]
	if err := d.checkFresh(); err != nil {
		return err
	}
	switch {
	case r.own:
		return d.Write32(regmap.CommonCommand, regmap.CommonCommandReset)
	case !ok:
		return fmt.Errorf("%w: nothing is named %q; there are %s", ErrDenied, t, strings.Join(TargetNames(), ", "))
	case d.options.ReadOnly:
		return fmt.Errorf("reset %s: %w: the session is read-only", t, ErrDenied)
	case r.port > len(d.ports):
		return fmt.Errorf("reset %s: %w: this image has %s", t, ErrDenied, d.portCount())
	case t == ResetQDMA && d.card.Driver != "":
		return fmt.Errorf("reset %s: %w: the driver %s is bound and would lose its DMA contexts; unbind it first", t,
			ErrDenied, d.card.Driver)
	case t == ResetQDMA && !d.options.Force:
		return fmt.Errorf("reset %s: %w unless forced: the host's DMA stops", t, ErrDenied)
	}
	if t == ResetBox && d.ours {
		return d.resetBlocks(r.register, r.bits)
	}
	d.window.Store32(r.register, r.bits)
	if r.port > 0 {
		d.ports[r.port-1].restart()
	}
	return d.afterReset(resetWait)
}
