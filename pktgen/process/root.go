package process

import (
	"context"
	"net"
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// Root is a parameter server above one aggregator, which gets whole sums: the root of a tree whose other servers add in the kernel.
type Root struct {
	Station
	server *xagg.Server
}

// RootConfig is what a Root is made of.
type RootConfig struct {
	Job     Job
	Group   int       // packets that are acknowledged together; 0 is as published
	Line    olaf.Rate // that its link takes, for the rates that it grants; 0 is without a limit
	Agent   netip.AddrPort
	Workers []netip.AddrPort // who gets every sum
	Codec   Codec
}

// NewRoot builds a parameter server. The error matches ErrConfig or program.ErrConfig.
func NewRoot(c RootConfig) (*Root, error) {
	if err := c.Job.Check(); err != nil {
		return nil, err
	}
	s, err := xagg.New(program.Config{Slots: c.Job.Packets(), LaneMemory: c.Job.Lanes})
	if err != nil {
		return nil, err
	}
	if err := s.Acknowledge(c.Group); err != nil {
		return nil, err
	}
	if err := s.Configure(program.Job{ID: c.Job.ID, Members: []program.Member{{}}, In: c.Line, Out: c.Line}); err != nil {
		return nil, err
	}
	agent := []netip.AddrPort{c.Agent}
	r := &Root{server: s}
	r.Station = Station{
		Codec: c.Codec, Switch: s,
		Port: func(from netip.Addr) (program.Port, bool) { return 0, from == c.Agent.Addr() },
		To: func(to program.Dest, _ *program.Packet) []netip.AddrPort {
			if to == program.Down {
				return c.Workers
			}
			return agent
		},
	}
	return r, nil
}

// Run plays until the context ends.
func (r *Root) Run(ctx context.Context, conn *net.UDPConn) (*StationReport, error) {
	report, err := r.Station.Run(ctx, conn)
	report.Counts = CountsOf(r.server)
	return report, err
}

// CountsOf is what a server of a tree has counted, by name.
func CountsOf(s *xagg.Server) map[string]uint64 {
	counts, d := map[string]uint64{}, xagg.Describe()
	for i, n := range s.Counts() {
		counts[d.Ledger.Counters[i].Name] = n
	}
	return counts
}
