package netlabtest

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/olafctl/olaf/fpga/netlab"
)

// Bridge connects interfaces of a node with a bridge, like a plain switch.
func Bridge(t testing.TB, node *netlab.Node, ports ...string) {
	t.Helper()
	mustNil(t, node.Do(func() error {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "bridge"}}
		if err := netlink.LinkAdd(bridge); err != nil {
			return err
		}
		for _, name := range ports {
			port, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetMaster(port, bridge); err != nil {
				return err
			}
		}
		return netlink.LinkSetUp(bridge)
	}))
}

// LoseFrames drops updates that arrive at an interface if their sequence number is a multiple of 8. It stops when
// restore is called or the test ends.
func LoseFrames(t testing.TB, at *netlab.Interface) (restore func()) {
	t.Helper()
	const magicAt, magic, sequenceEnd, pass, drop = 42, 0x4f, 52, 2, 1 // the last two are XDP verdicts
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "lose", Type: ebpf.XDP, License: "Apache-2.0", Instructions: asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),
		asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, sequenceEnd),
		asm.JGT.Reg(asm.R4, asm.R3, "pass"),
		asm.LoadMem(asm.R5, asm.R2, magicAt, asm.Byte),
		asm.JNE.Imm(asm.R5, magic, "pass"),
		asm.LoadMem(asm.R5, asm.R2, sequenceEnd-1, asm.Byte),
		asm.And.Imm(asm.R5, 7),
		asm.JNE.Imm(asm.R5, 0, "pass"),
		asm.Mov.Imm(asm.R0, drop),
		asm.Return(),
		asm.Mov.Imm(asm.R0, pass).WithSymbol("pass"),
		asm.Return(),
	}})
	mustNil(t, err)
	var attached link.Link
	mustNil(t, at.Do(func() (err error) {
		attached, err = link.AttachXDP(link.XDPOptions{Program: program, Interface: at.Index})
		return err
	}))
	restore = func() {
		_ = attached.Close() // called a second time after the test
		_ = program.Close()
	}
	t.Cleanup(restore)
	return restore
}
