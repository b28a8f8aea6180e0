package netsim

import (
	"math"
	"math/rand/v2"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/internal/calendar"
	"github.com/olafctl/olaf/internal/exactmath"
	"github.com/olafctl/olaf/internal/splitmix"
)

// heldUpdate is an update that waits for its worker's link.
type heldUpdate struct {
	update olaf.Update
	next   int32 // 1 + index of the next one
}

// scheduleUpdate schedules the next update of worker i.
func (s *sim) scheduleUpdate(i int32) {
	w := &s.workers[i]
	src := &s.sources[w.source]
	order := uint64(0)
	if s.script != nil {
		w.gen, order = s.script.sendOf(int(s.clusters[w.cluster].firstWorker)+int(w.number), w.seq)
		order |= s.late
	} else {
		w.gen = src.generationTime(w)
	}
	if w.gen >= src.end {
		return
	}
	if s.script == nil {
		order = s.arrivalOrder()
	}
	if !s.direct {
		s.queue.Push(calendar.Event{At: w.gen, Ord: order, What: kindSend | uint64(i)})
		return
	}
	s.meter.countSend(w, w.gen)
	s.meter.airborne++
	w.free = max(w.gen, w.free) + src.transmit
	s.queue.Push(calendar.Event{At: w.free + src.delay, Ord: order, What: kindFirst | uint64(i)})
}

// newUpdate returns the update that worker i generated most recently.
func (s *sim) newUpdate(i int32) olaf.Update {
	w := &s.workers[i]
	u := olaf.Update{
		GenNS: uint64(w.gen/int64(olaf.Nanosecond)) % olaf.GenModulus, Seq: w.seq, Cluster: w.id, Worker: w.number,
		Count: 1, Lanes: uint16((s.t.Update - olaf.HeaderBytes) / olaf.LaneBytes),
	}
	if s.t.RewardFilter {
		u.Reward = w.drawReward()
	}
	return u
}

// reachFirst delivers an update of worker i to the first switch, unless it is lost on the worker's link.
func (s *sim) reachFirst(i int32) {
	w := &s.workers[i]
	s.update = s.newUpdate(i)
	w.seq++
	s.meter.airborne--
	if s.cables == nil || !s.cables[i].up.Carry(s.t.Update, s.sources[w.source].transmit) {
		s.reachSwitch(w.port, int32(w.cluster), &s.update)
	}
	s.scheduleUpdate(i)
}

// generateUpdate handles an update that worker i has just generated. The transmission control decides whether to send
// it over the access link.
func (s *sim) generateUpdate(i int32) {
	w := &s.workers[i]
	if s.decideSend(w) {
		s.meter.countSend(w, s.now)
		u := s.newUpdate(i)
		a := &s.waiting[i]
		switch {
		case a.first != 0:
			h := s.holdUpdate(u)
			s.held.items[a.last-1].next = h
			a.last = h
		case s.now < w.free || s.now == w.free && s.order < a.done:
			a.first = s.holdUpdate(u)
			a.last = a.first
			s.queue.Push(calendar.Event{At: w.free, Ord: a.done, What: kindAccess | uint64(i)})
		default:
			s.transmitUpdate(i, &u)
		}
	} else {
		s.meter.countWithhold(int32(w.cluster), s.now)
	}
	w.seq++
	s.scheduleUpdate(i)
}

func (s *sim) decideSend(w *worker) bool {
	if !s.t.Control.Enabled {
		return true
	}
	draw := uniformDraw(splitmix.MixBits(w.base ^ saltControl + uint64(w.seq)))
	return s.listeners[w.listener].Decide(s.control, olaf.Time(s.now), draw)
}

// holdUpdate stores an update that must wait for its worker's link. It returns the index of the stored update, plus 1.
func (s *sim) holdUpdate(u olaf.Update) int32 {
	h := s.held.take()
	s.held.items[h] = heldUpdate{update: u}
	return h + 1
}

// transmitUpdate puts an update on the link of worker i. The link must be idle.
func (s *sim) transmitUpdate(i int32, u *olaf.Update) {
	w := &s.workers[i]
	src := &s.sources[w.source]
	w.free = s.now + src.transmit
	s.waiting[i].done = s.departureOrder()
	if s.cables != nil && s.cables[i].up.Carry(s.t.Update, src.transmit) {
		return
	}
	x := src.sent.push()
	*x = entering{w.free + src.delay, s.arrivalOrder(), *u, int32(w.cluster), w.port}
	if src.sent.len() == 1 {
		s.queue.Push(calendar.Event{At: x.at, Ord: x.ord, What: kindEnter | uint64(w.source)})
	}
}

// transmitHeld puts the next waiting update on the link of worker i.
func (s *sim) transmitHeld(i int32) {
	a := &s.waiting[i]
	h := a.first - 1
	a.first = s.held.items[h].next
	s.transmitUpdate(i, &s.held.items[h].update)
	s.held.give(h)
	if a.first != 0 {
		s.queue.Push(calendar.Event{At: s.workers[i].free, Ord: a.done, What: kindAccess | uint64(i)})
	}
}

// enterSwitch delivers the first update on the links of source i to its switch.
func (s *sim) enterSwitch(i int32) {
	sent := &s.sources[i].sent
	x := sent.at(0)
	s.reachSwitch(x.port, x.cluster, &x.update)
	sent.drop()
	if sent.len() > 0 {
		x = sent.at(0)
		s.queue.Push(calendar.Event{At: x.at, Ord: x.ord, What: kindEnter | uint64(i)})
	}
}

// uniformDraw maps a random number to [0, 1). All random numbers in a run are computed with splitmix from seed, worker
// and update number. They do not depend on the order of events, and ns-3 can reproduce them.
func uniformDraw(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// Salts separate draws for different purposes.
const (
	saltControl = 0x5443
	saltSpread  = 0x5350
	saltGap     = 0x4741
	saltReward  = 0x5257
)

// source is the state that all workers in one entry of Clusters share.
type source struct {
	poisson    bool
	jitter     uint64 // ns; 0 for none
	start, end int64  // ps; no update is generated at or after end
	transmit   int64  // ps on the access link
	delay      int64
	lossy      bool // workers' links are lossy

	// sent contains the packets on the workers' links. The links are identical, so one queue per direction is enough.
	sent line[entering]
	acks line[ack]
}

// entering is an update on a worker's link, with the time at which it reaches the switch.
type entering struct {
	at      int64 // when it reaches its switch; ord orders equal times
	ord     uint64
	update  olaf.Update
	cluster int32
	port    int32 // out of that switch
}

// worker is one sender. It fits in one cache line, so that with a hundred thousand workers an update costs only one
// cache miss.
type worker struct {
	base     uint64
	period   int64
	offset   int64 // start and phase
	gen      int64 // generation time of the scheduled update
	free     int64 // when its access link is idle again
	seq      uint32
	sent     uint32 // within the window
	port     int32  // out of its switch
	listener int32
	cluster  uint16 // index; there are no more clusters than ids
	source   uint16
	id       olaf.ClusterID
	number   olaf.WorkerID
}

// cable is the link of a worker, in both directions. Cables exist only if some links are lossy.
type cable struct{ up, down closedloop.Direction }

// access is the queue in front of a worker's link. Access queues exist only if sends have separate events.
type access struct {
	done        uint64 // order of the event at which the link becomes idle
	first, last int32  // 1 + index of the first and of the last held update
}

// never is a generation time later than the end of any run.
const never = math.MaxInt64

// generationTime returns the time at which update w.seq is generated. The previous update was generated at w.gen.
func (s *source) generationTime(w *worker) int64 {
	if s.poisson {
		gap := -exactmath.Log1p(-uniformDraw(splitmix.MixBits(w.base ^ saltGap + uint64(w.seq))))
		return w.gen + int64(gap*float64(w.period)/1000)*1000
	}
	at := w.offset + int64(w.seq)*w.period
	if s.jitter > 0 {
		at += int64(splitmix.MixBits(w.base+uint64(w.seq))%s.jitter) * 1000
	}
	return at
}

// drawReward returns the reward of update w.seq in Q24.8. Rewards are normally distributed as in a bench, with mean 0
// and standard deviation 1.
func (w *worker) drawReward() int32 {
	x := splitmix.MixBits(w.base ^ saltReward + uint64(w.seq))
	r := rand.New(rand.NewPCG(x, splitmix.MixBits(x)))
	return int32(math.RoundToEven(exactmath.NormFloat64(r) * 256))
}

// newWorker returns a worker with its phase and its period. index counts the workers in the whole network.
func (k *Clusters) newWorker(seed uint64, index int) worker {
	w := worker{base: splitmix.MixBits(seed*1000003 + uint64(index)), period: int64(k.Period), offset: int64(k.Start)}
	w.gen = w.offset
	if k.Spread > 0 {
		u := float64(2*uniformDraw(splitmix.MixBits(w.base^saltSpread))) - 1
		w.period += int64(math.Round(float64(u*float64(k.Spread)) * float64(k.Period)))
	}
	span := k.Phase
	if span.IsZero() {
		span.To = olaf.Duration(w.period)
	}
	w.offset += int64(span.From)
	if width := uint64(span.To-span.From) / 1000; width > 0 {
		w.offset += int64(w.base%width) * 1000
	}
	return w
}

// extra is a source of background traffic.
type extra struct {
	w      worker
	source source
	size   olaf.Size
	server int32
}

func (s *sim) addExtras() {
	for i := range s.t.Background {
		b := &s.t.Background[i]
		at, server := s.nodeIndex(b.At), s.nodeIndex(b.To)-int32(s.switches)
		spec := Clusters{Period: b.Rate.TimeToSend(b.Size), Start: b.Start, Stop: b.Stop, Arrivals: b.Arrivals}
		w := spec.newWorker(s.t.Seed, len(s.workers)+i)
		w.port = s.portToward(server, at)
		s.extras = append(s.extras, extra{w, s.newSource(&spec), b.Size, server})
	}
}

// offerBackground offers a background packet from source x to a port.
func (s *sim) offerBackground(to, x int32) {
	p := &s.ports[to]
	taken, started := p.output.Bypass(olaf.Time(s.now), s.extras[x].size, x)
	if !taken {
		p.bypassDropped++
	}
	if started {
		s.launchFrame(to)
	}
}

// scheduleExtra schedules the next background packet of source i.
func (s *sim) scheduleExtra(i int) {
	x := &s.extras[i]
	x.w.gen = x.source.generationTime(&x.w)
	if x.w.gen < x.source.end {
		s.queue.Push(calendar.Event{At: x.w.gen, Ord: s.arrivalOrder(), What: kindExtra | uint64(i)})
	}
}

func (s *sim) sendExtra(i int32) {
	x := &s.extras[i]
	x.w.seq++
	s.meter.backgroundSent++
	s.offerBackground(x.w.port, i)
	s.scheduleExtra(int(i))
}
