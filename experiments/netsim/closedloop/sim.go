package closedloop

import (
	"context"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/calendar"
	"github.com/olafctl/olaf/experiments/netsim/node"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// The kinds of events; of one instant, what was scheduled first happens first.
const (
	kindArrive   uint64 = iota << 56 // packet: it is at the node at the end of its wire
	kindHand                         // packet: a server's software is done with it
	kindComputed                     // host
	kindApplied                      // host
	kindTimer                        // host
	kindStart                        // host
	kindKill                         // a server of the tree ends
	kindNotice                       // the management changes the tree

	kindMask = uint64(0xff) << 56
)

// FirstJob is the id of the first job.
const FirstJob olaf.ClusterID = 1

// sim is the state of one run.
type sim struct {
	shape
	seed uint64
	sync bool
	// atWorkers says that workers apply sums themselves, and servers only add up.
	atWorkers bool
	net       *Network
	job       *Job
	grove     *grove          // of servers; nil where switches run the program
	renewal   *program.Packet // that workers are told when it changes
	future    *calendar.Queue
	now       int64
	number    uint64
	events    uint64
	limit     int64  // no event from here on happens without a pause
	rest      uint64 // number of events after which there is a pause
	wires     []wire
	switches  []station
	ledger    *olaf.Ledger // of their program
	parts     *system.Parts
	access    []int32   // wire of a host towards its switch
	homes     []int32   // and back
	routes    [][]int32 // of a tree of switches: wires by the switch at hand and the one that they lead to
	hosts     []*host
	packets   []packet
	spare     []int32
	taken     packet                 // by the host at hand, whose answers may move the packets
	sizes     [program.Control]sized // by kind; control packets come last
	out       emitter
	meter     meter
}

// packet is one on its way, on one wire at a time.
type packet struct {
	program.Packet
	lanes []uint32
	wire  int32
	from  int32 // node that made it
	// In a tree of servers: the node that it goes to.
	target int32
	took   int64 // by its last wire, from its first bit to its last

	to    endpoint.Peer
	first bool // of a message
}

// size is the length of its frame. What a worker answers another goes past the aggregators.
func (p *packet) size(s *sim) olaf.Size {
	past := p.to != endpoint.Network
	if p.Kind >= program.Control { // whose length is a matter of what it asks for
		return s.parts.Size(&p.Packet, past)
	}
	last := &s.sizes[p.Kind]
	if last.size == 0 || last.lanes != p.Lanes || last.past != past {
		*last = sized{p.Lanes, past, s.parts.Size(&p.Packet, past)}
	}
	return last.size
}

// sized is the length of the last frame of a kind; most are as long as the one before.
type sized struct {
	lanes uint16
	past  bool
	size  olaf.Size
}

// Run plays a job. sync says that workers wait for one another, for what is measured by rounds. The same arguments give the
// same Result. The error matches ErrConfig, or is the parts' own, or the context's.
func Run(ctx context.Context, net Network, job Job, parts system.Parts, sync bool, seed uint64) (*Result, error) {
	s, err := set(&net, &job, &parts, sync, seed)
	if err != nil {
		return nil, err
	}
	onTheWay := job.Packets()
	if parts.Window > 0 {
		onTheWay = min(onTheWay, parts.Window)
	}
	s.future = calendar.New(4*s.jobs*s.workers*onTheWay, int64(job.Compute)+int64(net.Link.Delay)+int64(olaf.Millisecond))
	s.meter = newMeter(s)
	if err := s.planKill(); err != nil {
		return nil, err
	}
	s.start()
	if err := s.play(ctx); err != nil {
		return nil, err
	}
	return s.result()
}

// Jobs are what the root switch is told of its jobs by Run with these arguments, or why hosts and switches can't be built of
// them, or not of what makes sense. Nothing plays.
func Jobs(net Network, job Job, parts system.Parts, sync bool) ([]program.Job, error) {
	s, err := set(&net, &job, &parts, sync, 0)
	if err != nil || parts.Program == nil || net.Tree != nil {
		return nil, err
	}
	if err := s.closesEarly(&parts); err != nil {
		return nil, err
	}
	jobs := make([]program.Job, s.jobs)
	for j := range jobs {
		jobs[j] = s.jobAt(&parts, 0, j)
	}
	return jobs, nil
}

// set builds hosts, wires and switches.
func set(net *Network, job *Job, parts *system.Parts, sync bool, seed uint64) (*sim, error) {
	if err := net.check(); err != nil {
		return nil, err
	}
	if err := job.check(); err != nil {
		return nil, err
	}
	s := &sim{
		shape: shapeOf(net, parts.Server != nil), seed: splitmix.Mix(seed), sync: sync, net: net, job: job, parts: parts,
		atWorkers: parts.Server == nil || parts.Window > 0,
	}
	s.out.sim = s
	s.build(net)
	if err := s.install(parts); err != nil {
		return nil, err
	}
	return s, s.addHosts(parts)
}

// start begins the jobs, each host at an instant of its own where they are to begin apart.
func (s *sim) start() {
	for _, h := range s.hosts {
		if s.job.Apart > 0 {
			s.push(int64(splitmix.Mix(s.seed^uint64(h.number)<<40^0xbb67ae85)%uint64(s.job.Apart)), kindStart|uint64(h.number))
			continue
		}
		h.begin()
	}
}

func (s *sim) play(ctx context.Context) error {
	end := int64(s.job.Limit)
	if s.limit, s.rest = end+1, seldom; s.job.Follow != nil {
		s.limit = 0 // it is asked before anything happens
	}
	for s.future.Len() > 0 && !s.over() {
		e := s.future.Pop()
		if e.At > end {
			break
		}
		if e.At >= s.limit || s.events >= s.rest {
			if on, err := s.pause(ctx, e.At); !on || err != nil {
				return err
			}
		}
		s.events++
		s.now = e.At
		if err := s.handle(&e); err != nil {
			return err
		}
	}
	if s.job.Follow == nil {
		return nil
	}
	if s.over() {
		end = s.now
	}
	_, err := s.pause(ctx, end)
	return err
}

func (s *sim) over() bool { return s.meter.doneHosts == len(s.hosts) && s.meter.inFlight == 0 }

func (s *sim) handle(e *calendar.Event) error {
	i := int32(uint32(e.What))
	switch e.What & kindMask {
	case kindArrive:
		s.arrive(i)
	case kindHand:
		h := s.hosts[s.wires[s.packets[i].wire].to]
		h.take(i)
	case kindComputed:
		s.hosts[i].computed()
	case kindApplied:
		s.hosts[i].applied()
	case kindTimer:
		s.hosts[i].timer()
	case kindStart:
		s.hosts[i].begin()
	case kindKill:
		s.kill()
	case kindNotice:
		return s.notice()
	}
	return nil
}

func (s *sim) push(at int64, what uint64) {
	s.number++
	s.future.Push(calendar.Event{At: at, Ord: s.number, What: what})
}

// room gives a place for a packet.
func (s *sim) room() int32 {
	if n := len(s.spare); n > 0 {
		i := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return i
	}
	s.packets = append(s.packets, packet{})
	return int32(len(s.packets) - 1)
}

// transmit hands packet i to a wire, at at or once the wire is free. It ends there when it is lost. Switches mark what finds
// much waiting.
func (s *sim) transmit(i, over int32, at int64) {
	w, p := &s.wires[over], &s.packets[i]
	arrives, takes, fate := w.Pass(at, p.took, p.size(s))
	if fate&node.Full != 0 {
		s.refuse(i)
		return
	}
	if fate&node.Marked != 0 {
		p.Flags |= program.ECN
		s.meter.marked++
	}
	p.took = takes
	if fate&node.Lost != 0 {
		if s.job.Observer != nil {
			s.job.Observer.Lost(olaf.Time(s.now), &p.Packet)
		}
		s.drop(i)
		return
	}
	p.wire = over
	s.push(arrives, kindArrive|uint64(uint32(i)))
}

// drop ends packet i.
func (s *sim) drop(i int32) {
	s.spare = append(s.spare, i)
	s.meter.inFlight--
}

func (s *sim) arrive(i int32) {
	p := &s.packets[i]
	w := &s.wires[p.wire]
	s.meter.arrived++
	if s.job.Tap != nil {
		s.tap(w, p)
	}
	if to := int(w.to); to < len(s.hosts) {
		if s.hosts[to].server {
			s.meter.served++
		}
		s.hosts[to].reach(i)
		return
	}
	at := int(w.to) - s.root()
	if s.routes != nil && p.to == endpoint.Network && s.passes(at, int(p.Job-FirstJob)) {
		s.transmit(i, s.onward(at, w.port, int(p.Job-FirstJob)), s.now)
		return
	}
	if s.grove != nil {
		if at == 0 {
			s.forward(i)
			return
		}
		s.deliver(at-1, i)
		return
	}
	if p.to != endpoint.Network || s.switches[at].Program == nil {
		leaves := s.now
		if s.parts.Passes {
			leaves = s.pass(at, w.port, p)
		}
		s.transmit(i, s.toward(at, s.numberOf(p)), leaves)
		return
	}
	s.process(at, w.port, i)
}

// numberOf is the host that a packet is for.
func (s *sim) numberOf(p *packet) int32 {
	job := int(p.Job - FirstJob)
	if p.to == endpoint.Server {
		return s.server(job)
	}
	return int32(job*s.workers) + int32(p.to)
}

// process runs a switch's program over packet i. What it emits leaves when the accelerator has had the frame.
func (s *sim) process(at int, from program.Port, i int32) {
	sw, p := &s.switches[at], &s.packets[i]
	s.meter.switched++
	done := s.edge()
	if a := &s.net.Accelerator; a.BusBytes > 0 {
		beats := (int(p.size(s)) + a.BusBytes - 1) / a.BusBytes
		sw.free = max(sw.free, done) + int64(beats)*int64(a.Beat)
		done = sw.free + int64(a.Pipeline)*int64(a.Beat)
	}
	s.out.at, s.out.from, s.out.time = at, from, done
	sw.Receive(olaf.Time(s.now), from, &p.Packet, p.lanes, &s.out)
	s.drop(i)
}

// edge is the next edge of the switches' clock.
func (s *sim) edge() int64 {
	c := int64(s.net.Cycle)
	if c == 0 {
		return s.now
	}
	return (s.now + c - 1) / c * c
}

// pass shows a packet that is addressed to a host to a program that only passes on, and says when it leaves.
func (s *sim) pass(at int, from program.Port, p *packet) int64 {
	s.meter.switched++
	s.switches[at].Program.Receive(olaf.Time(s.now), from, &p.Packet, p.lanes, nowhere{})
	return s.edge()
}

// nowhere takes what leaves by an address, not by a program's word.
type nowhere struct{}

func (nowhere) Emit(program.Dest, *program.Packet, []uint32) {}

// emitter takes what a program emits and puts it on the wires.
type emitter struct {
	sim  *sim
	at   int
	from program.Port
	time int64
}

// Emit implements program.Out.
func (o *emitter) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	o.sim.meter.emits(o, to, p)
	if o.sim.grove != nil {
		o.scatter(to, p, lanes)
		return
	}
	sw := &o.sim.switches[o.at]
	switch to {
	case program.Up:
		switch job := int(p.Job - FirstJob); {
		case sw.up >= 0:
			o.put(sw.up, p, lanes)
		case job >= 0 && job < len(sw.servers):
			o.put(sw.servers[job], p, lanes)
		}
	case program.Down, program.Others:
		job := int(p.Job - FirstJob)
		if job < 0 || job >= len(sw.members) {
			return
		}
		for _, port := range sw.members[job] {
			if to == program.Down || port != o.from {
				o.put(sw.down[port], p, lanes)
			}
		}
	default:
		o.put(sw.down[to], p, lanes)
	}
}

func (o *emitter) put(over int32, p *program.Packet, lanes []uint32) {
	o.sim.transmit(o.room(p, lanes), over, o.time)
}

// room gives a place for a packet that is emitted.
func (o *emitter) room(p *program.Packet, lanes []uint32) int32 {
	s := o.sim
	i := s.room()
	q := &s.packets[i]
	q.Packet, q.to, q.first, q.from = *p, endpoint.Network, false, int32(s.root()+o.at)
	q.lanes = copied(q.lanes, lanes)
	s.meter.inFlight++
	return i
}

// copied keeps lanes in memory that is used again; nil stays nil.
func copied(into, lanes []uint32) []uint32 {
	if lanes == nil {
		return nil
	}
	return append(into[:0], lanes...)
}
