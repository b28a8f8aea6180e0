package play

import (
	"context"
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/internal/calendar"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Kinds of events.
const (
	kindStart  uint64 = iota << 56 // job: it starts
	kindPace                       // share: its workers send the next packet
	kindArrive                     // packet, at the end of a wire
	kindWake                       // worker: a gradient is computed or a sum applied
	kindMask   = uint64(0xff) << 56
)

// play is the state of one packet-level simulation of a plan.
type play struct {
	in       *sched.Instance
	plan     *sched.Plan
	o        *Options
	jobs     []job
	shares   []share
	workers  []worker
	wires    []wire
	switches []aggregating // by unit
	packets  []packet
	spare    []int32
	future   *calendar.Queue
	number   uint64
	now      int64
	begin    func(*play, *job)
	windows  bool // hosts follow windows, and sums travel back
	sent     int
	total    int
}

// job is the state of one of the plan's jobs.
type job struct {
	*sched.Member
	index   int
	first   int // index of its first worker
	share   int // index of its first share
	inc     int // unit whose switch sums; sched.NoSwitch for only its server
	part    *part
	packets int // per worker
	bits    float64
	start   int64
	fluid   int64 // planned time at which the last worker has sent everything
	late    olaf.Duration
	base    int // of its segment

	marks       uint64 // marks of a sum that contains every worker
	sums, wrong int
	inside      []uint16 // by fragment, contributions at the server
	got         []int32  // by worker, fragments at the server
	end         int64
	done        int // workers with all sums
}

// part describes a sum over some of a job's workers, which is made by the switch of their unit. It is nil for jobs
// without such a sum. The sums are sent to the server like packets from one more worker. The server's sums are sent to
// the switch once, for all of the unit's workers.
type part struct {
	first, count int // workers below the switch
	up, down     []int32
	marks        uint64
}

// share describes the workers of a job in one unit.
type share struct {
	job, first, count int
	pace              pacer
	next              int
}

// worker is the state of one worker's host.
type worker struct {
	job   int32
	index int32 // in the job
	there []int32
	back  []int32
	end   endpoint.Endpoint // nil for a paced one
	wakes int
}

// leg identifies the part of its path on which a packet currently is.
type leg uint8

const (
	toSwitch leg = iota // from a worker
	back                // to a worker
	above               // from the switch of a part to the server
	below               // from the server to the switch of a part
)

// packet is a packet that is being sent over one leg of its path.
type packet struct {
	program.Packet
	worker int32 // its sender or receiver; for a part, the first worker
	sent   int64 // when its host handed it over
	hop    int8
	leg    leg
}

// aggregating is the switch of a unit, with the free segments of its table.
type aggregating struct {
	*p4inc.Switch
	free []int // bases
	next int
}

// newPlay builds the network. It consists of an interface for each worker and server, and of the optics.
func newPlay(in *sched.Instance, plan *sched.Plan, o *Options, packets int) (*play, error) {
	p := &play{in: in, plan: plan, o: o, switches: make([]aggregating, len(in.Units))}
	optics := newOptics(in, plan)
	all := 0.0
	for k := range in.Jobs {
		all += float64(in.Jobs[k].Volume * float64(in.Jobs[k].Workers))
	}
	stands := max(float64(line.Bits()), all/float64(packets))
	trunks := map[[2]int]int32{}
	for k := range in.Jobs {
		if err := p.addJob(k, optics, trunks, stands); err != nil {
			return nil, err
		}
	}
	p.future = calendar.NewQueue(4*len(p.workers)+len(p.jobs), int64(in.Problem.Slot))
	return p, nil
}

func (p *play) addWire(w wire) int32 {
	p.wires = append(p.wires, w)
	return int32(len(p.wires) - 1)
}

// addJob adds job k to the network. Each simulated packet represents stands bits.
func (p *play) addJob(k int, optics *optics, trunks map[[2]int]int32, stands float64) error {
	m, a := &p.in.Jobs[k], &p.plan.Jobs[k]
	j, whole := p.newJob(k, stands)
	l := &layout{play: p, optics: optics, trunks: trunks, server: m.Server, in: p.addWire(newInterface(p.in.Server)),
		out: p.addWire(newInterface(p.in.Server))}
	for _, s := range m.Shares {
		of := listSpans(p.in, optics, m, a, s, whole)
		last := (&pacer{spans: of}).timeOfBits(m.Volume)
		if last < 0 {
			return fmt.Errorf("%w: %s is never done", ErrPlay, m.ID)
		}
		j.fluid = max(j.fluid, last)
		p.shares = append(p.shares, share{job: k, first: len(p.workers), count: s.Workers, pace: pacer{spans: of}})
		if s.Unit == j.inc && s.Workers > p4inc.MaxMembers {
			return fmt.Errorf("%w: %s has %d workers in %s; a switch program aggregates for at most %d", ErrPlay, m.ID,
				s.Workers, a.INC, p4inc.MaxMembers)
		}
		if s.Unit == j.inc && !whole {
			j.part = &part{first: len(p.workers), count: s.Workers}
			j.part.up, j.part.down = l.serverWires(s.Unit)
		}
		for range s.Workers {
			l.addWorker(&j, s.Unit)
		}
	}
	p.total += j.packets * m.Workers
	p.jobs = append(p.jobs, j)
	return nil
}

// newJob returns job k without its network. whole reports whether a switch sums the packets of all its workers.
func (p *play) newJob(k int, stands float64) (j job, whole bool) {
	m, a := &p.in.Jobs[k], &p.plan.Jobs[k]
	j = job{Member: m, index: k, first: len(p.workers), share: len(p.shares), inc: sched.NoSwitch,
		start: int64(a.Start) * int64(p.in.Problem.Slot), late: m.Late, marks: program.MarkWorkers(m.Workers, 0)}
	if a.INC != "" {
		j.inc = p.in.Unit(a.INC)
		if whole = m.IsOffloaded(j.inc); whole {
			j.late = 0
		}
	}
	j.packets = max(1, int(m.Volume/stands))
	j.bits = m.Volume / float64(j.packets)
	if !whole {
		j.inside, j.got = make([]uint16, j.packets), make([]int32, m.Workers)
	}
	return j, whole
}

// layout builds the wires of one job. The wires in and out connect the job's server to its unit. All jobs share the
// trunks between units.
type layout struct {
	*play
	optics  *optics
	trunks  map[[2]int]int32
	server  int // its unit
	in, out int32
}

// trunkWire returns the wire from the switch of one unit to that of another unit.
func (l *layout) trunkWire(from, to int) int32 {
	if _, there := l.trunks[[2]int{from, to}]; !there {
		l.trunks[[2]int{from, to}] = l.addWire(wire{steps: l.optics.rateSteps(from, to)})
	}
	return l.trunks[[2]int{from, to}]
}

// serverWires returns the wires from the switch of a unit to the job's server, and the wires in the other direction.
func (l *layout) serverWires(unit int) (up, down []int32) {
	if unit == l.server {
		return []int32{l.in}, []int32{l.out}
	}
	return []int32{l.trunkWire(unit, l.server), l.in}, []int32{l.out, l.trunkWire(l.server, unit)}
}

// addWorker adds a worker in a unit to the job. Its packets are sent to the switch that sums them or, if there is none,
// to the server.
func (l *layout) addWorker(j *job, unit int) {
	w := worker{job: int32(j.index), index: int32(len(l.workers) - j.first)}
	out, in := l.addWire(newInterface(l.play.in.Server)), l.addWire(newInterface(l.play.in.Server))
	var up, down []int32
	if unit != j.inc {
		up, down = l.serverWires(unit)
	} else if j.part != nil {
		j.part.marks += program.ContributionMark(olaf.WorkerID(w.index), 0)
	}
	w.there, w.back = append([]int32{out}, up...), append(down, in)
	l.workers = append(l.workers, w)
}

// seldom is the number of events after which the context is checked.
const seldom = 1 << 16

// runEvents simulates until there are no more events. begin is called to start a job.
func (p *play) runEvents(ctx context.Context, begin func(*play, *job)) error {
	p.begin = begin
	for k := range p.jobs {
		p.pushEvent(p.jobs[k].start, kindStart|uint64(k))
	}
	for events := 1; p.future.Len() > 0; events++ {
		if events%seldom == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if p.o.OnProgress != nil {
				p.o.OnProgress(p.sent, p.total)
			}
		}
		e := p.future.Pop()
		p.now = e.At
		if err := p.handleEvent(&e); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (p *play) handleEvent(e *calendar.Event) error {
	i := int(uint32(e.What))
	switch e.What & kindMask {
	case kindStart:
		return p.startJob(&p.jobs[i])
	case kindPace:
		p.paceShare(i)
	case kindArrive:
		p.arrivePacket(int32(i))
	case kindWake:
		p.wakeWorker(i)
	}
	return nil
}

func (p *play) pushEvent(at int64, what uint64) {
	p.number++
	p.future.Push(calendar.Event{At: at, Ord: p.number, What: what})
}

// jobID returns the id that the job has at the switches.
func (j *job) jobID() olaf.ClusterID { return olaf.ClusterID(j.index + 1) }

// startJob starts a job. If a switch aggregates for the job, the job gets a segment first.
func (p *play) startJob(j *job) error {
	if j.inc != sched.NoSwitch {
		if err := p.admitJob(j); err != nil {
			return err
		}
	}
	p.begin(p, j)
	return nil
}

// admitJob configures a job in its switch with an unused segment and the job's workers.
func (p *play) admitJob(j *job) error {
	s := &p.switches[j.inc]
	if s.Switch == nil {
		var err error
		if s.Switch, err = p4inc.New(program.Config{Slots: min(p4inc.MaxSlots,
			p.o.Segment*4*max(1, p.in.Units[j.inc].INC))}); err != nil {
			return err
		}
	}
	if n := len(s.free); n > 0 {
		j.base, s.free = s.free[n-1], s.free[:n-1]
	} else {
		j.base = s.next
		s.next += p.o.Segment
	}
	first, count := j.switchWorkers()
	members := make([]program.Member, count)
	for i := range members {
		w := first - j.first + i
		members[i] = program.Member{Worker: olaf.WorkerID(w), Port: program.Port(w)}
	}
	return s.Configure(program.Job{ID: j.jobID(), Members: members, Base: j.base, Slots: p.o.Segment})
}

// switchWorkers returns the range of workers whose packets the job's switch sums.
func (j *job) switchWorkers() (first, count int) {
	if j.part != nil {
		return j.part.first, j.part.count
	}
	return j.first, j.Workers
}

// releaseSegment frees the segment of a job for which no more packets can arrive.
func (p *play) releaseSegment(j *job) {
	if j.inc != sched.NoSwitch {
		s := &p.switches[j.inc]
		s.Remove(j.jobID())
		s.free = append(s.free, j.base)
	}
}

// checkAccounts checks the accounting identities of all switches. It returns the number of fragments that collided.
func (p *play) checkAccounts() (marked uint64, err error) {
	d := p4inc.Describe()
	for v := range p.switches {
		s := p.switches[v].Switch
		if s == nil {
			continue
		}
		if err := d.CountsOf(s).Balance(); err != nil {
			return 0, fmt.Errorf("switch of %s: %w", p.in.Units[v].Name, err)
		}
		marked += s.Counts()[p4inc.Asynchron]
	}
	return marked, nil
}

// startPaced starts a job whose workers send at the planned rates.
func (p *play) startPaced(j *job) {
	for s := j.share; s < len(p.shares) && p.shares[s].job == j.index; s++ {
		p.scheduleNext(s)
	}
}

func (p *play) scheduleNext(s int) {
	of := &p.shares[s]
	j := &p.jobs[of.job]
	if of.next == j.packets {
		return
	}
	wire := int64(j.bits / p.in.Server * float64(olaf.Second))
	if at := of.pace.timeOfBits(float64(of.next+1) * j.bits); at >= 0 {
		p.pushEvent(max(at-wire, p.now), kindPace|uint64(s)) // the packet's last bit leaves when the fluid's last bit does
	}
}

// paceShare sends the next packet of each worker in share s.
func (p *play) paceShare(s int) {
	of := &p.shares[s]
	j := &p.jobs[of.job]
	for w := of.first; w < of.first+of.count; w++ {
		n := uint64(of.next)
		q := program.Packet{
			Kind: program.Data, Job: j.jobID(), Worker: olaf.WorkerID(p.workers[w].index), Seg: n,
			Index: uint32(j.base) + uint32(n%uint64(p.o.Segment)), Count: 1,
			Trace: program.NewTrace(olaf.WorkerID(p.workers[w].index), 0, 0),
		}
		p.transmitPacket(p.newPacket(int32(w), &q))
	}
	of.next++
	p.scheduleNext(s)
}

func (p *play) newPacket(w int32, q *program.Packet) int32 {
	i := int32(len(p.packets))
	if n := len(p.spare); n > 0 {
		i, p.spare = p.spare[n-1], p.spare[:n-1]
	} else {
		p.packets = append(p.packets, packet{})
	}
	p.packets[i] = packet{Packet: *q, worker: w, sent: p.now}
	return i
}

// wiresOf returns the wires along the current leg of a packet.
func (p *play) wiresOf(q *packet) []int32 {
	w := &p.workers[q.worker]
	switch q.leg {
	case toSwitch:
		return w.there
	case back:
		return w.back
	case above:
		return p.jobs[w.job].part.up
	}
	return p.jobs[w.job].part.down
}

// transmitPacket hands packet i to the next wire on its path. If there is no connection now or in the future, the
// packet is lost and its job cannot finish.
func (p *play) transmitPacket(i int32) int64 {
	q := &p.packets[i]
	if q.leg == toSwitch && q.hop == 0 {
		p.sent++
	}
	left, ok := p.wires[p.wiresOf(q)[q.hop]].sendFrame(p.now, q.sent, p.jobs[p.workers[q.worker].job].bits)
	if !ok {
		p.spare = append(p.spare, i)
		return math.MaxInt64
	}
	p.pushEvent(left+int64(p.o.Delay), kindArrive|uint64(uint32(i)))
	return left
}

func (p *play) arrivePacket(i int32) {
	q := &p.packets[i]
	if q.hop++; int(q.hop) < len(p.wiresOf(q)) {
		p.transmitPacket(i)
		return
	}
	taken := *q
	w := &p.workers[taken.worker]
	j := &p.jobs[w.job]
	p.spare = append(p.spare, i)
	switch {
	case taken.leg == back:
		w.end.Receive(olaf.Time(p.now), &taken.Packet, nil)
		p.checkDone(int(taken.worker))
	case taken.leg == below:
		p.switches[j.inc].Receive(olaf.Time(p.now), program.Uplink, &taken.Packet, nil, &fanned{p, j})
	case taken.leg == above, j.inc == sched.NoSwitch:
		p.addAtServer(j, w, &taken)
	case j.part == nil:
		p.switches[j.inc].Receive(olaf.Time(p.now), program.Port(w.index), &taken.Packet, nil, &sums{p, j})
	case int(taken.worker) < j.part.first || int(taken.worker) >= j.part.first+j.part.count:
		p.addAtServer(j, w, &taken)
	default:
		p.switches[j.inc].Receive(olaf.Time(p.now), program.Port(w.index), &taken.Packet, nil,
			&gathered{p, j, taken.sent})
	}
}

// addAtServer adds a packet to the sum at a parameter server. Packets from one sender arrive in order. Repeated packets
// are not counted.
func (p *play) addAtServer(j *job, w *worker, q *packet) {
	n := int32(q.Seg)
	if n < j.got[w.index] {
		return
	}
	j.got[w.index]++
	if q.leg == above && (q.Inside != j.part.marks || q.Vectors != uint32(j.part.count)) {
		j.wrong++
	}
	if j.inside[n] += uint16(q.Vectors); int(j.inside[n]) < j.Workers {
		return
	}
	r := program.Packet{Kind: program.Result, Job: j.jobID(), Seg: q.Seg, Index: q.Index, Count: uint16(j.Workers),
		Trace: program.Trace{
			Inside: j.marks, Vectors: uint32(j.Workers),
		}}
	(&sums{p, j}).Emit(program.Down, &r, nil)
}

// gathered handles the output of the switch that makes a part's sums. The output is a sum for the server or a mark for
// a worker.
type gathered struct {
	play *play
	job  *job
	sent int64 // when the causing packet was sent
}

// Emit implements program.Out.
func (g *gathered) Emit(to program.Dest, r *program.Packet, _ []uint32) {
	p, j := g.play, g.job
	if to != program.Down {
		p.sendBack(j.first+int(to), r)
		return
	}
	i := p.newPacket(int32(j.part.first), r)
	p.packets[i].leg, p.packets[i].sent = above, g.sent
	p.transmitPacket(i)
}

// fanned handles the server's sum when it reaches a part's switch. Every member receives a copy.
type fanned struct {
	play *play
	job  *job
}

// Emit implements program.Out.
func (f *fanned) Emit(_ program.Dest, r *program.Packet, _ []uint32) {
	for w := f.job.part.first; w < f.job.part.first+f.job.part.count; w++ {
		f.play.sendBack(w, r)
	}
}

// sendBack sends packet r back to worker w.
func (p *play) sendBack(w int, r *program.Packet) {
	i := p.newPacket(int32(w), r)
	p.packets[i].leg = back
	p.transmitPacket(i)
}

// sums handles the packets that a switch or a server sends for a job.
type sums struct {
	play *play
	job  *job
}

// Emit implements program.Out.
func (s *sums) Emit(to program.Dest, r *program.Packet, _ []uint32) {
	p, j := s.play, s.job
	if r.Kind == program.Result && to == program.Down {
		if j.sums++; r.Inside != j.marks || r.Vectors != uint32(j.Workers) {
			j.wrong++
		}
		if j.end = p.now; !p.windows && j.sums == j.packets {
			p.releaseSegment(j)
		}
	}
	if !p.windows {
		return
	}
	if to != program.Down {
		p.sendBack(j.first+int(to), r)
		return
	}
	if j.part != nil {
		i := p.newPacket(int32(j.part.first), r)
		p.packets[i].leg = below
		p.transmitPacket(i)
	}
	for w := j.first; w < j.first+j.Workers; w++ {
		if j.part == nil || w < j.part.first || w >= j.part.first+j.part.count {
			p.sendBack(w, r)
		}
	}
}
