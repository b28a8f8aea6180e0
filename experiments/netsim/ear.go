package netsim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// ear measures one run of jobs by what it hears of them. It implements closedloop.Observer.
type ear struct {
	*Jobs
	opt     Options
	outside *outside
	packets int // of a vector
	err     error

	latest  []olaf.Time // by worker, its latest generation
	gens    []olaf.Time // by worker, when the gradient at hand was ready
	seqs    []uint32    // by worker, how many it has sent
	pending []bool      // by worker, that has not been sent
	heard   []delivery  // by job

	dropped, lost gone
	inside        []olaf.Contributor // of the latest sum
	observation   olaf.Observation
}

// gone is frames that nobody sends again, and the gradients inside of them.
type gone struct{ frames, updates uint64 }

// delivery is the sum of a job that is coming together at the server.
type delivery struct {
	inside uint64 // of its packets; of workers that do not wait nothing
	seen   []uint32
	left   int
	newest int64 // ns, of the last one that was whole
	at     olaf.Time
	// out are the gradients that are on their way, in the order in which they were sent.
	out []olaf.Contributor
}

func newEar(j *Jobs, opt Options) (*ear, error) {
	outside, err := newOutside(j.topology)
	if err != nil {
		return nil, err
	}
	workers := j.Network.Jobs * j.Network.Workers
	e := &ear{
		Jobs: j, opt: opt, outside: outside, packets: j.Job.Packets(),
		latest: make([]olaf.Time, workers), gens: make([]olaf.Time, workers), seqs: make([]uint32, workers), pending: make([]bool, workers),
		heard: make([]delivery, j.Network.Jobs),
	}
	for i := range e.heard {
		e.heard[i] = delivery{seen: make([]uint32, e.packets), left: e.packets, newest: -1}
	}
	return e, nil
}

// begin says how long a gradient takes: what lies between the worker's update before and this one in other runs of the topology.
func (e *ear) begin(worker int, _ uint32) olaf.Duration {
	next, more := e.outside.generation(worker)
	if !more {
		return e.Job.Limit
	}
	takes := next.Sub(e.latest[worker])
	e.latest[worker] = next
	return takes
}

// Computed implements closedloop.Observer. One that was not sent until the next is ready was kept back.
func (e *ear) Computed(now olaf.Time, worker int) {
	if e.pending[worker] {
		e.outside.withheld(worker, e.gens[worker])
	}
	e.gens[worker], e.pending[worker] = now, true
}

// Sent implements closedloop.Observer.
func (e *ear) Sent(_ olaf.Time, worker int) {
	if !e.pending[worker] {
		return
	}
	e.pending[worker] = false
	e.outside.sent(worker, e.gens[worker])
	d := &e.heard[worker/e.Network.Workers]
	d.out = append(d.out, olaf.Contributor{GenNS: uint64(e.gens[worker].NS()), Seq: e.seqs[worker], Worker: olaf.WorkerID(worker % e.Network.Workers)})
	e.seqs[worker]++
}

// Whole implements closedloop.Observer: the server has a sum when it has all packets of it.
func (e *ear) Whole(now olaf.Time, p *program.Packet) {
	job := int(p.Job - closedloop.FirstJob)
	d := &e.heard[job]
	if e.Mode.Sync && !d.renews(p) {
		return
	}
	at := &d.seen[p.Seg%uint64(e.packets)]
	if *at++; *at > 1 && e.Mode.Sync {
		return
	}
	if *at == 1 {
		d.left--
	}
	if d.left > 0 {
		return
	}
	for i := range d.seen {
		if d.seen[i]--; d.seen[i] == 0 {
			d.left++
		}
	}
	d.newest, d.at = int64(p.NewestNS), now
	e.deliver(now, job, p)
}

// renews says that a packet is of the sum at hand or of a later one, with which it begins anew. The server may have sent what
// was whole before once more.
func (d *delivery) renews(p *program.Packet) bool {
	if int64(p.NewestNS) <= d.newest {
		return false
	}
	if p.Inside != d.inside {
		d.inside, d.left = p.Inside, len(d.seen)
		clear(d.seen)
	}
	return true
}

// deliver is a sum that the server has. One that holds nothing of what is on its way was counted before.
func (e *ear) deliver(now olaf.Time, job int, p *program.Packet) {
	d := &e.heard[job]
	inside, newest, n := d.take(e.inside[:0], p)
	if e.inside = inside; n == 0 {
		return
	}
	e.outside.merged(job, n-1, now)
	e.outside.frame(job, now, nanoseconds(p.NewestNS), n)
	first := job * e.Network.Workers
	for i := range inside {
		e.outside.worker(first+int(inside[i].Worker), now, nanoseconds(inside[i].GenNS))
	}
	if len(inside) == 0 {
		e.outside.nameless()
	}
	if e.opt.Observer == nil {
		return
	}
	e.observation = olaf.Observation{At: now, Queued: -1, Update: olaf.Update{
		GenNS: p.NewestNS, Seq: newest.Seq, Cluster: e.outside.sim.clusters[job].id, Worker: newest.Worker, Count: uint16(n), Lanes: uint16(e.Job.Layout.Values),
	}}
	if len(inside) > 0 {
		e.observation.Contributors = inside
	}
	e.opt.Observer.Deliver(0, first+int(newest.Worker), &e.observation)
}

// take takes the gradients inside of a packet off those that are on their way, and says how many they are and which is the
// newest. Whose the others are is known only where all that are on their way are inside; they are then listed in the order of
// their instants. Otherwise those are taken that were sent just before the newest, as a switch adds up what comes one after the
// other.
func (d *delivery) take(inside []olaf.Contributor, p *program.Packet) (_ []olaf.Contributor, newest olaf.Contributor, n int) {
	if n = min(int(p.Vectors), len(d.out)); n == 0 {
		return inside, newest, 0
	}
	at := max(slices.IndexFunc(d.out, func(k olaf.Contributor) bool { return k.GenNS == p.NewestNS }), 0)
	newest = d.out[at]
	from := max(at+1-n, 0)
	if n == 1 || n == len(d.out) {
		inside = append(inside, d.out[from:from+n]...)
		slices.SortStableFunc(inside, func(a, b olaf.Contributor) int { return cmp.Compare(a.GenNS, b.GenNS) })
	}
	d.out = slices.Delete(d.out, from, from+n)
	return inside, newest, n
}

// Dropped implements closedloop.Observer.
func (e *ear) Dropped(now olaf.Time, p *program.Packet) {
	n := e.without(p, &e.dropped)
	e.outside.dropped(int(p.Job-closedloop.FirstJob), n, now)
}

// Lost implements closedloop.Observer.
func (e *ear) Lost(_ olaf.Time, p *program.Packet) { e.without(p, &e.lost) }

// without takes what is lost for good off what is on its way: workers that wait send it again, and what comes down was at the
// server.
func (e *ear) without(p *program.Packet, of *gone) (n int) {
	if e.Mode.Sync || p.Kind == program.Result {
		return 0
	}
	_, _, n = e.heard[p.Job-closedloop.FirstJob].take(e.inside[:0], p)
	of.updates += uint64(n)
	of.frames += uint64(min(n, 1))
	return n
}

func nanoseconds(ns uint64) olaf.Time { return olaf.Time(ns) * olaf.Time(olaf.Nanosecond) }

// record takes what the server receives, in the system's own frames: what reaches the root, or the servers in it.
func (e *ear) record() func(*closedloop.Frame) {
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

// follow lets the watcher look at the run, and tells how far it is.
func (e *ear) follow(last, next olaf.Time, look *closedloop.Look) (until olaf.Time, on bool) {
	if e.opt.Progress != nil && look.Events() > 0 {
		e.opt.Progress(float64(next) / float64(e.Job.Limit))
	}
	if e.opt.Watcher == nil {
		return math.MaxInt64, true
	}
	e.outside.sim.events = look.Events()
	until, on = e.opt.Watcher.Before(last, next, func(at olaf.Time) *Snapshot { return e.look(at, look) })
	if !on {
		e.outside.sim.stop(int64(min(max(until, last), next)))
	}
	return until, on
}

// look takes a picture of the run.
func (e *ear) look(at olaf.Time, look *closedloop.Look) *Snapshot {
	v := e.outside.sim.look(at)
	v.Waits, v.Fate, v.Ports = e.topology.Title(), e.fate(), nil
	ports := look.Ports(at)
	for i, sw := range e.way.switches {
		p := &ports[i+1]
		held := p.Waiting
		if sw.HoldTx && p.Sending {
			held++
		}
		v.Ports = append(v.Ports, PortSnapshot{PortResult: e.port(i, &p.Port), Occupancy: held})
	}
	return v
}

// fate is what became of all gradients that were sent.
func (e *ear) fate() Fate {
	t := &e.outside.sim.meter.total
	f := Fate{Sent: t[countSent], Delivered: t[countUpdates], Dropped: e.dropped.updates, LostOnLinks: e.lost.updates}
	for i := range e.heard {
		f.Flying += uint64(len(e.heard[i].out))
	}
	return f
}

// stalled counts the clusters of which the server had not heard for so long that workers must have tried again many times.
func (e *ear) stalled(end olaf.Time) (n int) {
	const tries = 10
	for i := range e.heard {
		if end.Sub(e.heard[i].at) > tries*e.patience {
			n++
		}
	}
	return n
}

// result is what was measured, with the ports towards the server.
func (e *ear) result(run *closedloop.Result) (*Result, error) {
	for worker, kept := range e.pending {
		if kept {
			e.outside.withheld(worker, e.gens[worker])
		}
	}
	if err := e.check(run); err != nil {
		return nil, err
	}
	r := e.outside.result()
	r.Events = run.Events
	if err := r.account(e.totals(r.Values)); err != nil {
		return nil, err
	}
	for i := range e.way.switches {
		r.Ports = append(r.Ports, e.port(i, &run.Ports[i+1]))
	}
	r.Waited = &Waited{run, e.stalled(olaf.Time(r.Time))}
	return r, nil
}

// check verifies that every gradient is somewhere, and, where workers wait for each other and every sum was exact, that no worker
// has more than one on its way. The error matches ErrAccounting.
func (e *ear) check(run *closedloop.Result) error {
	if f := e.fate(); f.Sent != f.accounted() {
		return fmt.Errorf("%w: gradients sent = delivered + dropped + lost on links + on their way: %d ≠ %d + %d + %d + %d",
			ErrAccounting, f.Sent, f.Delivered, f.Dropped, f.LostOnLinks, f.Flying)
	}
	if !e.Mode.Sync || run.Endpoints.Of("packets_inexact") > 0 || run.Endpoints.Of("updates_torn") > 0 {
		return nil
	}
	for job := range e.heard {
		if out := len(e.heard[job].out); out > e.Network.Workers {
			return fmt.Errorf("%w: %d gradients of cluster %d are on their way, of %d workers that wait", ErrAccounting, out, e.outside.sim.clusters[job].id, e.Network.Workers)
		}
	}
	return nil
}

// totals is what became of every gradient of the whole run, with the network taken as one queue: one that is inside of a sum, or
// of a part of one that was lost, was merged into it.
func (e *ear) totals(window metric.Values) olaf.Counts {
	t, f := &e.outside.sim.meter.total, e.fate()
	c := networkCounts(window)
	heldBeside := f.Dropped - e.dropped.frames + f.LostOnLinks - e.lost.frames
	for name, n := range map[string]uint64{
		"sent": f.Sent, "in": f.Sent, "delivered": t[countDelivered], "received": t[countDelivered], "queued": f.Flying,
		engine.Appended.String(): t[countDelivered] + f.Flying + e.lost.frames, engine.Aggregated.String(): t[countAggregated] + heldBeside,
		engine.DroppedFull.String(): e.dropped.frames, "flushed": e.lost.frames,
		"count_delivered": f.Delivered, "count_queued": f.Flying, "count_flushed": f.LostOnLinks, "count_discarded": f.Dropped - e.dropped.frames,
	} {
		c.Add(name, int64(n))
	}
	return c
}

// port is the port of a switch towards the server. Nothing is merged in it, and no link fails.
func (e *ear) port(i int, p *closedloop.Port) PortResult {
	sw := &e.way.switches[i]
	values := map[string]results.Float{
		"in": results.Float(p.In), "appended": results.Float(p.In - p.Dropped), "dropped": results.Float(p.Dropped), "left": results.Float(p.Left),
		"peak_occupancy": results.Float(p.Most), "utilisation": p.Busy,
	}
	to := e.topology.Servers[0].Name
	if sw.parent >= 0 {
		to = e.way.switches[sw.parent].Name
	}
	rows := PortStatistics()
	return PortResult{Port: sw.Name + "→" + to, Queue: e.topology.Queue, Slots: sw.Slots, Values: metric.NewValues(rows, func(i int) results.Float {
		return values[rows[i].Name]
	})}
}
