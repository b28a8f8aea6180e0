package olaf

import (
	"container/heap"
	"errors"
	"fmt"
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen/trace"
)

// The replays of Fig. 7 send training traces through a queue and measure the time until the parameter server has received
// N updates from every worker, alone or merged: T(N) in the paper's Fig. 7.
//
// The contents of a merged update come from the engine's provenance log; a replaced update does not count. Replay is
// open loop (workers send at the trace's instants) or closed loop (a worker sends its next update an interval after the
// answer to the last, and sends lost ones again). Everything runs in virtual time and is deterministic.

// errUnfinished reports that a replay ended before N updates of every worker were delivered.
var errUnfinished = errors.New("the replay ended too early")

// fig7Queue describes the queue under test in a replay.
type fig7Queue struct {
	Queue   string // one of engine.DisciplineNames
	Slots   int
	OutRate olaf.Rate
	Profile engine.Profile
	Frame   olaf.Size
}

// replayResult is the result of one replay.
type replayResult struct {
	T        olaf.Duration // until the last worker's Nth update was delivered
	Half     olaf.Duration // until the Nth update of half of the workers was delivered
	Sent     uint64        // updates offered until then, retransmissions included
	Resent   uint64        // retransmissions, closed loop only
	Stats    engine.Stats
	Complete bool
}

// LostFraction returns the lost fraction as the paper defines it: the share of updates that neither left alone nor were
// merged.
func (r *replayResult) LostFraction() float64 {
	s := &r.Stats
	if s.In() == 0 {
		return 0
	}
	return 1 - float64(s.Class[engine.Appended]+s.Class[engine.Aggregated])/float64(s.In())
}

// replayCounter is the sink of the queue. It counts the delivered updates of each worker.
type replayCounter struct {
	got      []uint32
	target   uint32
	left     int // workers below the target
	half     int // value of left when half of the workers are done
	t, tHalf olaf.Time
	answer   func(worker olaf.WorkerID, at olaf.Time)
}

func newReplayCounter(workers int, target uint32) *replayCounter {
	return &replayCounter{got: make([]uint32, workers), target: target, left: workers, half: workers / 2}
}

// Deliver counts every contributor in a departure.
func (c *replayCounter) Deliver(d *engine.Departure) {
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

func (b *fig7Queue) newPort(clusters int, sink engine.Sink) (*engine.Port, error) {
	out, err := b.Profile.Output(b.Queue, b.OutRate)
	if err != nil {
		return nil, err
	}
	return engine.NewPort(b.Queue, engine.Config{Slots: b.Slots, Clusters: clusters, Provenance: true}, out, sink)
}

// result returns the result of a replay. The error matches errUnfinished.
func (c *replayCounter) result(p *engine.Port, sent, resent uint64) (*replayResult, error) {
	r := &replayResult{T: c.t.Sub(0), Half: c.tHalf.Sub(0), Sent: sent, Resent: resent, Stats: p.Discipline().Stats(),
		Complete: c.left == 0}
	if !r.Complete {
		return r, fmt.Errorf("%w: %d of %d workers have %d updates through after %d were sent", errUnfinished,
			len(c.got)-c.left, len(c.got), c.target, sent)
	}
	return r, nil
}

// replayOpen replays source until n updates of each worker are delivered. Workers do not retransmit, like those of a
// descriptor generator. If the source ends first, the result is incomplete and the error matches errUnfinished.
// replayOpen allocates nothing per update.
func replayOpen(source trace.Source, b fig7Queue, n int) (*replayResult, error) {
	h := source.Header()
	c := newReplayCounter(h.Workers, uint32(n))
	p, err := b.newPort(h.Clusters, c)
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
	return c.result(p, sent, 0)
}

// replayLoop configures the workers and the server of a closed-loop replay.
type replayLoop struct {
	AckDelay olaf.Duration // from the server's last bit to the worker's next iteration
	Timeout  olaf.Duration // time without an answer after which an update is sent again
	Limit    uint64        // maximum number of updates sent, as a guard against starvation
}

// sender is one worker in a closed-loop replay.
type sender struct {
	at    olaf.Time // time of its next send or retransmission
	seq   uint32
	birth uint64
	waits bool // waits for an answer; at is the timeout then
	place int  // index in the heap
}

// closedLoop is the state of a closed-loop replay. Its heap orders the workers by their next action.
type closedLoop struct {
	scaler  *trace.Scaler
	loop    replayLoop
	workers []sender
	heap    []int32
	sent    uint64
	resent  uint64
}

// replayClosed runs the workers of scaler in a closed loop until n updates of each are delivered. A worker's next
// update is ready an interval after the answer to its last update. It is resent after a timeout. The intervals come
// from scaler, whose clusters must not take turns. The error matches errUnfinished.
func replayClosed(scaler *trace.Scaler, b fig7Queue, loop replayLoop, n int) (*replayResult, error) {
	h := scaler.Header()
	c := newReplayCounter(h.Workers, uint32(n))
	p, err := b.newPort(h.Clusters, c)
	if err != nil {
		return nil, err
	}
	if loop.Timeout <= 0 {
		return nil, fmt.Errorf("%w: a timeout of %v; it must be positive", errUnfinished, loop.Timeout)
	}
	r := &closedLoop{scaler: scaler, loop: loop, workers: make([]sender, h.Workers)}
	c.answer = r.takeAnswer
	for i := range r.workers {
		r.workers[i].place = i
		r.heap = append(r.heap, int32(i))
	}
	for i := range r.workers {
		r.startIteration(int32(i), 0)
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
	return c.result(p, r.sent, r.resent)
}

// send offers worker k's update to the queue, for the first time or as a retransmission.
func (r *closedLoop) send(k int32, p *engine.Port, frame *olaf.Update, h *trace.Header) {
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
	r.reschedule(k, now.Add(r.loop.Timeout))
	p.Offer(now, frame, nil)
	r.sent++
}

// takeAnswer handles the server's answer to one contributor of a frame. It ignores a late answer to an update that was
// sent twice, because the worker is then already busy with its next update.
func (r *closedLoop) takeAnswer(worker olaf.WorkerID, at olaf.Time) {
	if w := &r.workers[worker]; w.waits {
		w.waits = false
		w.seq++
		r.startIteration(int32(worker), at.Add(r.loop.AckDelay))
	}
}

// startIteration starts the next iteration of worker k at from.
func (r *closedLoop) startIteration(k int32, from olaf.Time) {
	at := from.Add(r.scaler.Interval(int(k)))
	r.workers[k].birth = uint64(at.NS()) % olaf.GenModulus
	r.reschedule(k, at)
}

// reschedule sets the time of worker k's next action and restores the heap.
func (r *closedLoop) reschedule(k int32, at olaf.Time) {
	r.workers[k].at = at
	heap.Fix(r, r.workers[k].place)
}

// Len, Less, Swap, Push and Pop implement heap.Interface. The heap always contains all workers.
func (r *closedLoop) Len() int { return len(r.heap) }
func (r *closedLoop) Push(any) {}
func (r *closedLoop) Pop() any { return nil }

func (r *closedLoop) Less(i, j int) bool {
	a, b := r.heap[i], r.heap[j]
	ta, tb := r.workers[a].at, r.workers[b].at
	return ta < tb || ta == tb && a < b
}

func (r *closedLoop) Swap(i, j int) {
	r.heap[i], r.heap[j] = r.heap[j], r.heap[i]
	r.workers[r.heap[i]].place, r.workers[r.heap[j]].place = i, j
}
