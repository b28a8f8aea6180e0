package fpga

import (
	"context"
	"fmt"
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// DryRun returns a wrapper for d that prints every access to out and changes nothing on the device. Reads are passed on
// unless they would advance an index. Writes are only remembered, so that a later read returns the value written.
func DryRun(d Device, out io.Writer) Device {
	return &dryRun{d, out, make(map[uint32]uint32)}
}

type dryRun struct {
	Device
	out     io.Writer
	written map[uint32]uint32
}

// moving lists the registers whose values change with every read.
var moving = map[uint32]bool{regmap.GeneratorMemData: true, regmap.ReplicationMemberData: true}

func registerName(addr uint32) string {
	ref, high, ok := regmap.RegisterAt(addr)
	switch {
	case !ok:
		return "?"
	case high:
		return ref.Name() + " (high)"
	}
	return ref.Name()
}

func (d *dryRun) Read32(addr uint32) (uint32, error) {
	v, pretended := d.written[addr]
	if !pretended && !moving[addr] {
		var err error
		if v, err = d.Device.Read32(addr); err != nil {
			return v, err
		}
	}
	fmt.Fprintf(d.out, "read  0x%06x %s = %#x\n", addr, registerName(addr), v)
	return v, nil
}

func (d *dryRun) Write32(addr, value uint32) error {
	ref, _, ok := regmap.RegisterAt(addr)
	if !ok || ref.Register.Access == regmap.ReadOnly {
		return fmt.Errorf("write %#x to %#x: %w", value, addr, ErrAddress)
	}
	fmt.Fprintf(d.out, "write 0x%06x %s = %#x (not done)\n", addr, registerName(addr), value)
	if ref.Register.Access == regmap.ReadWrite {
		d.written[addr] = value
	}
	return nil
}

func (d *dryRun) WriteBurst(addr uint32, words []uint32) error {
	fmt.Fprintf(d.out, "write 0x%06x %s: %d words (not done)\n", addr, registerName(addr), len(words))
	return nil
}

func (d *dryRun) Sleep(ctx context.Context, t olaf.Duration) error {
	fmt.Fprintf(d.out, "wait  %v\n", t)
	return ctx.Err()
}
