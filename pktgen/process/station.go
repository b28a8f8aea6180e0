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

// Switch is a switch program, or the agents of one whose data path is elsewhere.
type Switch interface {
	Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class
}

// Station plays a switch program over a socket: the root of a tree of servers, or the agents of one whose packets the kernel adds. What
// the kernel does not send is counted and as good as lost, as others may still be reached.
type Station struct {
	Codec  Codec
	Switch Switch
	// Number is what the station is to its parent.
	Number olaf.WorkerID
	// Port is the link by which packets of somebody come; false for strangers, who are not heard.
	Port func(from netip.Addr) (program.Port, bool)
	// To are the addresses of whom a packet is for, one for each copy.
	To func(to program.Dest, p *program.Packet) []netip.AddrPort
	// Beside does what else is to be done, before a station waits, every Every at least. nil does nothing.
	Beside func(out program.Out) error
	Every  time.Duration
	// Heard hears of every packet before the program does; false keeps it from that. nil lets all pass.
	Heard func(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32) bool
}

// StationReport is what a station did.
type StationReport struct {
	Counts map[string]uint64 `json:"counts,omitempty"` // the program's
	Traffic
	Strangers int  `json:"packets_of_strangers"`
	Adopted   bool `json:"adopted,omitempty"` // a root: workers became its own children
}

// standing is a station at work; it is where the program's packets go.
type standing struct {
	*Station
	*socket
	begun     time.Time
	strangers int
	failed    error
	own       program.Packet // that goes up
}

// Run plays until the context ends, which is no error. What the program counted is for the caller to add to the report.
func (s *Station) Run(ctx context.Context, conn *net.UDPConn) (*StationReport, error) {
	k := &standing{Station: s, socket: newSocket(conn, s.Codec), begun: time.Now()}
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

// turn is one round of listening, and of what is to be done beside it.
func (k *standing) turn(ctx context.Context) error {
	if k.Beside != nil {
		if err := k.Beside(k); err != nil {
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
	if k.Heard == nil || k.Heard(now, port, p, lanes) {
		k.Switch.Receive(now, port, p, lanes, k)
	}
}

// Emit implements program.Out.
func (k *standing) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	if to == program.Up { // what goes up is its own, and the packet is the program's
		k.own = *p
		k.own.Worker = k.Number
		p = &k.own
	}
	k.failed = cmp.Or(k.failed, k.write(p, lanes, 0, 0, netip.Addr{}, k.To(to, p)...))
}
