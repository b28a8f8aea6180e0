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

// Root is a parameter server above a single aggregator, from which it receives complete sums. It is the root of a tree
// whose other servers run in the kernel.
type Root struct {
	Station
	server *xagg.Server
	c      RootConfig

	lastPacket time.Time // when the last packet from the aggregator arrived; zero before the first
	adopted    bool      // the workers are the root's children
	met        []bool    // adopted workers that have sent packets since
	lastNotice time.Time // when the other workers were last notified

	vectors  int       // number of complete sums of whole vectors
	vectorAt time.Time // when the last of these sums was complete; zero before the first
}

// RootConfig configures a Root.
type RootConfig struct {
	Job     Job
	Lanes   int       // number of lanes that a sum can have, if more than the job's
	Group   int       // number of packets that are acknowledged together; default as published
	Line    olaf.Rate // capacity of its link, for the granted rates; 0 for unlimited
	Agent   netip.AddrPort
	Workers []netip.AddrPort // receivers of every sum
	// Fanout, if valid, is a group address to which every sum is sent once; aggregators copy it to the workers.
	Fanout netip.AddrPort
	Codec  Codec
	// Adopt is the maximum silence of the aggregator after its first packet and before the end of the job. After a
	// longer silence the root changes the tree: the workers become its children (paper, §V), and are notified until
	// they send. 0 means never. A root that adopts workers serves one job.
	Adopt time.Duration
	// Slow is the longest acceptable time for a vector. After a vector that took longer, the root changes the tree in
	// the same way, because the aggregator is overloaded (paper, §V). 0 means that load does not change the tree.
	Slow time.Duration
}

// tellEvery is the interval at which silent workers are notified of a changed tree. look is the interval at which the
// aggregator is checked.
const (
	tellEvery = 100 * time.Millisecond
	look      = 10 * time.Millisecond
)

// NewRoot builds a parameter server. The error matches ErrConfig or program.ErrConfig.
func NewRoot(c RootConfig) (*Root, error) {
	if err := c.Job.Check(); err != nil {
		return nil, err
	}
	if c.Adopt < 0 || c.Slow < 0 {
		return nil, fmt.Errorf("%w: workers are taken over after a silence of %v or a vector of %v; use more than 0, or 0 for never",
			ErrConfig, c.Adopt, c.Slow)
	}
	// Vectors of attached programs begin with additional lanes, which need one more fragment.
	s, err := xagg.New(program.Config{Slots: c.Job.Packets() + 1, LaneMemory: max(c.Job.Lanes, c.Lanes)})
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
	if c.Adopt > 0 || c.Slow > 0 {
		r.Every, r.BeforeWait, r.Accept = look, r.watch, r.hears
	}
	return r, nil
}

// port returns the port of an address. When the tree has changed, the former child has a port to which no child is
// assigned, so that its sums are rejected.
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

// to returns the addresses to which a packet is sent.
func (r *Root) to(to program.Dest, _ *program.Packet) []netip.AddrPort {
	switch {
	case to == program.Down && r.c.Fanout.IsValid() && !r.adopted:
		return []netip.AddrPort{r.c.Fanout}
	case to == program.Down:
		return r.c.Workers
	case r.adopted && to >= 0 && int(to) < len(r.c.Workers):
		return r.c.Workers[to : to+1]
	case r.adopted:
		return nil
	}
	return []netip.AddrPort{r.c.Agent}
}

// hears records which host sent a packet.
func (r *Root) hears(_ olaf.Time, from program.Port, _ *program.Packet, _ []uint32) bool {
	switch {
	case !r.adopted:
		r.lastPacket = time.Now()
	case int(from) < len(r.met):
		r.met[from] = true
	}
	return true
}

// wasSlow reports whether a vector has been completed that took longer than Slow.
func (r *Root) wasSlow() bool {
	done := int(r.server.Counts()[xagg.Completed]) / r.c.Job.Packets()
	if done == r.vectors {
		return false
	}
	now := time.Now()
	slow := r.c.Slow > 0 && !r.vectorAt.IsZero() && now.Sub(r.vectorAt) > r.c.Slow*time.Duration(done-r.vectors)
	r.vectors, r.vectorAt = done, now
	return slow
}

// wasSilent reports whether nothing has arrived from the aggregator for longer than Adopt.
func (r *Root) wasSilent() bool {
	return r.c.Adopt > 0 && !r.lastPacket.IsZero() && time.Since(r.lastPacket) >= r.c.Adopt
}

// watch changes the tree if the aggregator is silent in the middle of the job or was slow. It also notifies the workers
// that have not sent packets since the change.
func (r *Root) watch(out program.Out) error {
	if !r.adopted {
		over := r.server.Counts()[xagg.Completed] >= uint64(r.c.Job.Vectors*r.c.Job.Packets())
		if slow := r.wasSlow(); over || !slow && !r.wasSilent() {
			return nil
		}
		if err := r.server.Configure(r.children(len(r.c.Workers))); err != nil {
			return err
		}
		r.adopted = true
	}
	if time.Since(r.lastNotice) < tellEvery {
		return nil
	}
	r.lastNotice = time.Now()
	for i, met := range r.met {
		if !met {
			renew := program.Packet{Kind: program.Control, Action: xagg.Renew, Job: r.c.Job.ID, Worker: olaf.WorkerID(i), Value: 1}
			out.Emit(program.Dest(i), &renew, nil)
		}
	}
	return nil
}

// children returns a job with n children for the root's switch program.
func (r *Root) children(n int) program.Job {
	j := program.Job{ID: r.c.Job.ID, In: r.c.Line, Out: r.c.Line}
	for i := range n {
		j.Members = append(j.Members, program.Member{Worker: olaf.WorkerID(i), Port: program.Port(i)})
	}
	return j
}

// Run runs the server until the context ends.
func (r *Root) Run(ctx context.Context, conn *net.UDPConn) (*StationReport, error) {
	r.Station.Joins = r.c.Fanout.IsValid()
	report, err := r.Station.Run(ctx, conn)
	report.Counts = CountsOf(r.server)
	report.Adopted = r.adopted
	return report, err
}

// CountsOf returns the counters of a tree server by name.
func CountsOf(s *xagg.Server) map[string]uint64 {
	counts, d := map[string]uint64{}, xagg.Describe()
	for i, n := range s.Counts() {
		counts[d.Ledger.Counters[i].Name] = n
	}
	return counts
}
