package xdp

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/fpga/netlab"
)

// Mode is where in the kernel a program meets frames.
type Mode string

// Modes. Native is the driver's own hook, Generic a later one that every interface has.
const (
	Native  Mode = "native"
	Generic Mode = "generic"
)

// Attach lets the frames that come in by an interface run the program arrive, until what it returns is closed or the process
// ends. The error matches ErrKernel.
func (p *programs) Attach(at *netlab.Interface, mode Mode) (io.Closer, error) {
	return p.attach("arrive", at, mode)
}

// AttachMark lets ACKs that come in by an interface, which is the server's, tell how full the queue is.
func (q *Queue) AttachMark(at *netlab.Interface, mode Mode) (io.Closer, error) {
	return q.attach("mark", at, mode)
}

func (p *programs) attach(program string, at *netlab.Interface, mode Mode) (io.Closer, error) {
	flags := map[Mode]link.XDPAttachFlags{Native: link.XDPDriverMode, Generic: link.XDPGenericMode}
	f, ok := flags[mode]
	if !ok {
		return nil, fmt.Errorf("xdp: there is no mode %q; there are %s and %s", mode, Native, Generic)
	}
	if mode == Native && at.MTU > netlab.MaxMTU {
		return nil, fmt.Errorf("xdp: %s: attach %s to %s: %w: an MTU of %d bytes is above the %d whose frames native mode shows in one piece; lower it, or use mode %s",
			p.name, program, at.Name, ErrKernel, at.MTU, netlab.MaxMTU, Generic)
	}
	var attached link.Link
	err := at.Do(func() (err error) {
		attached, err = link.AttachXDP(link.XDPOptions{Program: p.collection.Programs[program], Interface: at.Index,
			Flags: f})
		return err
	})
	if errors.Is(err, unix.EOPNOTSUPP) && mode == Native {
		return nil, fmt.Errorf("xdp: %s: attach %s to %s: %w: its driver has no hook for programs; use mode %s", p.name,
			program, at.Name, ErrKernel, Generic)
	}
	if err != nil {
		return nil, fmt.Errorf("xdp: %s: attach %s to %s in mode %s: %w: %w", p.name, program, at.Name, mode, ErrKernel,
			err)
	}
	return attached, nil
}

// AttachPass lets every frame that comes in by an interface go on to the network stack. Frames that a program redirects over a
// cable are lost, without a word, where nothing is attached to its other end.
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
