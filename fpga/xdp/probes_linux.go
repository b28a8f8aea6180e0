package xdp

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/regmap"
)

// probeForwarder is a program that forwards probe frames past a queue.
type probeForwarder struct {
	program  *ebpf.Program
	attached link.Link
}

// ForwardProbes forwards probe frames, which arrive at one interface, to another interface in the same namespace until
// the result is closed. Probe frames are updates to regmap.NotOlafPort, which the queue does not take. The error matches
// ErrFeature if the kernel is too old, and otherwise ErrKernel.
func ForwardProbes(from, to *netlab.Interface) (io.Closer, error) {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "probes", Type: ebpf.SchedCLS, License: "Apache-2.0",
		Instructions: probeInstructions(to.Index)})
	if err != nil {
		return nil, fmt.Errorf("xdp: load probes: %w: %w", ErrKernel, withRemedy(err))
	}
	f := &probeForwarder{program: program}
	err = from.Do(func() (err error) {
		f.attached, err = link.AttachTCX(link.TCXOptions{Interface: from.Index, Program: program, Attach: ebpf.AttachTCXIngress})
		return err
	})
	switch {
	case errors.Is(err, ebpf.ErrNotSupported):
		err = fmt.Errorf("%w programs before the network stack (tcx), which forward probe frames; run Linux 6.6 or newer", ErrFeature)
	case err != nil:
		err = fmt.Errorf("xdp: attach probes to %s: %w: %w", from.Name, ErrKernel, err)
	}
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	return f, nil
}

// probeInstructions returns a program that sends probe frames out of an interface and passes all other frames on. It is
// assembled here because it has no maps and needs no compiler.
func probeInstructions(to int) asm.Instructions {
	const etherType, ipVersion, protocol, port, magic = 12, 14, 23, 36, 42 // offsets in the frame
	const ipv4, oneHeader, udp, olafMagic, next = 0x0800, 0x45, 17, 0x4f, -1
	code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)} // where the loads expect the context
	for _, field := range []struct {
		at    int32
		size  asm.Size
		value int32
	}{{etherType, asm.Half, ipv4}, {ipVersion, asm.Byte, oneHeader}, {protocol, asm.Byte, udp}, {port, asm.Half, regmap.NotOlafPort},
		{magic, asm.Byte, olafMagic}} {
		code = append(code, asm.LoadAbs(field.at, field.size), asm.JNE.Imm(asm.R0, field.value, "pass"))
	}
	return append(code,
		asm.Mov.Imm(asm.R1, int32(to)), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return(),
		asm.Mov.Imm(asm.R0, next).WithSymbol("pass"), asm.Return())
}

// Close detaches the program and removes it from the kernel.
func (f *probeForwarder) Close() error { return errors.Join(f.attached.Close(), f.program.Close()) }
