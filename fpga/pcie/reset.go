package pcie

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf/fpga/regmap"
)

// Target is a part of the card that can be reset.
type Target string

const (
	ResetOlaf Target = "olaf" // our blocks (registers, queue, generator), by their own command
	ResetBox  Target = "box"  // the complete 250 MHz user box, as after programming
	ResetQDMA Target = "qdma" // the host's DMA; needs Force and no bound driver
)

// resets contains the bits for each target in the shell's reset registers, as they are connected in the RTL. The
// comments in the shell's register file differ from the RTL.
var resets = map[Target]struct {
	register, bits uint32
	port           int  // port of the MAC or adapter, from 1; 0 for none
	own            bool // reset by our own command instead of the shell's
}{
	ResetOlaf:  {own: true},
	ResetBox:   {register: UserReset, bits: 1<<31 | 0xFFFF},
	ResetQDMA:  {register: ShellReset, bits: 1 << 0},
	"cmac0":    {register: ShellReset, bits: 1 << 4, port: 1},
	"adapter0": {register: ShellReset, bits: 1 << 5, port: 1},
	"cmac1":    {register: ShellReset, bits: 1 << 8, port: 2},
	"adapter1": {register: ShellReset, bits: 1 << 9, port: 2},
}

// Own reports whether the target is reset by a command in our own blocks, which every device has.
func (t Target) Own() bool { return resets[t].own }

// TargetNames returns the names of all targets.
func TargetNames() []string {
	var names []string
	for t := range resets {
		names = append(names, string(t))
	}
	slices.Sort(names)
	return names
}

// Reset resets a part of the card and verifies the card. It waits a fixed millisecond in between, because the status
// bits indicate completion too early. All values written to this part are lost. The shell's system reset is not
// available.
func (d *Device) Reset(t Target) error {
	r, ok := resets[t]
	if err := d.checkFresh(); err != nil {
		return err
	}
	switch {
	case r.own:
		return d.Write32(regmap.CommonCommand, regmap.CommonCommandReset)
	case !ok:
		return fmt.Errorf("%w: there is no part %q; use one of %s", ErrDenied, t, strings.Join(TargetNames(), ", "))
	case d.options.ReadOnly:
		return fmt.Errorf("reset %s: %w: the session is read-only", t, ErrDenied)
	case r.port > len(d.ports):
		return fmt.Errorf("reset %s: %w: this image has %s", t, ErrDenied, d.portCount())
	case t == ResetQDMA && d.card.Driver != "":
		return fmt.Errorf("reset %s: %w: the driver %s is bound and would lose its DMA contexts; unbind the driver "+
			"first", t,
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
