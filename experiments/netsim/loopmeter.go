package netsim

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// loopMeter measures a run of closed-loop jobs. It receives the run's events as a closedloop.Observer.
type loopMeter struct {
	*Jobs
	opt     Options
	outside *externalMeter
	err     error

	latest     []olaf.Time           // latest generation time by worker
	gens       []olaf.Time           // by worker, the time at which its current gradient was ready
	seqs       []uint32              // by worker, the number sent
	pending    []bool                // by worker, whether its current gradient is still unsent
	deliveries []closedloop.Delivery // by job

	dropped, lost losses
	inside        []olaf.Contributor // contributors of the latest sum
	observation   olaf.Observation
}

// losses counts frames that were lost for good, and the gradients in them.
type losses struct{ frames, updates uint64 }

func newLoopMeter(j *Jobs, opt Options) (*loopMeter, error) {
	outside, err := newExternalMeter(j.topology)
	if err != nil {
		return nil, err
	}
	workers := j.Network.Jobs * j.Network.Workers
	e := &loopMeter{
		Jobs: j, opt: opt, outside: outside,
		latest: make([]olaf.Time, workers), gens: make([]olaf.Time, workers), seqs: make([]uint32, workers),
		pending:    make([]bool, workers),
		deliveries: make([]closedloop.Delivery, j.Network.Jobs),
	}
	for i := range e.deliveries {
		e.deliveries[i] = closedloop.NewDelivery(j.Job.Packets())
	}
	return e, nil
}

// computeTime returns the compute time of a worker's gradient. It is the gap between the worker's previous and next
// update in open-loop runs of the topology.
func (e *loopMeter) computeTime(worker int, _ uint32) olaf.Duration {
	next, more := e.outside.nextGeneration(worker)
	if !more {
		return e.Job.Limit
	}
	takes := next.Sub(e.latest[worker])
	e.latest[worker] = next
	return takes
}

// OnCompute implements closedloop.Observer. If the worker's previous gradient was not sent, it counts as withheld.
func (e *loopMeter) OnCompute(now olaf.Time, worker int) {
	if e.pending[worker] {
		e.outside.recordWithhold(worker, e.gens[worker])
	}
	e.gens[worker], e.pending[worker] = now, true
}

// OnSend implements closedloop.Observer.
func (e *loopMeter) OnSend(_ olaf.Time, worker int) {
	if !e.pending[worker] {
		return
	}
	e.pending[worker] = false
	e.outside.recordSend(worker, e.gens[worker])
	d := &e.deliveries[worker/e.Network.Workers]
	d.Out = append(d.Out, olaf.Contributor{GenNS: uint64(e.gens[worker].NS()), Seq: e.seqs[worker],
		Worker: olaf.WorkerID(worker % e.Network.Workers)})
	e.seqs[worker]++
}

// OnSumPacket implements closedloop.Observer.
func (e *loopMeter) OnSumPacket(now olaf.Time, p *program.Packet) {
	job := int(p.Job - closedloop.FirstJob)
	if e.deliveries[job].AddPacket(now, p, e.Mode.Sync) {
		e.recordSum(now, job, p)
	}
}

// recordSum records that a sum arrived at the server. A sum without gradients in flight was already recorded.
func (e *loopMeter) recordSum(now olaf.Time, job int, p *program.Packet) {
	d := &e.deliveries[job]
	inside, newest, n := d.TakeGradients(e.inside[:0], p)
	if e.inside = inside; n == 0 {
		return
	}
	e.outside.recordMerges(job, n-1, now)
	e.outside.recordFrame(job, now, timeOfNS(p.NewestNS), n)
	first := job * e.Network.Workers
	for i := range inside {
		e.outside.sim.meter.deliverWorker(int32(first)+int32(inside[i].Worker), now, timeOfNS(inside[i].GenNS))
	}
	if len(inside) == 0 {
		e.outside.sim.meter.nameless = true
	}
	if e.opt.Observer == nil {
		return
	}
	e.observation = olaf.Observation{At: now, Queued: -1, Update: olaf.Update{
		GenNS: p.NewestNS, Seq: newest.Seq, Cluster: e.outside.sim.clusters[job].id, Worker: newest.Worker,
		Count: uint16(n), Lanes: uint16(e.Job.Layout.Values),
	}}
	if len(inside) > 0 {
		e.observation.Contributors = inside
	}
	e.opt.Observer.Deliver(0, first+int(newest.Worker), &e.observation)
}

// OnDrop implements closedloop.Observer.
func (e *loopMeter) OnDrop(now olaf.Time, p *program.Packet) {
	n := e.removeLost(p, &e.dropped)
	e.outside.recordDrop(int(p.Job-closedloop.FirstJob), n, now)
}

// OnLoss implements closedloop.Observer.
func (e *loopMeter) OnLoss(_ olaf.Time, p *program.Packet) { e.removeLost(p, &e.lost) }

// removeLost removes gradients that were lost for good from the gradients in flight, and returns their number.
// Gradients of synchronous workers are not lost for good, because the workers send them again. Results on the way down
// are ignored, because the server has already received their gradients.
func (e *loopMeter) removeLost(p *program.Packet, of *losses) (n int) {
	if e.Mode.Sync || p.Kind == program.Result {
		return 0
	}
	_, _, n = e.deliveries[p.Job-closedloop.FirstJob].TakeGradients(e.inside[:0], p)
	of.updates += uint64(n)
	of.frames += uint64(min(n, 1))
	return n
}

func timeOfNS(ns uint64) olaf.Time { return olaf.Time(ns) * olaf.Time(olaf.Nanosecond) }

// newTap returns a tap that records the packets that reach the server, in the system's own format. Without servers for
// the jobs, it records the packets that reach the root.
func (e *loopMeter) newTap() func(*closedloop.Frame) {
	framer := closedloop.NewFramer(e.parts.Frame, &e.Network, e.parts.Server != nil)
	workers := e.Network.Jobs * e.Network.Workers
	from, to := workers, workers+1
	if e.parts.Server != nil {
		to = workers + e.Network.Jobs
	}
	return func(f *closedloop.Frame) {
		if f.To < from || f.To >= to || e.err != nil {
			return
		}
		p, err := framer.Packet(f)
		if err == nil {
			err = e.opt.Record(&p)
		}
		e.err = err
	}
}

// followRun lets the watcher look at the run, and reports the progress. It implements closedloop.Follow.
func (e *loopMeter) followRun(last, next olaf.Time, look *closedloop.Look) (until olaf.Time, on bool) {
	if e.opt.Progress != nil && look.Events() > 0 {
		e.opt.Progress(float64(next) / float64(e.Job.Limit))
	}
	if e.opt.Watcher == nil {
		return math.MaxInt64, true
	}
	e.outside.sim.events = look.Events()
	until, on = e.opt.Watcher.Before(last, next, func(at olaf.Time) *Snapshot { return e.takeSnapshot(at, look) })
	if !on {
		e.outside.sim.stopAt(int64(min(max(until, last), next)))
	}
	return until, on
}

// takeSnapshot returns a snapshot of the run at the given instant.
func (e *loopMeter) takeSnapshot(at olaf.Time, look *closedloop.Look) *Snapshot {
	v := e.outside.sim.takeSnapshot(at)
	v.Waits, v.Fate, v.Ports = e.topology.Title(), e.countFates(), nil
	ports := look.Ports(at)
	for i, sw := range e.way.switches {
		p := &ports[i+1]
		held := p.Waiting
		if sw.HoldTx && p.Sending {
			held++
		}
		v.Ports = append(v.Ports, PortSnapshot{PortResult: e.portResult(i, &p.Port), Occupancy: held})
	}
	return v
}

// countFates counts the sent gradients by what happened to them.
func (e *loopMeter) countFates() Fate {
	t := &e.outside.sim.meter.total
	f := Fate{Sent: t[countSent], Delivered: t[countUpdates], Dropped: e.dropped.updates, LostOnLinks: e.lost.updates}
	for i := range e.deliveries {
		f.Flying += uint64(len(e.deliveries[i].Out))
	}
	return f
}

// countStalled counts the stalled clusters. A cluster has stalled if its last delivery was so long ago that its workers
// must have retried many times.
func (e *loopMeter) countStalled(end olaf.Time) (n int) {
	const tries = 10
	for i := range e.deliveries {
		if end.Sub(e.deliveries[i].At) > tries*e.patience {
			n++
		}
	}
	return n
}

// makeResult returns the measurements of the run, including the switches' ports towards the server.
func (e *loopMeter) makeResult(run *closedloop.Result) (*Result, error) {
	for worker, kept := range e.pending {
		if kept {
			e.outside.recordWithhold(worker, e.gens[worker])
		}
	}
	if err := e.checkAccounts(run); err != nil {
		return nil, err
	}
	r := e.outside.sim.measureRun()
	r.Events = run.Events
	if err := r.setTotals(e.sumTotals(r.Values)); err != nil {
		return nil, err
	}
	for i := range e.way.switches {
		r.Ports = append(r.Ports, e.portResult(i, &run.Ports[i+1]))
	}
	r.Waited = &Waited{run, e.countStalled(olaf.Time(r.Time))}
	return r, nil
}

// checkAccounts verifies that every gradient is accounted for. For synchronous workers with exact sums it also verifies
// that no worker has more than one gradient in flight. The error matches ErrAccounting.
func (e *loopMeter) checkAccounts(run *closedloop.Result) error {
	if f := e.countFates(); f.Sent != f.sumParts() {
		return fmt.Errorf("%w: gradients sent = delivered + dropped + lost on links + on their way: %d ≠ %d + %d + %d + %d",
			ErrAccounting, f.Sent, f.Delivered, f.Dropped, f.LostOnLinks, f.Flying)
	}
	if !e.Mode.Sync || run.Endpoints.Of("packets_inexact") > 0 || run.Endpoints.Of("updates_torn") > 0 {
		return nil
	}
	for job := range e.deliveries {
		if out := len(e.deliveries[job].Out); out > e.Network.Workers {
			return fmt.Errorf("%w: %d gradients of cluster %d are on their way, of %d workers that wait", ErrAccounting,
				out, e.outside.sim.clusters[job].id, e.Network.Workers)
		}
	}
	return nil
}

// sumTotals returns the counts of all gradients in the whole run, as if the network were a single queue. A gradient in
// a sum, or in a lost part of a sum, counts as merged.
func (e *loopMeter) sumTotals(window metric.Values) olaf.Counts {
	t, f := &e.outside.sim.meter.total, e.countFates()
	c := networkCounts(window)
	heldBeside := f.Dropped - e.dropped.frames + f.LostOnLinks - e.lost.frames
	for name, n := range map[string]uint64{
		"sent": f.Sent, "in": f.Sent, "delivered": t[countDelivered], "received": t[countDelivered], "queued": f.Flying,
		engine.Appended.String():    t[countDelivered] + f.Flying + e.lost.frames,
		engine.Aggregated.String():  t[countAggregated] + heldBeside,
		engine.DroppedFull.String(): e.dropped.frames, "flushed": e.lost.frames,
		"count_delivered": f.Delivered, "count_queued": f.Flying, "count_flushed": f.LostOnLinks,
		"count_discarded": f.Dropped - e.dropped.frames,
	} {
		c.Add(name, int64(n))
	}
	return c
}

// portResult returns the result for a switch's port towards the server. Such a port merges nothing, and its link never
// fails.
func (e *loopMeter) portResult(i int, p *closedloop.Port) PortResult {
	sw := &e.way.switches[i]
	values := map[string]results.Float{
		"in": results.Float(p.In), "appended": results.Float(p.In - p.Dropped), "dropped": results.Float(p.Dropped),
		"left":           results.Float(p.Left),
		"peak_occupancy": results.Float(p.Most), "utilisation": p.Busy,
	}
	to := e.topology.Servers[0].Name
	if sw.parent >= 0 {
		to = e.way.switches[sw.parent].Name
	}
	rows := PortStatistics()
	return PortResult{Port: sw.Name + "→" + to, Queue: e.topology.Queue, Slots: sw.Slots,
		Values: metric.NewValues(rows, func(i int) results.Float {
			return values[rows[i].Name]
		})}
}
