package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/olafctl/olaf/fpga/netlab"
)

// Copy describes the receiver of one copy of a frame.
type Copy struct {
	Cable *netlab.Cable // end B sends, end A belongs to the receiver
	// Worker is the receiver's address. If it is the zero value, the copy keeps the group's address, for an aggregator
	// below that also copies.
	Worker netip.Addr
}

// Fanout is a kernel program that copies frames with a group address to several receivers, as a switch does for a
// multicast group.
type Fanout struct {
	collection *ebpf.Collection
	attached   link.Link
	index      int
}

// FanoutCounts contains the counts of frames since the program was attached.
type FanoutCounts struct {
	Frames  uint64 `json:"frames"`  // frames sent to the group
	Copied  uint64 `json:"copied"`  // frames × receivers, unless the kernel refused copies
	Refused uint64 `json:"refused"` // copies that the kernel did not send
}

// AttachFanout attaches a program to an interface. The program copies arriving frames with the group's address to
// several receivers. The error matches ErrFeature if the kernel is too old, and otherwise ErrKernel.
func AttachFanout(at *netlab.Interface, group netip.Addr, to []Copy) (_ *Fanout, err error) {
	spec, err := loadFanout()
	if err != nil {
		return nil, fmt.Errorf("xdp: fanout: %w", err)
	}
	if len(to) < 1 || len(to) > MaxChildren || !group.Is4() {
		return nil, fmt.Errorf("xdp: fanout: %d copies of frames to %v; use 1 to %d copies and an IPv4 address",
			len(to), group,
			MaxChildren)
	}
	spec.Maps["copies"].MaxEntries = uint32(len(to))
	wire := group.As4()
	if err := errors.Join(spec.Variables["COPIES"].Set(uint32(len(to))),
		spec.Variables["GROUP"].Set(binary.NativeEndian.Uint32(wire[:]))); err != nil {
		return nil, fmt.Errorf("xdp: fanout: %w", err)
	}
	f := &Fanout{index: at.Index}
	if f.collection, err = ebpf.NewCollection(spec); err != nil {
		return nil, fmt.Errorf("xdp: load fanout: %w: %w", ErrKernel, withRemedy(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	for i, c := range to {
		if err := f.collection.Maps["copies"].Put(uint32(i), c.encode()); err != nil {
			return nil, fmt.Errorf("xdp: fanout: write copies: %w: %w", ErrKernel, err)
		}
	}
	err = at.Do(func() (err error) {
		f.attached, err = link.AttachTCX(link.TCXOptions{Interface: at.Index, Program: f.collection.Programs["fanout"],
			Attach: ebpf.AttachTCXIngress})
		return err
	})
	if errors.Is(err, ebpf.ErrNotSupported) {
		return nil, fmt.Errorf("%w programs before the network stack (tcx), which copy results; run Linux 6.6 or newer",
			ErrFeature)
	}
	if err != nil {
		return nil, fmt.Errorf("xdp: attach fanout to %s: %w: %w", at.Name, ErrKernel, err)
	}
	return f, nil
}

// encode returns the copy's description in the form in which the program reads it.
func (c *Copy) encode() []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(c.Cable.B.Index))
	address := make([]byte, 4)
	if c.Worker.IsValid() {
		address = c.Worker.AsSlice()
	}
	b = append(append(b, address...), c.Cable.A.MAC...)
	return append(b, 0, 0)
}

// CheckAttached returns an error if the program was detached from its interface.
func (f *Fanout) CheckAttached() error {
	info, err := f.attached.Info()
	if err != nil {
		return fmt.Errorf("xdp: fanout: %w: %w", ErrKernel, err)
	}
	if at := info.TCX(); at == nil || int(at.Ifindex) != f.index {
		return errors.New("the program fanout was detached from its interface")
	}
	return nil
}

// Counts returns the counts of frames, summed over all processors.
func (f *Fanout) Counts() (c FanoutCounts, err error) {
	var each [][3]uint64
	if err := f.collection.Maps["counts"].Lookup(uint32(0), &each); err != nil {
		return c, fmt.Errorf("xdp: fanout: read the counters: %w", err)
	}
	for _, n := range each {
		c.Frames, c.Copied, c.Refused = c.Frames+n[0], c.Copied+n[1], c.Refused+n[2]
	}
	return c, nil
}

// Close detaches the program and removes it from the kernel.
func (f *Fanout) Close() error {
	var err error
	if f.attached != nil {
		err = f.attached.Close()
	}
	f.collection.Close()
	return err
}
