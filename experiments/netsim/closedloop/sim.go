package closedloop

import (
	"context"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/calendar"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Kinds of events; simultaneous events happen in the order of scheduling.
const (
	kindArrive   uint64 = iota << 56 // packet: it reached the node at the end of its wire
	kindHand                         // packet: a server's software has processed it
	kindComputed                     // host: its gradient is ready
	kindApplied                      // host: a sum is applied
	kindTimer                        // host: its timer expires
	kindStart                        // host: it starts
	kindKill                         // a server of the tree fails
	kindNotice                       // management changes the tree
	kindLoad                         // a server of the tree loses a part of its link
	kindMove                         // management moves that server's children

	kindMask = uint64(0xff) << 56
)

// FirstJob is the id of the first job.
const FirstJob olaf.ClusterID = 1

// sim is the state of one run.
type sim struct {
	shape
	seed uint64
	sync bool
	// atWorkers is set if workers apply sums themselves, and servers only add.
	atWorkers bool
	net       *Network
	job       *Job
	grove     *grove          // tree of servers; nil if switches run the program
	renewal   *program.Packet // packet to workers when the tree changes
	future    *calendar.Queue
	now       int64
	number    uint64
	events    uint64
	limit     int64  // a pause is due before any event from here on
	rest      uint64 // number of events until the next pause
	wires     []wire
	switches  []station
	ledger    *olaf.Ledger // counters of the switches' program
	parts     *system.Parts
	access    []int32   // wire from a host to its switch
	homes     []int32   // wire from the switch back to the host
	routes    [][]int32 // in a tree of switches: wires by current and target switch
	hosts     []*host
	packets   []packet
	spare     []int32
	taken     packet                 // being received; a copy, because the host's replies may move the packets
	sizes     [program.Control]sized // by kind; only for kinds below Control
	out       emitter
	meter     meter
}

// packet is a packet in flight, on one wire at a time.
type packet struct {
	program.Packet
	lanes []uint32
	wire  int32
	from  int32 // node that created it
	// target is the destination node in a tree of servers.
	target int32
	took   int64 // time on its last wire, from its first to its last bit

	to    endpoint.Peer
	first bool // first packet of a message
}

// size returns the length of the frame that contains the packet. The length is different for replies between workers,
// which bypass the aggregators.
func (p *packet) size(s *sim) olaf.Size {
	past := p.to != endpoint.Network
	if p.Kind >= program.Control { // its length depends on its content
		return s.parts.FrameSize(&p.Packet, past)
	}
	last := &s.sizes[p.Kind]
	if last.size == 0 || last.lanes != p.Lanes || last.past != past {
		*last = sized{p.Lanes, past, s.parts.FrameSize(&p.Packet, past)}
	}
	return last.size
}

// sized caches the length of the last frame of one kind, because most frames of a kind have the same length.
type sized struct {
	lanes uint16
	past  bool
	size  olaf.Size
}

// Run simulates a job. sync means that workers wait for one another, so that rounds can be measured. The same arguments
// always give the same Result. The error matches ErrConfig, or it comes from the parts or the context.
func Run(ctx context.Context, net Network, job Job, parts system.Parts, sync bool, seed uint64) (*Result, error) {
	s, err := newSim(&net, &job, &parts, sync, seed)
	if err != nil {
		return nil, err
	}
	onTheWay := job.Packets()
	if parts.Window > 0 {
		onTheWay = min(onTheWay, parts.Window)
	}
	s.future = calendar.NewQueue(4*s.jobs*s.workers*onTheWay,
		int64(job.Compute)+int64(net.Link.Delay)+int64(olaf.Millisecond))
	s.meter = newMeter(s)
	if err := s.planFaults(); err != nil {
		return nil, err
	}
	s.startHosts()
	if err := s.runEvents(ctx); err != nil {
		return nil, err
	}
	return s.makeResult()
}

// PlanJobs returns the jobs with which Run, called with these arguments, configures the root switch. It runs nothing.
// It returns an error if the hosts and switches cannot be built or the settings are inconsistent.
func PlanJobs(net Network, job Job, parts system.Parts, sync bool) ([]program.Job, error) {
	s, err := newSim(&net, &job, &parts, sync, 0)
	if err != nil || parts.Program == nil || net.Tree != nil {
		return nil, err
	}
	if err := s.checkFan(&parts); err != nil {
		return nil, err
	}
	jobs := make([]program.Job, s.jobs)
	for j := range jobs {
		jobs[j] = s.jobAt(&parts, 0, j)
	}
	return jobs, nil
}

// newSim creates the hosts, wires and switches of a run.
func newSim(net *Network, job *Job, parts *system.Parts, sync bool, seed uint64) (*sim, error) {
	if err := net.checkNetwork(); err != nil {
		return nil, err
	}
	if err := job.checkJob(); err != nil {
		return nil, err
	}
	if job.Observer == nil {
		job.Observer = Unobserved{}
	}
	s := &sim{
		shape: shapeOf(net, parts.Server != nil), seed: splitmix.MixBits(seed), sync: sync, net: net, job: job,
		parts:     parts,
		atWorkers: parts.Server == nil || parts.Window > 0,
	}
	s.out.sim = s
	s.buildNodes(net)
	if err := s.installPrograms(parts); err != nil {
		return nil, err
	}
	return s, s.addHosts(parts)
}

// startHosts starts the hosts. If Apart is set, they start at random instants within that time.
func (s *sim) startHosts() {
	for _, h := range s.hosts {
		if s.job.Apart > 0 {
			s.pushEvent(int64(splitmix.MixBits(s.seed^uint64(h.number)<<40^0xbb67ae85)%uint64(s.job.Apart)),
				kindStart|uint64(h.number))
			continue
		}
		h.startEndpoint()
	}
}

func (s *sim) runEvents(ctx context.Context) error {
	end := int64(s.job.Limit)
	if s.limit, s.rest = end+1, seldom; s.job.Follow != nil {
		s.limit = 0 // Follow is called before the first event
	}
	for s.future.Len() > 0 && !s.isOver() {
		e := s.future.Pop()
		if e.At > end {
			break
		}
		if e.At >= s.limit || s.events >= s.rest {
			if on, err := s.pauseRun(ctx, e.At); !on || err != nil {
				return err
			}
		}
		s.events++
		s.now = e.At
		if err := s.handleEvent(&e); err != nil {
			return err
		}
	}
	if s.job.Follow == nil {
		return nil
	}
	if s.isOver() {
		end = s.now
	}
	_, err := s.pauseRun(ctx, end)
	return err
}

func (s *sim) isOver() bool { return s.meter.doneHosts == len(s.hosts) && s.meter.inFlight == 0 }

func (s *sim) handleEvent(e *calendar.Event) error {
	i := int32(uint32(e.What))
	switch e.What & kindMask {
	case kindArrive:
		s.arrivePacket(i)
	case kindHand:
		h := s.hosts[s.wires[s.packets[i].wire].to]
		h.receivePacket(i)
	case kindComputed:
		s.hosts[i].finishGradient()
	case kindApplied:
		s.hosts[i].finishApply()
	case kindTimer:
		s.hosts[i].runTimer()
	case kindStart:
		s.hosts[i].startEndpoint()
	case kindKill:
		s.killServer()
	case kindNotice:
		return s.changeTree()
	case kindLoad:
		s.loadServer()
	case kindMove:
		return s.moveChildren()
	}
	return nil
}

func (s *sim) pushEvent(at int64, what uint64) {
	s.number++
	s.future.Push(calendar.Event{At: at, Ord: s.number, What: what})
}

// newPacket allocates a packet and returns its index.
func (s *sim) newPacket() int32 {
	if n := len(s.spare); n > 0 {
		i := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return i
	}
	s.packets = append(s.packets, packet{})
	return int32(len(s.packets) - 1)
}

// transmitPacket hands packet i to wire over. Transmission begins at the time at, or later when the wire becomes free.
// A lost packet is freed here. Switches mark packets that find a long queue.
func (s *sim) transmitPacket(i, over int32, at int64) {
	w, p := &s.wires[over], &s.packets[i]
	arrives, takes, fate := w.Pass(at, p.took, p.size(s))
	if fate&Full != 0 {
		s.dropAtPort(i)
		return
	}
	if fate&Marked != 0 {
		p.Flags |= program.ECN
		s.meter.marked++
	}
	p.took = takes
	if fate&Lost != 0 {
		s.job.Observer.OnLoss(olaf.Time(s.now), &p.Packet)
		s.dropPacket(i)
		return
	}
	p.wire = over
	s.pushEvent(arrives, kindArrive|uint64(uint32(i)))
}

// dropPacket frees packet i, which is no longer in flight.
func (s *sim) dropPacket(i int32) {
	s.spare = append(s.spare, i)
	s.meter.inFlight--
}

func (s *sim) arrivePacket(i int32) {
	p := &s.packets[i]
	w := &s.wires[p.wire]
	s.meter.arrived++
	if s.job.Tap != nil {
		s.tapFrame(w, p)
	}
	if to := int(w.to); to < len(s.hosts) {
		if s.hosts[to].server {
			s.meter.served++
		}
		s.hosts[to].arriveAt(i)
		return
	}
	at := int(w.to) - s.rootNode()
	if s.routes != nil && p.to == endpoint.Network && s.onlyForwards(at, int(p.Job-FirstJob)) {
		s.transmitPacket(i, s.nextWire(at, w.port, int(p.Job-FirstJob)), s.now)
		return
	}
	if s.grove != nil {
		if at == 0 {
			s.forwardPacket(i)
			return
		}
		s.deliverToServer(at-1, i)
		return
	}
	if p.to != endpoint.Network || s.switches[at].Program == nil {
		leaves := s.now
		if s.parts.Passes {
			leaves = s.showPacket(at, w.port, p)
		}
		s.transmitPacket(i, s.wireToward(at, s.numberOf(p)), leaves)
		return
	}
	s.processPacket(at, w.port, i)
}

// numberOf returns the number of the host to which a packet is addressed.
func (s *sim) numberOf(p *packet) int32 {
	job := int(p.Job - FirstJob)
	if p.to == endpoint.Server {
		return s.serverHost(job)
	}
	return int32(job*s.workers) + int32(p.to)
}

// processPacket runs a switch's program on packet i. The program's output is sent when the accelerator has processed
// the frame.
func (s *sim) processPacket(at int, from program.Port, i int32) {
	sw, p := &s.switches[at], &s.packets[i]
	s.meter.switched++
	done := s.nextEdge()
	if a := &s.net.Accelerator; a.BusBytes > 0 {
		beats := (int(p.size(s)) + a.BusBytes - 1) / a.BusBytes
		sw.free = max(sw.free, done) + int64(beats)*int64(a.Beat)
		done = sw.free + int64(a.Pipeline)*int64(a.Beat)
	}
	s.out.at, s.out.from, s.out.time = at, from, done
	sw.Receive(olaf.Time(s.now), from, &p.Packet, p.lanes, &s.out)
	s.dropPacket(i)
}

// nextEdge returns the time of the next edge of the switches' clock.
func (s *sim) nextEdge() int64 {
	c := int64(s.net.Cycle)
	if c == 0 {
		return s.now
	}
	return (s.now + c - 1) / c * c
}

// showPacket passes a packet that is addressed to a host to the switch's program, which only forwards it. It returns
// the time at which the packet leaves.
func (s *sim) showPacket(at int, from program.Port, p *packet) int64 {
	s.meter.switched++
	s.switches[at].Program.Receive(olaf.Time(s.now), from, &p.Packet, p.lanes, nowhere{})
	return s.nextEdge()
}

// nowhere discards a program's output. It is used for packets that are forwarded by their address.
type nowhere struct{}

func (nowhere) Emit(program.Dest, *program.Packet, []uint32) {}

// emitter sends a program's output on the wires.
type emitter struct {
	sim  *sim
	at   int
	from program.Port
	time int64
}

// Emit implements program.Out.
func (o *emitter) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	o.sim.meter.recordOutput(o, to, p)
	if o.sim.grove != nil {
		o.emitInTree(to, p, lanes)
		return
	}
	sw := &o.sim.switches[o.at]
	switch to {
	case program.Up:
		switch job := int(p.Job - FirstJob); {
		case sw.up >= 0:
			o.putOnWire(sw.up, p, lanes)
		case job >= 0 && job < len(sw.servers):
			o.putOnWire(sw.servers[job], p, lanes)
		}
	case program.Down, program.Others:
		job := int(p.Job - FirstJob)
		if job < 0 || job >= len(sw.members) {
			return
		}
		for _, port := range sw.members[job] {
			if to == program.Down || port != o.from {
				o.putOnWire(sw.down[port], p, lanes)
			}
		}
	default:
		o.putOnWire(sw.down[to], p, lanes)
	}
}

func (o *emitter) putOnWire(over int32, p *program.Packet, lanes []uint32) {
	o.sim.transmitPacket(o.newPacket(p, lanes), over, o.time)
}

// newPacket allocates a packet for a program's output and returns its index.
func (o *emitter) newPacket(p *program.Packet, lanes []uint32) int32 {
	s := o.sim
	i := s.newPacket()
	q := &s.packets[i]
	q.Packet, q.to, q.first, q.from = *p, endpoint.Network, false, int32(s.rootNode()+o.at)
	q.lanes = copyLanes(q.lanes, lanes)
	s.meter.inFlight++
	return i
}

// copyLanes copies lanes into reused memory. It returns nil if lanes is nil.
func copyLanes(into, lanes []uint32) []uint32 {
	if lanes == nil {
		return nil
	}
	return append(into[:0], lanes...)
}
