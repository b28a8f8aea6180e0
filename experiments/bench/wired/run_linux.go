package wired

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/frame"
	machine "github.com/olafctl/olaf/fpga/host"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/realtime"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// run is the state of one run on wires.
type run struct {
	net    *closedloop.Network
	job    *closedloop.Job
	parts  *system.Parts
	framer *closedloop.Framer
	names  []string
	nodes  map[[4]byte]int // by address
	root   int             // the switch's node
	values *values
	inside *insides // nil if a round's sum contains all workers
	work   Work     // nil for values that are known in advance
	seed   uint64

	lab     *netlab.Lab
	links   *realtime.Links
	program program.Program
	sw      *machine.Switch
	hosts   []*host
	sockets []*netlab.Socket
	begun   time.Time
	over    atomic.Bool

	mu    sync.Mutex // for the following fields and the job's callbacks
	meter meter
}

// Run runs a job in real time, through the switch program that parts.Root makes. sync means that workers wait for the
// complete sum. The error matches ErrNetwork for settings that only the simulator supports, or netlab.ErrRights if a
// right is missing. Other errors come from the parts or the context.
func Run(ctx context.Context, net closedloop.Network, job closedloop.Job, parts system.Parts, sync bool,
	seed uint64) (*Played, error) {
	r := &run{net: &net, job: &job, parts: &parts, seed: splitmix.MixBits(seed)}
	if !sync {
		r.inside = newInsides()
	}
	return r.play(ctx)
}

// RunWork runs a job like Run, for workers that wait for the complete sum. work computes their vectors and ends the
// run. The values of sums are not checked.
func RunWork(ctx context.Context, net closedloop.Network, job closedloop.Job, parts system.Parts, work Work,
	seed uint64) (*Played, error) {
	return (&run{net: &net, job: &job, parts: &parts, seed: splitmix.MixBits(seed), work: work}).play(ctx)
}

// play builds the network, runs the job and returns the result.
func (r *run) play(ctx context.Context) (played *Played, err error) {
	if err := r.checkSettings(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.closeAll()) }()
	if err := r.buildNetwork(); err != nil {
		return nil, err
	}
	if err := r.playHosts(ctx); err != nil {
		return nil, err
	}
	return r.makeResult()
}

// checkSettings rejects settings that only the simulator supports, and sets defaults.
func (r *run) checkSettings() error {
	r.net.Jobs = max(1, r.net.Jobs)
	switch {
	case r.parts.Frame == nil:
		return fmt.Errorf("%w: packets of this system have no frames", ErrNetwork)
	case r.net.PerRack > 0 || r.net.Tree != nil || r.net.Hops != nil:
		return fmt.Errorf("%w: hosts are connected to one switch, and only the simulator has racks below it; "+
			"leave them out", ErrNetwork)
	case r.inside != nil && r.net.Link.Loss > 0:
		return fmt.Errorf("%w: the contents of asynchronous frames are known only by their order, which loss destroys; leave out --loss", ErrNetwork)
	}
	return nil
}

// hostCount returns the number of hosts. Servers are numbered after all workers.
func (r *run) hostCount() int {
	n := r.net.Jobs * r.net.Workers
	if r.parts.Server != nil {
		n += r.net.Jobs
	}
	return n
}

// buildNetwork creates the hosts, cables and links, and the switch.
func (r *run) buildNetwork() error {
	r.meter = newMeter(r)
	most, err := r.buildSwitch()
	if err != nil {
		return err
	}
	r.values = newValues(r.seed, r.net.Workers, most, r.job.Layout.Values,
		cmp.Or(r.parts.Arithmetic, r.parts.Program.Arithmetic))
	if r.lab, err = netlab.New(); err != nil {
		return err
	}
	hub, err := r.lab.Node("switch")
	if err != nil {
		return err
	}
	for i := range r.hostCount() {
		if err := r.addHost(hub, i); err != nil {
			return err
		}
	}
	return nil
}

// buildSwitch creates the switch without its ports, and returns the largest number of gradients per sum.
func (r *run) buildSwitch() (most int, err error) {
	r.names = r.net.NodeNames(r.parts.Server != nil)
	r.framer = closedloop.NewFramer(r.parts.Frame, r.net, r.parts.Server != nil)
	r.root, r.nodes = r.hostCount(), map[[4]byte]int{}
	for i := range r.names {
		r.nodes[r.framer.Address(i).SrcIP] = i
	}
	if most, err = r.installProgram(); err != nil {
		return 0, err
	}
	r.links = realtime.OpenLinks()
	r.sw = &machine.Switch{Program: r.program, Format: r.parts.Frame, Links: r.links, Own: r.framer.Address(r.root),
		Passes: r.parts.Passes, Now: r.runTime}
	r.sw.OnArrival = func(_ olaf.Time, _ int, v *frame.View, p *program.Packet, lanes []uint32) {
		r.completePacket(v, p)
		r.tapFrame(r.root, v, p, lanes)
	}
	r.sw.OnDeparture = r.recordLeaving
	return most, nil
}

// installProgram creates the switch program and configures its jobs. It returns the largest number of gradients in one
// sum.
func (r *run) installProgram() (most int, err error) {
	jobs, err := closedloop.PlanJobs(*r.net, *r.job, *r.parts, r.inside == nil)
	if err != nil {
		return 0, err
	}
	build := r.parts.Build
	build.LaneMemory = r.parts.PerPacket
	if r.program, err = r.parts.Root(build); err != nil {
		return 0, err
	}
	most = r.net.Workers
	for _, j := range jobs {
		if err := r.program.Configure(j); err != nil {
			return 0, err
		}
		most = max(most, int(j.Fan))
	}
	return most, nil
}

// completePacket adds the recorded trace to a packet that the switch program is about to process. It does nothing
// unless workers are asynchronous.
func (r *run) completePacket(v *frame.View, p *program.Packet) {
	outer := v.Outer()
	if r.inside == nil || outer.DstIP != r.sw.Own.SrcIP { // the receiver completes forwarded packets
		return
	}
	t := r.inside.takeTrace(way{r.nodes[outer.SrcIP], r.root})
	p.Trace.Set(&t)
	if p.Kind == program.Data {
		r.inside.recordArrival(r.place(p), t.Inside)
	}
}

// recordLeaving records the trace of a frame that the switch sends, and the contents of a sum.
func (r *run) recordLeaving(outer *frame.Outer, p *program.Packet) {
	if r.inside == nil {
		return
	}
	if p.Kind == program.Result {
		at := r.place(p)
		if all := r.inside.recordSum(at, p.Inside); all != nil {
			if heard, listens := r.job.Observer.(Listener); listens {
				r.doLocked(func(olaf.Time) { heard.OnSum(at.job, p.Inside, all) })
			}
		}
	}
	r.inside.recordFrame(way{r.nodes[outer.SrcIP], r.nodes[outer.DstIP]}, &p.Trace)
}

func (r *run) place(p *program.Packet) place { return place{int(p.Job - closedloop.FirstJob), p.Seg} }

// leastMTU is the smallest MTU of the cables. It is Ethernet's standard MTU.
const leastMTU = 1500

// addHost creates a host and connects it to a new port of the switch.
func (r *run) addHost(hub *netlab.Node, number int) error {
	cable, err := r.layCable(hub, number)
	if err != nil {
		return err
	}
	own, err := r.openSocket(cable.A)
	if err != nil {
		return err
	}
	h, err := r.newHost(number, own)
	if err != nil {
		return err
	}
	r.hosts = append(r.hosts, h)
	return r.addPort(number, cable.B)
}

// layCable creates the namespace of a host, and the cable from the host to the switch.
func (r *run) layCable(hub *netlab.Node, number int) (*netlab.Cable, error) {
	node, err := r.lab.Node(r.names[number])
	if err != nil {
		return nil, err
	}
	return netlab.ConnectNodes(netlab.End{Node: node, Name: HostInterface},
		netlab.End{Node: hub, Name: fmt.Sprintf("port%d", number)}, max(leastMTU, r.frameBytes()))
}

// frameBytes returns the length of a full frame.
func (r *run) frameBytes() int {
	full := program.Packet{Kind: program.Data, Job: closedloop.FirstJob, Lanes: uint16(r.parts.PerPacket)}
	return int(r.parts.FrameSize(&full, false))
}

// addPort adds the switch's port to a host.
func (r *run) addPort(number int, at *netlab.Interface) error {
	port, err := r.openSocket(at)
	if err != nil {
		return err
	}
	all := r.net.Jobs * r.net.Workers
	r.sw.Ports = append(r.sw.Ports, machine.Port{
		Socket: port, Link: r.links.AddLink(port, r.linkConfig(2*number+1)), Host: r.framer.Address(number),
		Job: closedloop.FirstJob + olaf.ClusterID(r.jobOf(number)), Server: number >= all,
	})
	return nil
}

// openSocket opens a socket at one end of a cable.
func (r *run) openSocket(at *netlab.Interface) (*netlab.Socket, error) {
	s, err := at.Packets(true)
	if err == nil {
		r.sockets = append(r.sockets, s)
	}
	return s, err
}

// linkConfig returns the configuration for one direction of a link. Directions are numbered.
func (r *run) linkConfig(number int) realtime.LinkConfig {
	l := &r.net.Link
	return realtime.LinkConfig{Rate: l.Rate, Overhead: l.Overhead, Delay: l.Delay, Loss: l.Loss,
		Seed: r.seed ^ uint64(number+1)<<32}
}

// newHost creates a host that sends and receives through socket.
func (r *run) newHost(number int, socket *netlab.Socket) (*host, error) {
	h := &host{
		run: r, number: number, socket: socket, ears: netlab.NewEars(socket),
		link: r.links.AddLink(socket, r.linkConfig(2*number)), addresses: r.framer.Address(number),
		job: number / r.net.Workers, worker: number % r.net.Workers, computed: endpoint.Never, applied: endpoint.Never,
		in: make([]byte, 1<<16), out: make([]byte, olaf.MaxFrame), lanes: make([]uint32, olaf.MaxLanes),
		draw: splitmix.MixBits(r.seed ^ uint64(number)<<40 ^ 0x6a09e667),
	}
	cfg := endpoint.Config{Workers: r.net.Workers, Layout: r.job.Layout, Updates: r.job.Updates, Line: r.net.Link.Rate}
	build := r.parts.Worker
	if all := r.net.Jobs * r.net.Workers; number >= all {
		h.job, h.worker, h.server, build = number-all, r.net.Workers, true, r.parts.Server
	} else {
		h.values, cfg.Worker = make([]uint32, r.job.Layout.Values), olaf.WorkerID(h.worker)
	}
	cfg.Job = closedloop.FirstJob + olaf.ClusterID(h.job)
	if r.job.Apart > 0 {
		h.starts = olaf.Time(splitmix.MixBits(r.seed^uint64(number)<<40^0xbb67ae85) % uint64(r.job.Apart))
	}
	var err error
	h.end, err = build(cfg, h)
	return h, err
}

// runTime returns the time since the start of the run.
func (r *run) runTime() olaf.Time { return olaf.Time(time.Since(r.begun)) * olaf.Time(olaf.Nanosecond) }

// doLocked calls do with the current time while it holds the run's lock, and returns that time.
func (r *run) doLocked(do func(now olaf.Time)) olaf.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.runTime()
	do(now)
	return now
}

// tapFrame passes a frame that arrived at a node to the tap. It returns the time of arrival.
func (r *run) tapFrame(node int, v *frame.View, p *program.Packet, lanes []uint32) olaf.Time {
	if r.job.Tap == nil {
		return r.runTime()
	}
	outer := v.Outer()
	return r.doLocked(func(now olaf.Time) {
		r.job.Tap(&closedloop.Frame{At: now, From: r.nodes[outer.SrcIP], To: node, For: r.nodes[outer.DstIP],
			Past: outer.Past, Packet: p, Lanes: lanes})
	})
}

// lookEvery is the interval between checks for the end of a run. arriveTime is the longest time that frames are in
// flight, because their receiver may wait for most of a second while the kernel prefers real-time threads.
const (
	lookEvery  = time.Millisecond
	arriveTime = 2 * time.Second
)

// playHosts runs all hosts until they are done and nothing is in flight, or until the time limit.
func (r *run) playHosts(ctx context.Context) error {
	r.begun = time.Now()
	r.sw.Start()
	hosts, playing := errgroup.WithContext(ctx) // cancelled at the first failure
	for _, h := range r.hosts {
		hosts.Go(h.playHost)
	}
	r.awaitEnd(playing)
	r.over.Store(true)
	return errors.Join(hosts.Wait(), ctx.Err(), r.sw.Close())
}

// awaitEnd waits until the run is over.
func (r *run) awaitEnd(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	limit := time.Duration(r.job.Limit / olaf.Nanosecond)
	var rests time.Time // time since which all hosts have been done
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.sw.Done():
			return
		case <-tick.C:
		}
		done := false
		r.doLocked(func(olaf.Time) { done = r.meter.done == len(r.hosts) || r.work != nil && r.work.Over() })
		switch {
		case !done && time.Since(r.begun) > limit:
			r.meter.hung = true
			return
		case !done:
		case rests.IsZero():
			rests = time.Now()
		case r.isQuiet(), time.Since(rests) > arriveTime:
			return
		}
	}
}

// isQuiet reports whether no frame is in flight.
func (r *run) isQuiet() bool {
	c := r.links.Counts()
	return c.Waits == 0 && r.countArrived() >= c.Sent
}

// countArrived returns the number of frames that arrived at the ends of the cables.
func (r *run) countArrived() uint64 {
	c := r.sw.Counts()
	n := c.Arrived
	for _, h := range r.hosts {
		n += h.arrived.Load()
	}
	return n
}

// closeAll closes the sockets, links and namespaces of the run.
func (r *run) closeAll() error {
	var errs []error
	if r.links != nil {
		errs = append(errs, r.links.Close())
	}
	for _, s := range r.sockets {
		errs = append(errs, s.Close())
	}
	if r.lab != nil {
		errs = append(errs, r.lab.Close())
	}
	return errors.Join(errs...)
}
