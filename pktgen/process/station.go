package process

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Switch is a switch program, or the agents of a program whose data path runs elsewhere.
type Switch interface {
	Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class
}

// Station runs a switch program over a socket. It is either the root of a tree of servers or the agent of an aggregator
// in the kernel. Packets that the kernel rejects are counted and treated as lost, since other destinations may still be
// reachable.
type Station struct {
	Codec  Codec
	Switch Switch
	// Number is the station's number at its parent.
	Number olaf.WorkerID
	// Port returns the port for a sender's address, or false for unknown senders, whose packets are ignored.
	Port func(from netip.Addr) (program.Port, bool)
	// To returns the addresses for a packet, one per copy.
	To func(to program.Dest, p *program.Packet) []netip.AddrPort
	// BeforeWait, if not nil, is called before each wait of the station, and at least once per interval Every.
	BeforeWait func(out program.Out) error
	Every      time.Duration
	// Joins sends successive packets for one address in one piece, with checksums. It requires that no kernel program
	// reads them.
	Joins bool
	// Accept, if not nil, is called with every packet before the program gets it; false drops the packet.
	Accept func(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32) bool
}

// StationReport is the result of a station.
type StationReport struct {
	Counts map[string]uint64 `json:"counts,omitempty"` // counters of the program
	Traffic
	Strangers int  `json:"packets_of_strangers"`
	Adopted   bool `json:"adopted,omitempty"` // at a root: the workers became its own children
}

// standing is a station that is running. It implements program.Out.
type standing struct {
	*Station
	*socket
	begun     time.Time
	strangers int
	failed    error
	own       program.Packet // copy of the packet that is sent upwards
}

// Run runs the station until the context ends, which is not an error. The caller adds the counters of the program to
// the report.
func (s *Station) Run(ctx context.Context, conn *net.UDPConn) (*StationReport, error) {
	k := &standing{Station: s, socket: newSocket(conn, s.Codec), begun: time.Now()}
	k.joinPackets(s.Joins)
	defer context.AfterFunc(ctx, k.wake)()
	var err error
	for err == nil && ctx.Err() == nil {
		err = k.turn(ctx)
	}
	if ctx.Err() != nil {
		err = nil
	}
	return &StationReport{Traffic: k.traffic, Strangers: k.strangers}, err
}

// turn receives packets once and then calls BeforeWait.
func (k *standing) turn(ctx context.Context) error {
	if k.BeforeWait != nil {
		if err := k.BeforeWait(k); err != nil {
			return err
		}
	}
	k.flush()
	until := time.Now().Add(idle)
	if k.Every > 0 {
		until = time.Now().Add(k.Every)
	}
	if err := k.conn.SetReadDeadline(until); err != nil || ctx.Err() != nil {
		return err
	}
	if _, err := k.read(k.receive); err != nil {
		return err
	}
	return k.failed
}

func (k *standing) receive(p *program.Packet, lanes []uint32, from netip.AddrPort) {
	port, known := k.Port(from.Addr().Unmap())
	if !known {
		k.strangers++
		return
	}
	now := olaf.Time(time.Since(k.begun)) * olaf.Time(olaf.Nanosecond)
	if k.Accept == nil || k.Accept(now, port, p, lanes) {
		k.Switch.Receive(now, port, p, lanes, k)
	}
}

// Emit implements program.Out.
func (k *standing) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	if to == program.Up { // copied, since the packet belongs to the program
		k.own = *p
		k.own.Worker = k.Number
		p = &k.own
	}
	k.failed = cmp.Or(k.failed, k.write(p, lanes, 0, 0, netip.Addr{}, k.To(to, p)...))
}
