// Package speedup replays training traces through a queue and asks how long it takes until the parameter server has N
// updates of every worker, by themselves or inside merged ones: the T(N) of the paper's Fig. 7.
//
// Who was inside comes from the engine's provenance log; a replaced update does not count. Replay is open loop (workers
// send when the trace says) or closed loop (a worker sends its next update an interval after the answer to the last,
// and sends again what was lost). Everything is virtual time and deterministic.
package speedup

import (
	"errors"
	"fmt"
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen/trace"
)

// ErrUnfinished says that a replay ended before every worker had its N updates through.
var ErrUnfinished = errors.New("the replay ended too early")

// Bottleneck is the queue that updates go through.
type Bottleneck struct {
	Queue   string // one of engine.DisciplineNames
	Slots   int
	OutRate olaf.Rate
	Profile engine.Profile
	Frame   olaf.Size
}

// Result is one replay.
type Result struct {
	T        olaf.Duration // until the last worker had its Nth update through
	Half     olaf.Duration // until half of the workers had
	Sent     uint64        // updates offered until then, retransmissions included
	Resent   uint64        // retransmissions, closed loop only
	Stats    engine.Stats
	Complete bool
}

// Lost is the paper's lost fraction: what neither left by itself nor was merged.
func (r *Result) Lost() float64 {
	s := &r.Stats
	if s.In() == 0 {
		return 0
	}
	return 1 - float64(s.Class[engine.Appended]+s.Class[engine.Aggregated])/float64(s.In())
}

// counter is the sink of the queue: it counts per worker what got through.
type counter struct {
	got      []uint32
	target   uint32
	left     int // workers that are not there yet
	half     int // … at which half is reached
	t, tHalf olaf.Time
	answer   func(worker olaf.WorkerID, at olaf.Time)
}

func newCounter(workers int, target uint32) *counter {
	return &counter{got: make([]uint32, workers), target: target, left: workers, half: workers / 2}
}

// Deliver counts everybody inside.
func (c *counter) Deliver(d *engine.Departure) {
	for _, in := range d.Frame.Contributors {
		c.got[in.Worker]++
		if c.got[in.Worker] == c.target {
			c.left--
			if c.left == c.half {
				c.tHalf = d.At
			}
			c.t = d.At
		}
		if c.answer != nil {
			c.answer(in.Worker, d.At)
		}
	}
}

func (b *Bottleneck) port(clusters int, sink engine.Sink) (*engine.Port, error) {
	out, err := b.Profile.Output(b.Queue, b.OutRate)
	if err != nil {
		return nil, err
	}
	return engine.NewPort(b.Queue, engine.Config{Slots: b.Slots, Clusters: clusters, Provenance: true}, out, sink)
}

func (c *counter) result(p *engine.Port, sent uint64) *Result {
	return &Result{T: c.t.Sub(0), Half: c.tHalf.Sub(0), Sent: sent, Stats: p.Discipline().Stats(), Complete: c.left == 0}
}

// Open replays source until n updates of each worker have got through. Nobody retransmits: a worker simply sends its
// next update, which is all that a descriptor generator can do. The result of a source that ends before is incomplete
// and comes with ErrUnfinished. It allocates nothing per update.
func Open(source trace.Source, b Bottleneck, n int) (*Result, error) {
	h := source.Header()
	c := newCounter(h.Workers, uint32(n))
	p, err := b.port(h.Clusters, c)
	if err != nil {
		return nil, err
	}
	var u trace.Update
	frame := olaf.Update{Lanes: uint16((b.Frame - olaf.HeaderBytes) / olaf.LaneBytes), Count: 1}
	var sent uint64
	for c.left > 0 {
		if err := source.Next(&u); err == io.EOF {
			p.Drain()
			break
		} else if err != nil {
			return nil, err
		}
		frame.GenNS, frame.Seq, frame.Reward = uint64(u.GenNS)%olaf.GenModulus, u.Seq, u.RewardQ248()
		frame.Cluster, frame.Worker = u.Cluster, u.Worker
		p.Offer(olaf.Time(u.GenNS*int64(olaf.Nanosecond)), &frame, nil)
		sent++
	}
	r := c.result(p, sent)
	if !r.Complete {
		return r, fmt.Errorf("%w: %d of %d workers have %d updates through after %d were sent", ErrUnfinished, h.Workers-c.left, h.Workers, n, sent)
	}
	return r, nil
}

// Loop is how workers and server talk in a closed loop.
type Loop struct {
	AckDelay olaf.Duration // from the server's last bit to the worker's next iteration
	Timeout  olaf.Duration // from sending to sending again without an answer
	Limit    uint64        // updates sent at most, a guard against starvation
}

// sender is one worker of a closed loop.
type sender struct {
	at    olaf.Time // when it does next what it does: send, or send again
	seq   uint32
	birth uint64
	waits bool // for an answer; at is then the timeout
	place int  // in the heap
}

// closed is a closed-loop replay. Its heap holds the workers by what they do next.
type closed struct {
	scaler  *trace.Scaler
	loop    Loop
	workers []sender
	heap    []int32
	sent    uint64
	resent  uint64
}

// Closed runs the workers of scaler in a closed loop until n updates of each have got through: a worker's next update is
// ready an interval after the answer to the last one, and is sent again after a timeout. Intervals come from scaler,
// whose clusters must not take turns.
func Closed(scaler *trace.Scaler, b Bottleneck, loop Loop, n int) (*Result, error) {
	h := scaler.Header()
	c := newCounter(h.Workers, uint32(n))
	p, err := b.port(h.Clusters, c)
	if err != nil {
		return nil, err
	}
	if loop.Timeout <= 0 {
		return nil, fmt.Errorf("%w: a timeout of %v; it must be positive", ErrUnfinished, loop.Timeout)
	}
	r := &closed{scaler: scaler, loop: loop, workers: make([]sender, h.Workers)}
	c.answer = r.answered
	for i := range r.workers {
		r.workers[i].place = i
		r.heap = append(r.heap, int32(i))
	}
	for i := range r.workers {
		r.ready(int32(i), 0)
	}
	frame := olaf.Update{Lanes: uint16((b.Frame - olaf.HeaderBytes) / olaf.LaneBytes), Count: 1}
	for c.left > 0 && r.sent < loop.Limit {
		first := r.heap[0]
		if leave, busy := p.Next(); busy && leave <= r.workers[first].at {
			p.Advance(leave)
			continue
		}
		r.send(first, p, &frame, h)
	}
	result := c.result(p, r.sent)
	result.Resent = r.resent
	if !result.Complete {
		return result, fmt.Errorf("%w: %d of %d workers have %d updates through after %d were sent", ErrUnfinished, h.Workers-c.left, h.Workers, n, r.sent)
	}
	return result, nil
}

// send offers the worker's update, for the first time or again.
func (r *closed) send(k int32, p *engine.Port, frame *olaf.Update, h *trace.Header) {
	w := &r.workers[k]
	frame.Flags = 0
	if w.waits {
		frame.Flags = olaf.Retransmission
		r.resent++
	}
	frame.Worker, frame.Seq, frame.GenNS = olaf.WorkerID(k), w.seq, w.birth
	frame.Cluster = olaf.ClusterID(int(k) * h.Clusters / h.Workers)
	now := w.at
	w.waits = true
	r.move(k, now.Add(r.loop.Timeout))
	p.Offer(now, frame, nil)
	r.sent++
}

// answered is the server's answer to a contributor. A late answer to an update that was sent twice finds the worker busy
// with the next one and is ignored.
func (r *closed) answered(worker olaf.WorkerID, at olaf.Time) {
	if w := &r.workers[worker]; w.waits {
		w.waits = false
		w.seq++
		r.ready(int32(worker), at.Add(r.loop.AckDelay))
	}
}

// ready lets the worker's next iteration begin at from.
func (r *closed) ready(k int32, from olaf.Time) {
	at := from.Add(r.scaler.Interval(int(k)))
	r.workers[k].birth = uint64(at.NS()) % olaf.GenModulus
	r.move(k, at)
}

// move changes when worker k acts and restores the heap.
func (r *closed) move(k int32, at olaf.Time) {
	w := &r.workers[k]
	w.at = at
	for i := w.place; i > 0; {
		parent := (i - 1) / 2
		if !r.before(i, parent) {
			break
		}
		r.swap(i, parent)
		i = parent
	}
	for i := w.place; ; {
		child := 2*i + 1
		if child >= len(r.heap) {
			return
		}
		if child+1 < len(r.heap) && r.before(child+1, child) {
			child++
		}
		if !r.before(child, i) {
			return
		}
		r.swap(i, child)
		i = child
	}
}

func (r *closed) before(i, j int) bool {
	a, b := r.heap[i], r.heap[j]
	ta, tb := r.workers[a].at, r.workers[b].at
	return ta < tb || ta == tb && a < b
}

func (r *closed) swap(i, j int) {
	r.heap[i], r.heap[j] = r.heap[j], r.heap[i]
	r.workers[r.heap[i]].place, r.workers[r.heap[j]].place = i, j
}
