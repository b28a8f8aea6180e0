package pcie

import (
	"fmt"

	"github.com/olafctl/olaf/fpga"
)

// The AXI-Lite windows of VNP4-1 and VNP4-2.
const (
	TablesBase  = boxBase + 0x40000
	TablesBytes = 0x80000
)

// Tables provides access to the register windows of the two VitisNetP4 blocks, for the driver that is built with the
// bitstream. Only this driver knows their registers, so written values are not read back.
type Tables struct{ device *Device }

// Tables returns access to the windows of the table blocks. It shares the device's state, so both must be used from the
// same goroutine.
func (d *Device) Tables() Tables { return Tables{d} }

func (t Tables) checkAccess(addr uint32, write bool) error {
	d := t.device
	if err := d.checkFresh(); err != nil {
		return err
	}
	switch {
	case addr%4 != 0 || addr < TablesBase || addr-TablesBase >= TablesBytes:
		return fmt.Errorf("%w: %#x is outside the table windows", fpga.ErrAddress, addr)
	case !d.ours:
		return fmt.Errorf("%w: %s", ErrNotOurs, d.foreign)
	case write && (d.options.ReadOnly || d.options.DryRun != nil):
		return fmt.Errorf("write %#x: %w: the session is read-only", addr, ErrDenied)
	}
	return nil
}

// Read32 reads a register in a window. If it reads as all ones because the card is gone, the error matches
// fpga.ErrGone.
func (t Tables) Read32(addr uint32) (uint32, error) {
	if err := t.checkAccess(addr, false); err != nil {
		return 0, err
	}
	v := t.device.window.Load32(addr)
	if v == allOnes {
		if err := t.device.verify(); err != nil {
			return v, err
		}
		v = t.device.window.Load32(addr)
	}
	return v, t.device.countAccess()
}

// Write32 writes a register in a window.
func (t Tables) Write32(addr, value uint32) error {
	if err := t.checkAccess(addr, true); err != nil {
		return err
	}
	t.device.window.Store32(addr, value)
	return t.device.countAccess()
}
