package process

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// Root is a parameter server above one aggregator, which gets whole sums: the root of a tree whose other servers add in the kernel.
type Root struct {
	Station
	server *xagg.Server
	c      RootConfig

	heard   time.Time // the aggregator, last; zero before it was
	adopted bool      // workers are the root's own children
	met     []bool    // of those, who is heard as one
	told    time.Time // when the others were told last
}

// RootConfig is what a Root is made of.
type RootConfig struct {
	Job     Job
	Group   int       // packets that are acknowledged together; 0 is as published
	Line    olaf.Rate // that its link takes, for the rates that it grants; 0 is without a limit
	Agent   netip.AddrPort
	Workers []netip.AddrPort // who gets every sum
	Codec   Codec
	// Adopt is for how long the aggregator may be silent, once it was heard, before the job is over. Then the tree is changed: workers become the
	// root's own children (paper, §V), and are told so until they are heard. 0 never does. A root that adopts is one job's.
	Adopt time.Duration
}

// tellEvery is how often workers are told of a change of the tree that are not heard yet, and look how often a root looks whether there is one.
const (
	tellEvery = 100 * time.Millisecond
	look      = 10 * time.Millisecond
)

// NewRoot builds a parameter server. The error matches ErrConfig or program.ErrConfig.
func NewRoot(c RootConfig) (*Root, error) {
	if err := c.Job.Check(); err != nil {
		return nil, err
	}
	if c.Adopt < 0 {
		return nil, fmt.Errorf("%w: workers are taken over after a silence of %v; use more than 0, or 0 for never", ErrConfig, c.Adopt)
	}
	// The vectors of attached programs begin with lanes of their own, for which there is one fragment more.
	s, err := xagg.New(program.Config{Slots: c.Job.Packets() + 1, LaneMemory: c.Job.Lanes})
	if err != nil {
		return nil, err
	}
	if err := s.SetGroup(c.Group); err != nil {
		return nil, err
	}
	r := &Root{server: s, c: c, met: make([]bool, len(c.Workers))}
	if err := s.Configure(r.children(1)); err != nil {
		return nil, err
	}
	r.Station = Station{Codec: c.Codec, Switch: s, Port: r.port, To: r.to}
	if c.Adopt > 0 {
		r.Every, r.Beside, r.Heard = look, r.watch, r.hears
	}
	return r, nil
}

// port is behind which port an address is. Who was the child before a change is behind none that has a child, so that its sums are refused.
func (r *Root) port(from netip.Addr) (program.Port, bool) {
	worker := slices.IndexFunc(r.c.Workers, func(at netip.AddrPort) bool { return at.Addr() == from })
	switch {
	case from == r.c.Agent.Addr() && r.adopted:
		return program.Port(len(r.c.Workers)), true
	case from == r.c.Agent.Addr():
		return 0, true
	}
	return program.Port(worker), worker >= 0 && r.adopted
}

// to are the addresses of whom a packet is for.
func (r *Root) to(to program.Dest, _ *program.Packet) []netip.AddrPort {
	switch {
	case to == program.Down:
		return r.c.Workers
	case r.adopted && to >= 0 && int(to) < len(r.c.Workers):
		return r.c.Workers[to : to+1]
	case r.adopted:
		return nil
	}
	return []netip.AddrPort{r.c.Agent}
}

// hears notes who was heard.
func (r *Root) hears(_ olaf.Time, from program.Port, _ *program.Packet, _ []uint32) bool {
	switch {
	case !r.adopted:
		r.heard = time.Now()
	case int(from) < len(r.met):
		r.met[from] = true
	}
	return true
}

// watch changes the tree where the aggregator is silent in the middle of the job, and tells workers of it that are not heard yet.
func (r *Root) watch(out program.Out) error {
	if !r.adopted {
		over := r.server.Counts()[xagg.Completed] >= uint64(r.c.Job.Vectors*r.c.Job.Packets())
		if over || r.heard.IsZero() || time.Since(r.heard) < r.c.Adopt {
			return nil
		}
		if err := r.server.Configure(r.children(len(r.c.Workers))); err != nil {
			return err
		}
		r.adopted = true
	}
	if time.Since(r.told) < tellEvery {
		return nil
	}
	r.told = time.Now()
	for i, met := range r.met {
		if !met {
			renew := program.Packet{Kind: program.Control, Action: xagg.Renew, Job: r.c.Job.ID, Worker: olaf.WorkerID(i), Value: 1}
			out.Emit(program.Dest(i), &renew, nil)
		}
	}
	return nil
}

// children is the job as the root's program knows it, with so many children.
func (r *Root) children(n int) program.Job {
	j := program.Job{ID: r.c.Job.ID, In: r.c.Line, Out: r.c.Line}
	for i := range n {
		j.Members = append(j.Members, program.Member{Worker: olaf.WorkerID(i), Port: program.Port(i)})
	}
	return j
}

// Run plays until the context ends.
func (r *Root) Run(ctx context.Context, conn *net.UDPConn) (*StationReport, error) {
	report, err := r.Station.Run(ctx, conn)
	report.Counts = CountsOf(r.server)
	report.Adopted = r.adopted
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
