package lab

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// agent is the control plane of an aggregator in the kernel. It requests the missing packets of groups and vectors,
// resends sums, and divides rates (fpga/program/xagg). It runs as long as the testbed.
type agent struct {
	server  *xagg.Server
	adder   *Adder
	job     olaf.ClusterID
	station process.Station
	conn    *net.UDPConn
	tasks   chan func() // for the agent's goroutine
	stop    context.CancelFunc
	ended   chan struct{}
	failed  error         // the model's error
	err     error         // the goroutine's error; valid after it ended
	past    atomic.Uint64 // data packets that reached the agent although the program should have taken them
}

// look is the interval at which an agent checks whether groups have ended.
const look = 2 * time.Millisecond

// serve starts the agent for an adder.
func (l *Lab) serve(a *Adder, number olaf.WorkerID) (err error) {
	n := &l.Plan.Nodes[a.Planned.Node]
	g := &agent{adder: a, job: l.Job, tasks: make(chan func()), ended: make(chan struct{})}
	cfg := program.Config{Slots: l.Fragments, LaneMemory: l.mostLanes()}
	if a.runsInKernel() {
		g.server, err = xagg.NewAgent(cfg, g)
	} else {
		if a.Planned.Wrapping {
			cfg.Profile = xagg.Wrapping
		}
		g.server, err = xagg.New(cfg)
	}
	if err != nil {
		return err
	}
	job := program.Job{ID: l.Job, Parent: true, In: a.Planned.Rate, Out: a.Planned.Rate}
	for i := range n.Down {
		job.Members = append(job.Members, program.Member{Worker: olaf.WorkerID(i), Port: program.Port(i)})
	}
	if err := errors.Join(g.server.SetGroup(l.Group), g.server.Configure(job)); err != nil {
		return err
	}
	node := a.Planned.Node
	g.station = process.Station{Codec: &frame.Datagrams{Format: frame.XAgg}, Switch: g.server, Number: number,
		Every: look, BeforeWait: g.checks}
	if a.runsInKernel() {
		g.station.Accept = g.hears
		g.server.SetEpochs(func(child int, action uint8, vectors uint64, ticket uint32) (uint16, xagg.Answer) {
			return l.epochs.HandleRequest(endpoint.Seat{Node: node, Child: child}, action, vectors, ticket)
		})
	}
	g.station.Port, g.station.To = l.neighbours(n)
	at := netip.AddrPortFrom(netip.IPv4Unspecified(), olaf.UDPPort)
	if g.conn, err = l.Nodes[a.Planned.Node].Datagrams(at); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	g.stop, a.agent = stop, g
	go func() {
		_, g.err = g.station.Run(ctx, g.conn)
		close(g.ended)
	}()
	return nil
}

// neighbours returns two functions for a node. The first returns the port behind which an address is, and the second
// the addresses of a destination.
func (l *Lab) neighbours(n *PlannedNode) (port func(netip.Addr) (program.Port, bool),
	to func(program.Dest, *program.Packet) []netip.AddrPort) {
	above := l.Plan.Cables[n.Up].Upper
	ports := map[netip.Addr]program.Port{above: program.Uplink}
	parent := []netip.AddrPort{netip.AddrPortFrom(above, olaf.UDPPort)}
	var children []netip.AddrPort
	for i, c := range n.Down {
		at := l.Plan.Cables[c].Lower
		ports[at] = program.Port(i)
		children = append(children, netip.AddrPortFrom(at, olaf.UDPPort))
	}
	port = func(from netip.Addr) (program.Port, bool) {
		p, known := ports[from]
		return p, known
	}
	to = func(to program.Dest, _ *program.Packet) []netip.AddrPort {
		switch {
		case to == program.Up:
			return parent
		case to >= 0:
			return children[to : to+1]
		}
		return children
	}
	return port, to
}

// Fragment implements xagg.Model. If the kernel's memory cannot be read, it reports all packets as missing.
func (g *agent) Fragment(i int, lanes []uint32) xagg.Fragment {
	f, err := g.adder.Fragment(i, lanes)
	if err != nil && g.failed == nil {
		g.failed = err
	}
	return f
}

// Fragments implements xagg.Model.
func (g *agent) Fragments(n int) []xagg.Fragment {
	all, err := g.adder.Fragments(n)
	if err != nil && g.failed == nil {
		g.failed = err
	}
	return all
}

// hears reports whether the agent accepts a packet. Data from a child reaches the agent only if the kernel's program
// was detached. From then on the agent ignores all packets, because its answers would make workers wait for sums that
// are never completed.
func (g *agent) hears(_ olaf.Time, from program.Port, p *program.Packet, _ []uint32) bool {
	if p.Kind == program.Data && from != program.Uplink {
		g.past.Add(1)
	}
	return g.past.Load() == 0
}

// checks requests the missing packets of groups whose last packets have arrived.
func (g *agent) checks(out program.Out) error {
	select {
	case task := <-g.tasks:
		task()
	default:
	}
	for g.failed == nil && g.adder.runsInKernel() {
		c, there, err := g.adder.NextCheck()
		if !there || err != nil {
			return err
		}
		g.server.CheckGroup(g.job, int(c.Child), c.Epoch, int(c.Fragment), out)
	}
	return g.failed
}

// fault returns the reason why the agent ended without being closed, or nil if it is still running.
func (g *agent) fault() error {
	select {
	case <-g.ended:
		return g.err
	default:
		return nil
	}
}

// Close stops the agent.
func (g *agent) Close() error {
	g.stop()
	<-g.ended
	_ = g.conn.Close() // nothing is buffered in it
	return g.err
}

// AgentCounts returns the counters of the adder's agent by name.
func (a *Adder) AgentCounts() (counts map[string]uint64) {
	done := make(chan struct{})
	count := func() { counts = process.CountsOf(a.agent.server) }
	select {
	case a.agent.tasks <- func() { count(); close(done) }:
		<-done
	case <-a.agent.ended:
		count()
	}
	return counts
}
