package netsim

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
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
	// Record takes every packet that the server receives as it is on the wire, of networks whose workers wait; its bytes are valid
	// during the call. What servers of other networks receive is an Observation.
	Record func(*capture.Packet) error
}

// Run simulates t and measures it. The same topology gives the same Result on every machine. It ends early, with the
// context's error, only when the context ends. Errors of the topology match ErrTopology; a broken accounting identity,
// which would be a mistake of this package, matches ErrAccounting.
func Run(ctx context.Context, t *Topology, opt Options) (*Result, error) {
	if t.Waiting != nil {
		j, err := NewJobs(t)
		if err != nil {
			return nil, err
		}
		return j.run(ctx, opt)
	}
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
	cables    []cable  // per worker; nil where none loses frames
	ack       olaf.Size
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

// departure and arrival make the second word of an event's order. At equal instants departures come before arrivals
// (docs/reference/semantics.md); below that, and alone with ns-3's timing, what was scheduled first happens first, as in ns-3. For
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
