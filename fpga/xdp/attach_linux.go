package xdp

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
)

// Attach runs the program named arrive on all frames received at an interface, until the returned closer is closed or
// the process ends. The error matches ErrKernel.
func (p *programs) Attach(at *netlab.Interface, mode dataplane.Mode) (io.Closer, error) {
	return p.attach("arrive", at, mode)
}

// AttachMark attaches a program to the server's interface. The program writes the queue's fill level into ACKs that
// arrive there.
func (q *Queue) AttachMark(at *netlab.Interface, mode dataplane.Mode) (io.Closer, error) {
	return q.attach("mark", at, mode)
}

func (p *programs) attach(program string, at *netlab.Interface, mode dataplane.Mode) (io.Closer, error) {
	flags := map[dataplane.Mode]link.XDPAttachFlags{dataplane.Native: link.XDPDriverMode, dataplane.Generic: link.XDPGenericMode}
	f, ok := flags[mode]
	if !ok {
		return nil, fmt.Errorf("xdp: unknown mode %q; use %s or %s", mode, dataplane.Native, dataplane.Generic)
	}
	if mode == dataplane.Native && at.MTU > netlab.MaxMTU {
		return nil, fmt.Errorf("xdp: %s: attach %s to %s: %w: an MTU of %d bytes is above %d, the largest whose "+
			"frames native mode passes in one piece; lower it, or use mode %s",
			p.name, program, at.Name, ErrKernel, at.MTU, netlab.MaxMTU, dataplane.Generic)
	}
	var attached link.Link
	err := at.Do(func() (err error) {
		attached, err = link.AttachXDP(link.XDPOptions{Program: p.collection.Programs[program], Interface: at.Index,
			Flags: f})
		return err
	})
	if errors.Is(err, unix.EOPNOTSUPP) && mode == dataplane.Native {
		return nil, fmt.Errorf("xdp: %s: attach %s to %s: %w: its driver does not support XDP; use mode %s", p.name,
			program, at.Name, ErrKernel, dataplane.Generic)
	}
	if err != nil {
		return nil, fmt.Errorf("xdp: %s: attach %s to %s in mode %s: %w: %w", p.name, program, at.Name, mode, ErrKernel,
			err)
	}
	return attached, nil
}

// AttachPass attaches a program to an interface. The program passes every frame to the network stack. It is needed
// because frames that are redirected over a cable are silently lost if no program is attached at the cable's other end.
func AttachPass(at *netlab.Interface) (io.Closer, error) {
	const pass = 2 // XDP_PASS
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "pass", Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, pass), asm.Return()},
	})
	if err != nil {
		return nil, fmt.Errorf("xdp: pass: %w: %w", ErrKernel, err)
	}
	var attached link.Link
	err = at.Do(func() (err error) {
		attached, err = link.AttachXDP(link.XDPOptions{Program: p, Interface: at.Index, Flags: link.XDPDriverMode})
		return err
	})
	if err = errors.Join(err, p.Close()); err != nil {
		return nil, fmt.Errorf("xdp: attach pass to %s: %w: %w", at.Name, ErrKernel, err)
	}
	return attached, nil
}
