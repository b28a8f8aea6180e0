package pcie

import (
	"fmt"
	"io"

	"github.com/olafctl/olaf/fpga/regmap"
)

// dryWindow is a window that prints every access. Reads reach the card unless they would change its state. Writes are
// only remembered, so that a later read returns the written value.
type dryWindow struct {
	Window
	out     io.Writer
	written map[uint32]uint32
}

func newDryWindow(w Window, out io.Writer) *dryWindow {
	return &dryWindow{w, out, make(map[uint32]uint32)}
}

func (d *dryWindow) Load32(offset uint32) uint32 {
	v, pretended := d.written[offset]
	if !pretended && windows[offset] == 0 {
		v = d.Window.Load32(offset)
	}
	fmt.Fprintf(d.out, "read  0x%06x %s = %#x\n", offset, dryName(offset), v)
	return v
}

func (d *dryWindow) Store32(offset, value uint32) {
	fmt.Fprintf(d.out, "write 0x%06x %s = %#x (not done)\n", offset, dryName(offset), value)
	if ref, _, ok := regmap.RegisterAt(offset); ok && ref.Register.Access == regmap.ReadWrite {
		d.written[offset] = value
	}
}

func dryName(offset uint32) string {
	if ref, high, ok := regmap.RegisterAt(offset); ok {
		if high {
			return ref.Name() + " (high)"
		}
		return ref.Name()
	}
	for _, p := range []struct {
		addr uint32
		name string
	}{
		{ShellBuildTime, "shell.build_time"}, {ShellCanary, "shell.system_status"}, {ShellReset, "shell.reset"},
		{ShellStatus, "shell.status"}, {UserReset, "shell.user_reset"}, {UserStatus, "shell.user_status"},
	} {
		if p.addr == offset {
			return p.name
		}
	}
	return "shell"
}
