package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/cilium/ebpf"

	"github.com/olafctl/olaf/fpga/dataplane"
)

// probes is the number of places in which the programs search for a sender (bpf/senders.h).
const probes = 32

var errFull = errors.New("no room")

// SetSenders replaces the table of senders atomically. When it has returned, no frame is processed with the old table.
func (p *programs) SetSenders(list []dataplane.Sender) error {
	places := int(p.inner.ValueSize-senderHead) / senderBytes
	if len(list) > places/2 {
		return fmt.Errorf("xdp: %d senders; the programs were loaded with room for %d senders", len(list), places/2)
	}
	table, err := senderTable(list, places)
	if err != nil {
		return err
	}
	inner, err := ebpf.NewMap(p.inner)
	if err != nil {
		return fmt.Errorf("xdp: table of senders: %w: %w", ErrKernel, err)
	}
	if err := inner.Put(uint32(0), table); err != nil {
		_ = inner.Close()
		return fmt.Errorf("xdp: table of senders: %w: %w", ErrKernel, err)
	}
	old := p.table
	p.table = inner
	if err := p.settle(); err != nil {
		return err
	}
	if old != nil {
		return old.Close()
	}
	return nil
}

// senderTable returns a hash table of the senders in the form in which the programs search it. Each sender is at the
// hash of its address or shortly after. The function tries different hash multipliers until every sender is within the
// first probes places.
func senderTable(list []dataplane.Sender, places int) ([]byte, error) {
	multiplier := uint32(0x9E3779B1)
	for range 64 {
		if t, err := layTable(list, places, multiplier); err == nil || !errors.Is(err, errFull) {
			return t, err
		}
		multiplier += 0x3C6EF372 // the multiplier stays odd
	}
	return nil, fmt.Errorf("xdp: %d senders do not fit into %d places", len(list), places)
}

func layTable(list []dataplane.Sender, places int, multiplier uint32) ([]byte, error) {
	t := make([]byte, senderHead+places*senderBytes)
	shift := 32 - bits.TrailingZeros(uint(places))
	binary.NativeEndian.PutUint32(t, multiplier)
	binary.NativeEndian.PutUint32(t[4:], uint32(shift))
	for _, s := range list {
		if !s.Address.Is4() || s.Address.IsUnspecified() {
			return nil, fmt.Errorf("xdp: %v is not an IPv4 address of a sender", s.Address)
		}
		wire := s.Address.As4()
		address := binary.NativeEndian.Uint32(wire[:])
		at := int(address * multiplier >> shift)
		e, err := placeFor(t, at, places, address)
		if err != nil {
			return nil, err
		}
		binary.NativeEndian.PutUint32(e, address)
		binary.NativeEndian.PutUint16(e[4:], uint16(s.Cluster))
		binary.NativeEndian.PutUint16(e[6:], uint16(s.Worker))
	}
	return t, nil
}

// placeFor returns the first free place for an address, starting at index at.
func placeFor(t []byte, at, places int, address uint32) ([]byte, error) {
	for i := range probes {
		e := t[senderHead+(at+i)%places*senderBytes:]
		switch binary.NativeEndian.Uint32(e) {
		case 0:
			return e, nil
		case address:
			return nil, errors.New("xdp: an address is used by two senders")
		}
	}
	return nil, errFull
}
