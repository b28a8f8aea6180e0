package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
)

// ErrKernel is returned if the kernel rejected an operation although rights and features are sufficient, for example
// because of a limit.
var ErrKernel = olaf.NewError(olaf.Device, "the kernel refused")

// programs contains the parts that all objects have in common: programs, maps, the table of senders, counters in two
// banks, and the decision log. Nothing is pinned, so everything is removed by Close or when the process ends.
type programs struct {
	name       string
	collection *ebpf.Collection
	inner      *ebpf.MapSpec // inner map of a senders' table
	table      *ebpf.Map     // senders' table in use
	counters   []string      // names of the counters in the order of a bank
	log        *ringbuf.Reader
	record     ringbuf.Record
}

// shared contains the load parameters that all programs have in common.
type shared struct {
	senders  int // capacity of the senders' table
	logBytes int // size of the decision log, a power of two and a multiple of the page size; 0 disables it
	kernel   Kernel
}

// load sets constants and map sizes in an object and loads it into the kernel. The error matches netlab.ErrRights,
// ErrFeature or ErrKernel.
func (p *programs) load(name string, spec *ebpf.CollectionSpec, s shared, constants map[string]any) error {
	p.name = name
	if err := netlab.CheckRights(LoadRights...); err != nil {
		return err
	}
	if s.kernel == nil {
		s.kernel = RunningKernel()
	}
	if err := checkRoom(spec); err != nil { // first, because probing the kernel also needs descriptors
		return fmt.Errorf("xdp: load %s: %w", name, err)
	}
	if err := checkFeatures(s.kernel, spec); err != nil {
		return err
	}
	if err := p.shape(spec, s, constants); err != nil {
		return fmt.Errorf("xdp: %s: %w", name, err)
	}
	var err error
	if p.collection, err = ebpf.NewCollection(spec); err != nil {
		return fmt.Errorf("xdp: load %s: %w: %w", name, ErrKernel, withRemedy(err))
	}
	if s.logBytes > 0 {
		if p.log, err = ringbuf.NewReader(p.collection.Maps["decisions"]); err != nil {
			return fmt.Errorf("xdp: open the decision log: %w: %w", ErrKernel, err)
		}
	}
	return p.SetSenders(nil)
}

// Layout of the senders' map (bpf/senders.h).
const (
	senderBytes = 8
	senderHead  = 8
)

func (p *programs) shape(spec *ebpf.CollectionSpec, s shared, constants map[string]any) error {
	places := 2
	for places < 2*s.senders {
		places *= 2
	}
	constants["SENDERS"] = uint32(places)
	constants["LOGGED"] = s.logBytes > 0
	for name, value := range constants {
		if err := spec.Variables[name].Set(value); err != nil {
			return err
		}
	}
	if s.logBytes > 0 {
		spec.Maps["decisions"].MaxEntries = uint32(s.logBytes)
	}
	p.inner = spec.Maps["senders"].InnerMap
	p.inner.ValueSize = uint32(senderHead + places*senderBytes)
	bank, ok := spec.Maps["banks"].Value.(*btf.Struct)
	if !ok {
		return errors.New("the object does not name its counters")
	}
	for _, m := range bank.Members {
		p.counters = append(p.counters, m.Name)
	}
	return nil
}

// Close removes the programs and maps from the kernel.
func (p *programs) Close() error {
	var err error
	if p.log != nil {
		err = p.log.Close()
	}
	if p.table != nil {
		err = errors.Join(err, p.table.Close())
	}
	if p.collection != nil {
		p.collection.Close()
	}
	return err
}

// put writes the only element of the map with the given name.
func (p *programs) put(name string, value any) error {
	if err := p.collection.Maps[name].Put(uint32(0), value); err != nil {
		return fmt.Errorf("xdp: %s: write %s: %w: %w", p.name, name, ErrKernel, err)
	}
	return nil
}

// settle waits until all program runs that have already begun have ended. It changes a map of maps, because the kernel
// then waits for such runs.
func (p *programs) settle() error { return p.put("senders", p.table) }

// CounterNames returns the names of the counters, in the order in which the programs declare them.
func (p *programs) CounterNames() []string { return append([]string(nil), p.counters...) }

// drain returns the counts in an inactive bank, summed over all processors, and clears the bank.
func (p *programs) drain(bank uint32) (map[string]uint64, error) {
	banks := p.collection.Maps["banks"]
	var each [][]byte
	if err := banks.Lookup(bank, &each); err != nil {
		return nil, fmt.Errorf("xdp: %s: read the counters: %w", p.name, err)
	}
	sums := make(map[string]uint64, len(p.counters))
	for _, b := range each {
		for i, name := range p.counters {
			sums[name] += binary.NativeEndian.Uint64(b[8*i:])
		}
		clear(b)
	}
	if err := banks.Put(bank, each); err != nil {
		return nil, fmt.Errorf("xdp: %s: clear the counters: %w", p.name, err)
	}
	return sums, nil
}

// Arrive runs the program on a frame, as if the frame arrived at an interface, and returns its verdict. The frame is
// overwritten with the program's output. Arrive may be called concurrently with all methods, including itself.
func (p *programs) Arrive(frame []byte) (Verdict, error) {
	v, err := p.collection.Programs["arrive"].Run(&ebpf.RunOptions{Data: frame, DataOut: frame})
	if err != nil {
		return 0, fmt.Errorf("xdp: %s: run on a frame: %w: %w", p.name, ErrKernel, err)
	}
	return Verdict(v), nil
}

// Verdict is the result of an XDP program for a frame, in the kernel's numbering.
type Verdict uint32

// Verdicts with the kernel's numbers.
const (
	Drop     Verdict = 1 // the frame was counted or merged into a slot
	Pass     Verdict = 2 // passed to the kernel's network stack
	Send     Verdict = 3 // sent back through the same interface, if no uplink was set
	redirect Verdict = 4 // sent through another interface
)
