package pktgen

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Addressing says which addresses the testbed uses. Worker w has the IPv4 address Workers + w; every MAC is locally
// administered and ends in its IPv4 address, so that both can be told from either.
type Addressing struct {
	Workers netip.Addr // of worker 0
	Server  netip.Addr // of the parameter server
}

// DefaultAddressing has workers from 10.1.0.0 on and the parameter server at 10.0.0.1.
func DefaultAddressing() Addressing {
	return Addressing{netip.AddrFrom4([4]byte{10, 1, 0, 0}), netip.AddrFrom4([4]byte{10, 0, 0, 1})}
}

// Validate refuses addresses that are not IPv4, leave the address space, or give the server a worker's address. The error
// matches ErrWorkload.
func (a Addressing) Validate(workers int) error {
	if !a.Workers.Is4() || !a.Server.Is4() {
		return fmt.Errorf("%w: addresses %v and %v must be IPv4", ErrWorkload, a.Workers, a.Server)
	}
	base, server := number(a.Workers), number(a.Server)
	if uint64(base)+uint64(workers) > 1<<32 {
		return fmt.Errorf("%w: %d workers from %v leave the IPv4 address space", ErrWorkload, workers, a.Workers)
	}
	if server-base < uint32(workers) { // also false when the server lies below
		return fmt.Errorf("%w: the server's address %v is that of worker %d", ErrWorkload, a.Server, server-base)
	}
	return nil
}

// Worker is where frames of worker w come from and go to.
func (a Addressing) Worker(w int) olaf.Addresses {
	src, dst := octets(number(a.Workers)+uint32(w)), a.Server.As4()
	return olaf.Addresses{SrcMAC: hardware(src), DstMAC: hardware(dst), SrcIP: src, DstIP: dst, SrcPort: sourcePort(w)}
}

// Answer is where frames of the parameter server to worker w come from and go to.
func (a Addressing) Answer(w int) olaf.Addresses {
	d := a.Worker(w)
	d.SrcMAC, d.DstMAC, d.SrcIP, d.DstIP, d.SrcPort = d.DstMAC, d.SrcMAC, d.DstIP, d.SrcIP, olaf.UDPPort
	return d
}

// Lookup says which of the workers has an address.
func (a Addressing) Lookup(ip [4]byte, workers int) (w int, ok bool) {
	d := binary.BigEndian.Uint32(ip[:]) - number(a.Workers)
	return int(d), uint64(d) < uint64(workers)
}

// flow is the generator's entry of a segment of worker w.
func (a Addressing) flow(w, segment int, p Placement, size olaf.Size, template uint16, wire Wire) regmap.Flow {
	d := a.Worker(w)
	return regmap.Flow{
		SourceIP: d.SrcIP, DestIP: d.DstIP, SourceMAC: d.SrcMAC, DestMAC: d.DstMAC,
		SourcePort: d.SrcPort, DestPort: olaf.UDPPort,
		Cluster: p.Cluster(w), Worker: olaf.WorkerID(w),
		Length: uint16(size), Template: template, Enable: true, Seg: uint64(segment), Format: wire.Format,
		ToS: wire.ToS,
	}
}

// sourcePort spreads workers over the dynamic ports, so that a server's receive queues share the load.
func sourcePort(w int) uint16 { return uint16(49152 + w%16384) }

func hardware(ip [4]byte) [6]byte { return [6]byte{2, 0, ip[0], ip[1], ip[2], ip[3]} }

func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func octets(v uint32) (b [4]byte) {
	binary.BigEndian.PutUint32(b[:], v)
	return b
}
