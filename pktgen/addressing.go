package pktgen

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Addressing configures the addresses in the testbed. Worker w has the IPv4 address Workers + w. Every MAC address is
// locally administered and ends in the IPv4 address, so that each can be computed from the other.
type Addressing struct {
	Workers netip.Addr // address of worker 0
	Server  netip.Addr // address of the parameter server
}

// DefaultAddressing returns an addressing with workers at 10.1.0.0 and the following addresses, and the parameter
// server at 10.0.0.1.
func DefaultAddressing() Addressing {
	return Addressing{netip.AddrFrom4([4]byte{10, 1, 0, 0}), netip.AddrFrom4([4]byte{10, 0, 0, 1})}
}

// Validate rejects addresses that are not IPv4 or that exceed the address space, and a server address that is also a
// worker's address. The error matches ErrWorkload.
func (a Addressing) Validate(workers int) error {
	if !a.Workers.Is4() || !a.Server.Is4() {
		return fmt.Errorf("%w: addresses %v and %v must be IPv4", ErrWorkload, a.Workers, a.Server)
	}
	base, server := ipNumber(a.Workers), ipNumber(a.Server)
	if uint64(base)+uint64(workers) > 1<<32 {
		return fmt.Errorf("%w: %d workers from %v leave the IPv4 address space", ErrWorkload, workers, a.Workers)
	}
	if server-base < uint32(workers) { // false if the server's address is below base, since the difference wraps
		return fmt.Errorf("%w: the server's address %v is that of worker %d", ErrWorkload, a.Server, server-base)
	}
	return nil
}

// WorkerAddresses returns the source and destination addresses of frames from worker w.
func (a Addressing) WorkerAddresses(w int) olaf.Addresses {
	src, dst := ipOctets(ipNumber(a.Workers)+uint32(w)), a.Server.As4()
	// The source ports are spread over the dynamic ports, so that a server's receive queues share the load.
	port := uint16(49152 + w%16384)
	return olaf.Addresses{SrcMAC: macOf(src), DstMAC: macOf(dst), SrcIP: src, DstIP: dst, SrcPort: port}
}

// makeFlow returns the generator flow for one segment of the updates of worker w.
func (a Addressing) makeFlow(w, segment int, p Placement, size olaf.Size, template uint16, wire Wire) regmap.Flow {
	d := a.WorkerAddresses(w)
	return regmap.Flow{
		SourceIP: d.SrcIP, DestIP: d.DstIP, SourceMAC: d.SrcMAC, DestMAC: d.DstMAC,
		SourcePort: d.SrcPort, DestPort: olaf.UDPPort,
		Cluster: p.Cluster(w), Worker: olaf.WorkerID(w),
		Length: uint16(size), Template: template, Enable: true, Seg: uint64(segment), Format: wire.Format,
		ToS: wire.ToS,
	}
}

func macOf(ip [4]byte) [6]byte { return [6]byte{2, 0, ip[0], ip[1], ip[2], ip[3]} }

func ipNumber(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func ipOctets(v uint32) (b [4]byte) {
	binary.BigEndian.PutUint32(b[:], v)
	return b
}
