package xdp

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// AggregatorBuild contains the parameters of an XAgg aggregator that are fixed when it is loaded.
type AggregatorBuild struct {
	Fragments int    // number of fragments in the model; each has a slot
	Lanes     int    // maximum number per fragment
	Wrapping  bool   // sums wrap as in the paper, instead of saturating
	Group     int    // fragments per child between two checks, a power of two; 0 means DefaultGroup
	Senders   int    // capacity of the senders' table
	LogBytes  int    // size of the decision log, a power of two and a multiple of the page size; 0 disables it
	Kernel    Kernel // see Build

	// Test hooks for a race that the paper leaves open: no lock around a fragment, and a gate between lookup and
	// addition.
	unlocked, gated bool
}

// Limits and defaults of AggregatorBuild and Parent.
const (
	MaxChildren  = 64   // bits in a bitmap
	DefaultGroup = 1024 // from the paper
)

// Parent describes where an aggregator sends its sums, and how many children complete a sum.
type Parent struct {
	Job      olaf.ClusterID
	Children int
	Child    olaf.WorkerID // id of the aggregator at its parent
	Source   olaf.Addresses

	// Addresses are the IPv4 addresses to which the children send, by child. A child's frame to a different address
	// bypasses the aggregator, because the child has moved to another one. nil accepts every destination.
	Addresses []netip.Addr
}

// Aggregator is a kernel program that sums the fragments sent by the children of one parent. Its methods must not be
// called concurrently, with two exceptions: Arrive may be called at any time, and Fragment and NextCheck may be called
// from one other goroutine.
type Aggregator struct {
	programs
	build   AggregatorBuild
	bank    uint32
	running bool
	parent  Parent

	// Buffers for Fragments.
	keys      []uint32
	states    []slotState
	fragments []xagg.Fragment
}

// Check is a request to find the fragments that are missing from a child, up to the given fragment.
type Check struct {
	Child    olaf.WorkerID
	Epoch    uint16
	Fragment uint32
}

// LoadAggregator loads the XAgg program into the kernel. The error matches netlab.ErrRights, ErrFeature or ErrKernel.
func LoadAggregator(build AggregatorBuild) (*Aggregator, error) {
	spec, err := loadXagg()
	if err != nil {
		return nil, fmt.Errorf("xdp: xagg: %w", err)
	}
	if build.Fragments < 1 || build.Lanes < 1 {
		return nil, fmt.Errorf("xdp: xagg: %d fragments of %d lanes; use at least 1 of each", build.Fragments,
			build.Lanes)
	}
	group := cmp.Or(build.Group, DefaultGroup)
	if group < 1 || bits.OnesCount(uint(group)) != 1 {
		return nil, fmt.Errorf("xdp: xagg: groups of %d fragments; use a power of two", group)
	}
	spec.Maps["slots"].MaxEntries = uint32(build.Fragments)
	spec.Maps["sums"].MaxEntries = uint32(build.Fragments)
	spec.Maps["sums"].ValueSize = uint32(laneWords(build.Lanes) * wordBytes)
	a := &Aggregator{build: build}
	err = a.load("xagg", spec, shared{build.Senders, build.LogBytes, build.Kernel}, map[string]any{
		"FRAGMENTS": uint32(build.Fragments), "LANES": uint32(build.Lanes), "SATURATING": !build.Wrapping,
		"GROUP":  uint32(group),
		"LOCKED": !build.unlocked, "GATED": build.gated,
	})
	if err != nil {
		_ = a.Close()
		return nil, err
	}
	return a, nil
}

// Configure sets the parent, to which sums are sent. Partial sums are kept.
func (a *Aggregator) Configure(p Parent) error {
	if p.Children < 1 || p.Children > MaxChildren {
		return fmt.Errorf("xdp: xagg: %d children; an aggregator has 1 to %d", p.Children, MaxChildren)
	}
	if n := len(p.Addresses); n > 0 && n != p.Children {
		return fmt.Errorf("xdp: xagg: %d addresses for %d children", n, p.Children)
	}
	a.parent = p
	return a.configure()
}

// SetUplink sets the interface through which sums are sent. If none is set, a sum is sent through the interface of the
// child that completed it.
func (a *Aggregator) SetUplink(to *netlab.Interface) error {
	return to.Do(func() error { return a.put("uplink", uint32(to.Index)) })
}

// Run starts the admission of packets, or stops it if on is false.
func (a *Aggregator) Run(on bool) error {
	a.running = on
	return a.configure()
}

func (a *Aggregator) configure() error {
	p := &a.parent
	b := encodeWords(boolBit(a.running), a.bank, uint32(p.Children))
	b = binary.NativeEndian.AppendUint16(b, uint16(p.Job))
	b = binary.NativeEndian.AppendUint16(b, uint16(p.Child))
	b = append(b, p.Source.SrcIP[:]...)
	b = append(b, p.Source.DstIP[:]...)
	b = append(b, p.Source.SrcMAC[:]...)
	b = append(b, p.Source.DstMAC[:]...)
	var own [MaxChildren][4]byte
	for i, at := range p.Addresses {
		own[i] = at.As4()
	}
	for i := range own {
		b = append(b, own[i][:]...)
	}
	return a.put("config", b)
}

// Latch returns the counts since its previous call, by counter name and summed over all processors.
func (a *Aggregator) Latch() (map[string]uint64, error) {
	old := a.bank
	a.bank ^= 1
	if err := a.configure(); err != nil {
		return nil, err
	}
	if err := a.settle(); err != nil {
		return nil, err
	}
	return a.drain(old)
}

// Fragment reads the state of a fragment and, if lanes is not nil, its sum. lanes must have room for the longest
// fragment. The state is read under the fragment's lock. If the sum is read too, the state is read before and after it,
// to ensure that both match.
func (a *Aggregator) Fragment(i int, lanes []uint32) (xagg.Fragment, error) {
	for {
		before, err := a.state(i)
		if err != nil || lanes == nil {
			return before, err
		}
		sum, err := a.collection.Maps["sums"].LookupBytes(uint32(i))
		if err != nil {
			return xagg.Fragment{}, fmt.Errorf("xdp: xagg: read fragment %d: %w", i, err)
		}
		after, err := a.state(i)
		if err != nil {
			return xagg.Fragment{}, err
		}
		if before != after {
			continue
		}
		for k := range min(len(lanes), int(after.Lanes)) {
			lanes[k] = uint32(binary.NativeEndian.Uint64(sum[k/2*wordBytes:]) >> (32 * (1 - k%2)))
		}
		return after, nil
	}
}

// slotState is the memory layout of a fragment in the kernel program (bpf/xagg.c).
type slotState struct {
	_             uint32 // lock
	Epoch, Lanes  uint16
	Bitmap        uint64
	NewestNS      uint64
	_             uint64
	Inside, Count uint32
	_             [24]byte
}

func (s *slotState) fragment() xagg.Fragment {
	return xagg.Fragment{Epoch: s.Epoch, Lanes: s.Lanes, Bitmap: s.Bitmap, NewestNS: s.NewestNS, Inside: int(s.Inside),
		Count: int(s.Count)}
}

func (a *Aggregator) state(i int) (xagg.Fragment, error) {
	var s slotState
	if err := a.collection.Maps["slots"].LookupWithFlags(uint32(i), &s, ebpf.LookupLock); err != nil {
		return xagg.Fragment{}, fmt.Errorf("xdp: xagg: read fragment %d: %w", i, err)
	}
	return s.fragment(), nil
}

// Fragments reads the states of the first n fragments, each under its own lock. The result is valid until the next
// call.
func (a *Aggregator) Fragments(n int) ([]xagg.Fragment, error) {
	if len(a.states) < n {
		a.keys, a.states = make([]uint32, a.build.Fragments), make([]slotState, a.build.Fragments)
		a.fragments = make([]xagg.Fragment, a.build.Fragments)
	}
	got, err := a.collection.Maps["slots"].BatchLookup(new(ebpf.MapBatchCursor), a.keys[:n], a.states[:n],
		&ebpf.BatchOptions{ElemFlags: uint64(ebpf.LookupLock)})
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) || got < n {
		return nil, fmt.Errorf("xdp: xagg: read %d of %d fragments: %w", got, n, err)
	}
	for i := range n {
		a.fragments[i] = a.states[i].fragment()
	}
	return a.fragments[:n], nil
}

// NextCheck removes and returns the oldest requested check. It returns false if there is none.
func (a *Aggregator) NextCheck() (Check, bool, error) {
	var b []byte
	err := a.collection.Maps["checks"].LookupAndDelete(nil, &b)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return Check{}, false, nil
	}
	if err != nil {
		return Check{}, false, fmt.Errorf("xdp: xagg: read a check: %w", err)
	}
	return Check{
		Child: olaf.WorkerID(binary.NativeEndian.Uint16(b)), Epoch: binary.NativeEndian.Uint16(b[2:]),
		Fragment: binary.NativeEndian.Uint32(b[4:]),
	}, true, nil
}
