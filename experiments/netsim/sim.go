package netsim

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/calendar"
)

// Observer receives every frame that reaches a server. o is valid during the call; worker is the dense index, over all
// clusters, of the newest contributor.
type Observer interface {
	Deliver(server, worker int, o *olaf.Observation)
}

// Options contains settings of a run that do not change its result.
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

// Run simulates t and measures it. The same topology gives the same Result on every machine. It ends early only when
// the context ends, with the context's error. Errors of the topology match ErrTopology; a broken accounting identity,
// which would be a bug in this package, matches ErrAccounting.
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

// Kinds of events, in the order in which they happen at one instant with one cause.
const (
	kindChange uint64 = iota << 56
	kindOutput        // port: transmission or engine cycles finished
	kindFirst         // worker: its update reached the first switch
	kindSend          // worker: an update was generated
	kindAccess        // worker: its link is idle and another update is waiting
	kindEnter         // source: the first update on its workers' links reached its switch
	kindArrive        // port: the first frame on its link reached the other end
	kindAck           // port: the first arriving ACK reached it
	kindHeard         // source: the first ACK on its workers' links reached them
	kindExtra         // background source: a packet reached its first switch

	kindMask = uint64(0xff) << 56
)

// sim is the state of one run. Everything is in slices indexed by small integers; once they have grown, an event
// allocates nothing.
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
	number uint64 // of the latest scheduled event
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

// departureOrder and arrival return the second word of an event's order. At equal instants departures come before arrivals
// (docs/reference/semantics.md); otherwise, and always with ns-3's timing, events happen in the order of scheduling, as
// in ns-3. Events therefore get their number at the point where ns-3's model schedules them: both ends of a
// transmission at its start.
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

// Largest number of events between pauses: seldom without a watcher, often with one.
const (
	seldom = 1 << 20
	often  = 1 << 14
)

// pauseRun handles watcher, progress and cancellation before the event at next; on reports whether the run continues.
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

// prefetchWorkers prefetches the workers of coming events together, so that the memory accesses overlap.
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

// prefetchInside prefetches the measurements of the workers in the next few frames on a link, also together. It acts
// once every few frames, and only on links with many.
func (s *sim) prefetchInside(l *link) {
	const few = 8
	if l.line.head%few != 0 || l.len() < 2*few {
		return
	}
	touched := uint32(0)
	for i := few; i < 2*few; i++ { // first their contributors
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
