package netsim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/calendar"
)

// Observer receives every frame that reaches a server. o is valid during the call only. worker is the index of the
// newest contributor, counted over all clusters.
type Observer interface {
	Deliver(server, worker int, o *olaf.Observation)
}

// Options contains the settings of a run that do not change its result.
type Options struct {
	Observer Observer
	Workers  bool // list every worker in the Result
	// Watcher observes, slows and ends the run; it may be nil.
	Watcher Watcher
	// Progress receives the completed share of simulated time, at least every million events.
	Progress func(share float64)
	// Record receives every packet at the server in wire format, for closed-loop networks; its bytes are valid during
	// the call. For servers in other networks, use Observer.
	Record func(*capture.Packet) error
}

// Run simulates t and measures the run. The same topology produces the same Result on every machine. Run ends early
// only if the context ends, with the context's error. Errors in the topology match ErrTopology. A violated accounting
// identity, which would be a bug in this package, matches ErrAccounting.
func Run(ctx context.Context, t *Topology, opt Options) (*Result, error) {
	if t.Waiting != nil {
		j, err := NewJobs(t)
		if err != nil {
			return nil, err
		}
		return j.runOnce(ctx, opt)
	}
	n, err := buildNetwork(t)
	if err != nil {
		return nil, err
	}
	if t.Sends != "" && t.sends == nil {
		return nil, &Error{t.File, t.LineOf("sends"), fmt.Sprintf("the sends of %s were not loaded", t.Sends)}
	}
	s := newSim(t, n, opt)
	if err := s.runEvents(ctx); err != nil {
		return nil, err
	}
	return s.makeResult()
}

// RunSeeds simulates t once per seed, in parallel on all cores, and returns the results in the order of the seeds. If
// done is not nil, it is called after each run, from any goroutine. After an error, including the context's, the
// missing results are nil.
func RunSeeds(ctx context.Context, t *Topology, seeds []uint64, opt Options, done func()) ([]*Result, error) {
	return closedloop.ForSeeds(ctx, seeds, func(ctx context.Context, seed uint64) (*Result, error) {
		one := *t
		one.Seed = seed
		r, err := Run(ctx, &one, opt)
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed, err)
		}
		return r, nil
	}, done)
}

// Kinds of events, in the order in which events with the same cause happen at one instant.
const (
	kindChange uint64 = iota << 56
	kindOutput        // port: transmission or engine cycles finished
	kindFirst         // worker: its update reached the first switch
	kindSend          // worker: an update was generated
	kindAccess        // worker: its link is idle and another update is waiting
	kindEnter         // source: the first update on its workers' links reached its switch
	kindArrive        // port: the first frame on its link reached the other end
	kindAck           // port: the first ACK on its link reached it
	kindHeard         // source: the first ACK on its workers' links reached them
	kindExtra         // background source: a packet reached its first switch

	kindMask = uint64(0xff) << 56
)

// sim is the state of one run. All objects are in slices that are indexed by small integers. When the slices have
// grown, an event allocates no memory.
type sim struct {
	*network
	t      *Topology
	opt    Options
	queue  *calendar.Queue
	now    int64
	order  uint64 // of the current event, among those at its instant
	end    int64
	limit  int64 // a pause is due before any event from this instant on
	events uint64
	rest   uint64 // number of events until the next pause
	number uint64 // number of the latest scheduled event
	late   uint64 // bit that sorts arrivals after departures
	ns3    bool
	direct bool // updates are scheduled at their first switch
	acks   bool
	active bool // ports track active clusters
	script *script

	sources   []source
	workers   []worker
	places    []int32  // of workers, by dense index over all clusters
	waiting   []access // per worker; nil if updates are scheduled directly
	cables    []cable  // per worker; nil if none is lossy
	ack       olaf.Size
	listeners []tc.Controller
	control   tc.Law
	held      pool[heldUpdate]
	extras    []extra
	servers   []serverState

	byID    []int32      // cluster id → index
	update  olaf.Update  // being offered; a field, so that it does not escape
	view    engine.Frame // being sent; a field for the same reason
	touched int64        // keeps prefetch loads alive
	meter   meter
}

// departureOrder returns the second word of a departure event's order; arrivalOrder does so for an arrival. At equal
// instants, departures come before arrivals (docs/reference/semantics.md). Other simultaneous events happen in the
// order of scheduling, as in ns-3; with ns-3's timing all of them do. Events are therefore numbered at the point where
// ns-3's model schedules them: both ends of a transmission at its start.
func (s *sim) departureOrder() uint64 {
	s.number++
	return s.number
}

func (s *sim) arrivalOrder() uint64 {
	s.number++
	return s.late | s.number
}

func (s *sim) runEvents(ctx context.Context) error {
	for s.queue.Len() > 0 {
		e := s.queue.Pop()
		if e.At >= s.limit || s.events >= s.rest {
			if on, err := s.pauseRun(ctx, e.At); !on || err != nil {
				return err
			}
		}
		s.now, s.order = e.At, e.Ord
		s.events++
		s.handleEvent(&e)
	}
	_, err := s.pauseRun(ctx, s.end)
	return err
}

// seldom and often are the largest numbers of events between pauses: seldom without a watcher, often with one.
const (
	seldom = 1 << 20
	often  = 1 << 14
)

// pauseRun calls the watcher, reports progress and checks for cancellation before the event at next. It returns whether
// the run continues.
func (s *sim) pauseRun(ctx context.Context, next int64) (on bool, err error) {
	next = min(next, s.end)
	interval := uint64(seldom)
	if s.opt.Watcher != nil {
		interval = often
		if err := s.callWatcher(next); err != nil {
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

// prefetchWorkers prefetches the workers of several coming events together, so that the memory accesses overlap.
func (s *sim) prefetchWorkers(next []calendar.Event) {
	touched := int64(0)
	for i := range next {
		switch next[i].What & kindMask {
		case kindFirst, kindSend:
			touched ^= s.workers[uint32(next[i].What)].gen
		}
	}
	s.touched ^= touched
}

// prefetchInside prefetches the measurements of the workers that contributed to the next few frames on a link, so that
// the memory accesses overlap. It does so once every few frames, and only on links with many frames.
func (s *sim) prefetchInside(l *link) {
	const few = 8
	if l.line.head%few != 0 || l.len() < 2*few {
		return
	}
	touched := uint32(0)
	for i := few; i < 2*few; i++ { // load the contributors first
		if inside := l.contributorsOf(l.at(i)); len(inside) > 0 {
			touched ^= inside[0].Seq ^ inside[len(inside)-1].Seq
		}
	}
	for i := few; i < 2*few; i++ {
		f := l.at(i)
		first := s.clusters[s.byID[f.update.Cluster]].firstWorker
		for _, in := range l.contributorsOf(f) {
			touched ^= s.meter.workers[first+int32(in.Worker)].last
		}
	}
	s.touched ^= int64(touched)
}

func (s *sim) handleEvent(e *calendar.Event) {
	low := int32(uint32(e.What))
	switch e.What & kindMask {
	case kindFirst:
		s.reachFirst(low)
	case kindOutput:
		s.stepPort(low)
	case kindArrive:
		s.arriveFrame(low)
	case kindSend:
		s.generateUpdate(low)
	case kindEnter:
		s.enterSwitch(low)
	case kindAccess:
		s.transmitHeld(low)
	case kindAck:
		s.passAck(low)
	case kindHeard:
		s.hearAck(low)
	case kindExtra:
		s.sendExtra(low)
	case kindChange:
		s.applyChange(&s.t.Schedule[low])
	}
}

func newSim(t *Topology, n *network, opt Options) *sim {
	s := &sim{network: n, t: t, opt: opt, end: int64(t.Warmup + t.Duration), ns3: t.Timing == NS3,
		acks: t.Acks != AcksNone, ack: min(t.Update+olaf.AckStatusBytes, olaf.MaxFrame),
		control: t.Control.buildLaw()}
	s.limit, s.rest = s.end, seldom
	if opt.Watcher != nil {
		s.limit = 0 // the watcher is called before the first event
	}
	s.initNodes()
	s.meter = newMeter(t, n)
	s.addWorkers()
	s.addCables()
	s.addExtras()
	s.queue = calendar.NewQueue(len(s.workers)+len(s.extras)+4*len(n.ports), s.estimateHorizon())
	s.queue.Opening = s.prefetchWorkers
	// The generation event can be omitted if there is no decision at generation time and simultaneous events are not in
	// ns-3's order.
	if s.direct = !t.Control.Enabled && !s.ns3; !s.direct {
		s.waiting = make([]access, len(s.workers))
	}
	if !s.ns3 {
		s.late = 1 << 63
	}
	s.scheduleFirst()
	return s
}

// initNodes initialises the servers, ports and stations. Workers are added later.
func (s *sim) initNodes() {
	t, n := s.t, s.network
	s.active = s.acks && t.Control.Enabled
	s.listeners = make([]tc.Controller, n.listeners)
	s.servers = make([]serverState, len(t.Servers))
	for i := range t.Servers {
		s.servers[i].processing = int64(t.Servers[i].Processing)
	}
	if t.sends != nil {
		s.script = newScript(t.sends, n.workerCount)
	}
	s.byID = make([]int32, maxClusterID+1)
	for i := range n.clusters {
		s.byID[n.clusters[i].id] = int32(i)
	}
	for i := range n.stations {
		n.stations[i].sim, n.stations[i].Table.From = s, int64(t.Warmup)
	}
}

// scheduleFirst schedules the first events of the run.
func (s *sim) scheduleFirst() {
	if s.script != nil {
		s.number = uint64(len(s.t.sends))
	}
	for _, w := range s.places {
		s.scheduleUpdate(w)
	}
	for i := range s.extras {
		s.scheduleExtra(i)
	}
	for i := range s.t.Schedule {
		s.queue.Push(calendar.Event{At: int64(s.t.Schedule[i].At), Ord: 0, What: kindChange | uint64(i)})
	}
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
			w.port = s.portToward(k.server, tr.attached[at])
			w.listener = k.listen + tr.leafOf[at]
			if s.sources[src].lossy {
				w.listener = k.listen + int32(i)
			}
			s.workers = append(s.workers, w)
		}
	}
	s.sortWorkers()
}

// addCables creates the cables of workers if some links are lossy. Cables are numbered after the ports.
func (s *sim) addCables() {
	if !slices.ContainsFunc(s.sources, func(src source) bool { return src.lossy }) {
		return
	}
	s.cables = make([]cable, len(s.workers))
	for i, place := range s.places {
		number := 2 * (len(s.ports) + i)
		loss := s.trees[s.clusters[s.workers[place].cluster].tree].spec.Access.Loss
		s.cables[place].up.SetLoss(loss, 0, s.t.Seed, number)
		s.cables[place].down.SetLoss(loss, 0, s.t.Seed, number+1)
	}
}

// sortWorkers sorts the workers by offset, so that consecutive events access adjacent memory. places maps a worker's
// original index to its new index.
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
	src := source{poisson: k.Arrivals == Poisson, jitter: uint64(k.Jitter) / 1000, start: int64(k.Start), end: s.end,
		delay: int64(k.Access.Delay), lossy: k.Access.Loss > 0}
	if k.Stop > 0 {
		src.end = min(src.end, int64(k.Stop))
	}
	if k.Access.Rate > 0 {
		clock := s.t.linkClock(k.Access.Rate, k.Access.Overhead)
		src.transmit = clock.Ticks(s.t.Update)
	}
	return src
}

// estimateHorizon estimates how far in the future most events are scheduled.
func (s *sim) estimateHorizon() int64 {
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
