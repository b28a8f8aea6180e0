package netsim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/calendar"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
)

// Observer sees every frame that reaches a server. o is valid during the call; worker is the dense index, over all
// clusters, of the newest contributor.
type Observer interface {
	Deliver(server, worker int, o *olaf.Observation)
}

// Options are the sides of a run that do not change its result.
type Options struct {
	Observer Observer
	Workers  bool // list every worker in the Result
	// Watcher sees, slows and ends the run; nil lets it pass.
	Watcher Watcher
	// Progress is told the share of simulated time that is done, at least every million events.
	Progress func(share float64)
}

// Run simulates t and measures it. The same topology gives the same Result on every machine. It ends early, with the
// context's error, only when the context ends. Errors of the topology match ErrTopology; a broken accounting identity,
// which would be a mistake of this package, matches ErrAccounting.
func Run(ctx context.Context, t *Topology, opt Options) (*Result, error) {
	n, err := build(t)
	if err != nil {
		return nil, err
	}
	if t.Sends != "" && t.sends == nil {
		return nil, &Error{t.File, t.Of("sends"), fmt.Sprintf("the sends of %s were not loaded", t.Sends)}
	}
	s := newSim(t, n, opt)
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	return s.result()
}

// The kinds of events, in the order in which they happen at one instant with one cause.
const (
	kindChange uint64 = iota << 56
	kindOutput        // port: the last bit is out, or engine cycles are over
	kindFirst         // worker: its update is at the first switch
	kindSend          // worker: an update was generated
	kindAccess        // worker: its link is free and another update waits for it
	kindEnter         // source: the first update on its workers' links is at its switch
	kindArrive        // port: the first frame on its link is at the other end
	kindAck           // port: the first ACK that comes towards it is there
	kindHeard         // source: the first ACK on its workers' links is with them
	kindExtra         // background source: a packet is at its first switch

	kindMask = uint64(0xff) << 56
)

// sim is the state of one run. Everything lives in slices that are indexed by small integers; once they have grown to
// what the traffic needs, an event allocates nothing.
type sim struct {
	*network
	t      *Topology
	opt    Options
	queue  *calendar.Queue
	now    int64
	order  uint64 // of the event at hand, among those of its instant
	end    int64
	limit  int64 // no event from here on happens without a pause
	events uint64
	rest   uint64 // number of events after which there is a pause
	number uint64 // of the latest scheduled event
	late   uint64 // the bit that puts arrivals behind departures
	ns3    bool
	direct bool // updates are scheduled straight to their first switch
	acks   bool
	active bool // ports keep track of active clusters
	script *script

	sources   []source
	workers   []worker
	places    []int32  // of workers, by their dense index over all clusters
	waiting   []access // per worker; nil when updates are scheduled directly
	listeners []tc.Controller
	control   tc.Config
	held      pool[heldUpdate]
	extras    []extra
	servers   []serverState

	byID    []int32      // cluster id → index
	update  olaf.Update  // that is offered at the moment, here so that it need not escape
	view    engine.Frame // that starts at the moment, here for the same reason
	touched int64        // keeps early loads alive
	meter   meter
}

// portState is the part of a port that changes.
type portState struct {
	link    link      // towards the server
	acks    line[ack] // the other way
	ackFree int64     // which is free from here on

	activity activity

	busy                          int64  // ps that frames took
	framesLost                    uint64 // on the failed link
	updateFramesLost, updatesLost uint64 // of these, without background
	bypassDropped                 uint64
}

// heldUpdate waits for its worker's link.
type heldUpdate struct {
	update olaf.Update
	next   int32 // 1 + the one behind it
}

// ack is one copy of an ACK on its way.
type ack struct {
	at      int64
	ord     uint64
	cluster int32
	hop     int32 // of the cluster's tree; on the workers' links the listener
	status  tc.Status
}

// extra is a source of background traffic.
type extra struct {
	w      worker
	source source
	size   olaf.Size
	server int32
}

type serverState struct {
	processing int64
	free       int64
}

func newSim(t *Topology, n *network, opt Options) *sim {
	s := &sim{network: n, t: t, opt: opt, end: int64(t.Warmup + t.Duration), ns3: t.Timing == NS3,
		acks: t.Acks != AcksNone, control: tc.Config{Threshold: t.Control.Threshold, Slope: t.Control.Slope}}
	s.limit, s.rest = s.end, seldom
	if opt.Watcher != nil {
		s.limit = 0 // it is asked before anything happens
	}
	s.active = s.acks && t.Control.Enabled
	s.listeners = make([]tc.Controller, n.listeners)
	s.servers = make([]serverState, len(t.Servers))
	for i := range t.Servers {
		s.servers[i].processing = int64(t.Servers[i].Processing)
	}
	window := int64(t.Control.Window)
	if window == 0 {
		window = int64(olaf.Second)
	}
	for i := range n.ports {
		n.ports[i].activity.window = window
	}
	if t.sends != nil {
		s.script = newScript(t.sends, n.workerCount)
	}
	s.byID = make([]int32, maxClusterID+1)
	for i := range n.clusters {
		s.byID[n.clusters[i].id] = int32(i)
	}
	s.meter = newMeter(t, n)
	s.addWorkers()
	s.addExtras()
	s.queue = calendar.New(len(s.workers)+len(s.extras)+4*len(n.ports), s.horizon())
	s.queue.Opening = s.touch
	// Without a decision at the generation, and without ns-3's order of equal instants, that event can be left out.
	if s.direct = !t.Control.Enabled && !s.ns3; !s.direct {
		s.waiting = make([]access, len(s.workers))
	}
	if !s.ns3 {
		s.late = 1 << 63
	}
	if s.script != nil {
		s.number = uint64(len(t.sends))
	}
	for _, w := range s.places {
		s.schedule(w)
	}
	for i := range s.extras {
		s.scheduleExtra(i)
	}
	for i := range t.Schedule {
		s.queue.Push(calendar.Event{At: int64(t.Schedule[i].At), Ord: 0, What: kindChange | uint64(i)})
	}
	return s
}

func (s *sim) addWorkers() {
	byEntry := map[*Clusters]int32{}
	s.workers = make([]worker, 0, s.workerCount)
	for c := range s.clusters {
		k := &s.clusters[c]
		tr := &s.trees[k.tree]
		src, ok := byEntry[tr.spec]
		if !ok {
			src = int32(len(s.sources))
			byEntry[tr.spec] = src
			s.sources = append(s.sources, s.newSource(tr.spec))
		}
		k.source = src
		for i := range int(k.workers) {
			w := tr.spec.newWorker(s.t.Seed, len(s.workers))
			at := i % len(tr.attached)
			w.cluster, w.source, w.id, w.number = uint16(c), uint16(src), k.id, olaf.WorkerID(i)
			w.port = s.toward(k.server, tr.attached[at])
			w.listener = k.listen + tr.leafOf[at]
			s.workers = append(s.workers, w)
		}
	}
	s.sortWorkers()
}

// sortWorkers puts workers whose turns come one after the other side by side, so that time walks through memory. Where
// a worker is found is in places.
func (s *sim) sortWorkers() {
	order := make([]int32, len(s.workers))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(s.workers[a].offset, s.workers[b].offset) })
	sorted := make([]worker, len(s.workers))
	s.places = make([]int32, len(s.workers))
	for place, i := range order {
		sorted[place] = s.workers[i]
		s.places[i] = int32(place)
	}
	s.workers = sorted
}

func (s *sim) newSource(k *Clusters) source {
	src := source{poisson: k.Arrivals == Poisson, jitter: uint64(k.Jitter) / 1000, start: int64(k.Start), end: s.end, delay: int64(k.Access.Delay)}
	if k.Stop > 0 {
		src.end = min(src.end, int64(k.Stop))
	}
	if k.Access.Rate > 0 {
		clock := s.t.clock(k.Access.Rate, k.Access.Overhead)
		src.transmit = clock.Ticks(s.t.Update)
	}
	return src
}

func (s *sim) addExtras() {
	for i := range s.t.Background {
		b := &s.t.Background[i]
		at, server := int32(0), int32(0)
		for j, name := range s.names {
			if name == b.At {
				at = int32(j)
			}
			if name == b.To {
				server = int32(j - s.switches)
			}
		}
		spec := Clusters{Period: b.Rate.TimeToSend(b.Size), Start: b.Start, Stop: b.Stop, Arrivals: b.Arrivals}
		w := spec.newWorker(s.t.Seed, len(s.workers)+i)
		w.port = s.next[int(server)*len(s.names)+int(at)]
		s.extras = append(s.extras, extra{w, s.newSource(&spec), b.Size, server})
	}
}

// horizon is how far ahead most events are scheduled.
func (s *sim) horizon() int64 {
	far := int64(olaf.Microsecond)
	for i := range s.t.Clusters {
		k := &s.t.Clusters[i]
		far = max(far, int64(k.Period+k.Jitter+k.Access.Delay))
	}
	for i := range s.ports {
		far = max(far, s.ports[i].delay)
	}
	return min(far, int64(10*olaf.Second))
}

// departure and arrival make the second word of an event's order. At equal instants departures come before arrivals
// (docs/semantics.md); below that, and alone with ns-3's timing, what was scheduled first happens first, as in ns-3. For
// that rule events take their number where ns-3's model schedules them: both ends of a transmission at its start.
func (s *sim) departure() uint64 {
	s.number++
	return s.number
}

func (s *sim) arrival() uint64 {
	s.number++
	return s.late | s.number
}

func (s *sim) run(ctx context.Context) error {
	for s.queue.Len() > 0 {
		e := s.queue.Pop()
		if e.At >= s.limit || s.events >= s.rest {
			if on, err := s.pause(ctx, e.At); !on || err != nil {
				return err
			}
		}
		s.now, s.order = e.At, e.Ord
		s.events++
		s.handle(&e)
	}
	_, err := s.pause(ctx, s.end)
	return err
}

// The longest a run goes on without a pause, in events: seldom unless somebody watches.
const (
	seldom = 1 << 20
	often  = 1 << 14
)

// pause is what happens between events now and then, before the one at the instant next; on says to go on with that.
func (s *sim) pause(ctx context.Context, next int64) (on bool, err error) {
	next = min(next, s.end)
	interval := uint64(seldom)
	if s.opt.Watcher != nil {
		interval = often
		if err := s.watch(next); err != nil {
			return false, err
		}
	}
	if next >= s.end {
		s.now = s.end
		return false, nil
	}
	s.rest = s.events + interval
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if s.opt.Progress != nil && s.events > 0 {
		s.opt.Progress(float64(next) / float64(s.end))
	}
	return true, nil
}

// touch loads the workers that events are about, all at once, so that the fetches from memory overlap.
func (s *sim) touch(next []calendar.Event) {
	touched := int64(0)
	for i := range next {
		switch next[i].What & kindMask {
		case kindFirst, kindSend:
			touched ^= s.workers[uint32(next[i].What)].gen
		}
	}
	s.touched ^= touched
}

// touchInside loads the measurements of the workers inside the next few frames on a link, all at once as well. It acts
// once per few frames and only where many are on their way.
func (s *sim) touchInside(l *link) {
	const few = 8
	if l.line.head%few != 0 || l.len() < 2*few {
		return
	}
	touched := uint32(0)
	for i := few; i < 2*few; i++ { // first who they are
		if inside := l.contributors(l.at(i)); len(inside) > 0 {
			touched ^= inside[0].Seq ^ inside[len(inside)-1].Seq
		}
	}
	for i := few; i < 2*few; i++ {
		f := l.at(i)
		first := s.clusters[s.byID[f.update.Cluster]].firstWorker
		for _, in := range l.contributors(f) {
			touched ^= s.meter.workers[first+int32(in.Worker)].last
		}
	}
	s.touched ^= int64(touched)
}

func (s *sim) handle(e *calendar.Event) {
	low := int32(uint32(e.What))
	switch e.What & kindMask {
	case kindFirst:
		s.first(low)
	case kindOutput:
		s.turn(low)
	case kindArrive:
		s.arrive(low)
	case kindSend:
		s.send(low)
	case kindEnter:
		s.enter(low)
	case kindAccess:
		s.access(low)
	case kindAck:
		s.passAck(low)
	case kindHeard:
		s.hear(low)
	case kindExtra:
		s.extra(low)
	case kindChange:
		s.change(&s.t.Schedule[low])
	}
}

// schedule plans the next update of a worker.
func (s *sim) schedule(i int32) {
	w := &s.workers[i]
	src := &s.sources[w.source]
	order := uint64(0)
	if s.script != nil {
		w.gen, order = s.script.send(int(s.clusters[w.cluster].firstWorker)+int(w.number), w.seq)
		order |= s.late
	} else {
		w.gen = src.generation(w)
	}
	if w.gen >= src.end {
		return
	}
	if s.script == nil {
		order = s.arrival()
	}
	if !s.direct {
		s.queue.Push(calendar.Event{At: w.gen, Ord: order, What: kindSend | uint64(i)})
		return
	}
	s.meter.sent(w, w.gen)
	s.meter.airborne++
	w.free = max(w.gen, w.free) + src.transmit
	s.queue.Push(calendar.Event{At: w.free + src.delay, Ord: order, What: kindFirst | uint64(i)})
}

// fresh is the update that worker i generated last.
func (s *sim) fresh(i int32) olaf.Update {
	w := &s.workers[i]
	return olaf.Update{
		GenNS: uint64(w.gen/int64(olaf.Nanosecond)) % olaf.GenModulus, Seq: w.seq, Cluster: w.id, Worker: w.number,
		Count: 1, Lanes: uint16((s.t.Update - olaf.HeaderBytes) / olaf.LaneBytes),
	}
}
