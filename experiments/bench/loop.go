package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/wired"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results"
)

// runLoop runs a closed loop once. It configures the switch, runs the hosts and reads the counters.
func (b *station) runLoop(ctx context.Context, id RunID) (run results.Run, err error) {
	c := &b.plan.Configs[id.Config]
	if err := b.Prepare(ctx, id.Config); err != nil {
		return run, err
	}
	b.collector.Reset(b.plan.measureConfig(c))
	if err := b.stream.publishEvent(RunStarted{id}); err != nil {
		return run, err
	}
	net, job, parts, err := b.plan.makeHosts(c)
	if err != nil {
		return run, err
	}
	if err := b.describeHosts(ctx, c, &parts); err != nil {
		return run, err
	}
	parts.Root = b.Device.(fpga.Looper).OpenLoop // checkLooper has checked the type
	watch := b.watchRounds(id)
	watch.registerCallbacks(c, &job, &parts)
	if b.stream.recordsRun(id) {
		watch.framer = closedloop.NewFramer(parts.Frame, &net, parts.Server != nil)
		job.Tap = watch.publishFrame
	}
	played, err := b.hostsPlay(ctx, id, net, job, parts)
	if err = errors.Join(err, watch.publishBatch(), watch.err); err != nil {
		return run, err
	}
	result := played.Result
	counters, err := b.Snapshot()
	if err != nil {
		return run, err
	}
	run = b.collector.Finish(b.loopCounts(&counters, result, &net, &parts))
	run.Queue, run.OutRateBPS = c.Queue, int64(c.OutRate)
	run.Index, run.Seed = id.Index, b.plan.Seeds[id.Index]
	inexactly := !c.mode.Sync || parts.Inexact && net.Link.Loss > 0
	run.Invalid = append(append(b.loopDoubts(result, job.Limit, &parts, inexactly), played.Faults...), run.Invalid...)
	if p := played.Pacing; p != nil {
		run.LatenessNS = &p.LatenessNS
		if p.Withheld != "" {
			run.Withhold(p.Withheld)
		}
	}
	return run, nil
}

// hostsPlay runs the hosts of a closed loop, on wires if the run is measured and otherwise in virtual time.
func (b *station) hostsPlay(ctx context.Context, id RunID, net closedloop.Network, job closedloop.Job,
	parts system.Parts) (*wired.Played, error) {
	if b.measured {
		return wired.Run(ctx, net, job, parts, b.plan.Configs[id.Config].mode.Sync, b.plan.Seeds[id.Index])
	}
	result, err := closedloop.Run(ctx, net, job, parts, b.plan.Configs[id.Config].mode.Sync, b.plan.Seeds[id.Index])
	return &wired.Played{Result: result}, err
}

// PlayLoop runs a plan's closed loop around the switch's program, without a twin. The results at the hosts are the same
// as with a twin. follow may be nil.
func (p *Plan) PlayLoop(ctx context.Context, config, index int, follow closedloop.Follow) (*closedloop.Result, error) {
	c := &p.Configs[config]
	net, job, parts, err := p.makeHosts(c)
	if err != nil {
		return nil, err
	}
	job.Follow = follow
	return closedloop.Run(ctx, net, job, parts, c.mode.Sync, p.Seeds[index])
}

// rounds observes a closed loop. A round of a job becomes one observation when the last worker has applied it.
type rounds struct {
	station *station
	id      RunID
	fan     int
	made    [][2]uint64 // ns, by worker: when its gradients for even and odd rounds were ready
	had     [][2]int    // by job: workers that have applied an even and an odd round
	inside  []olaf.Contributor
	pending []olaf.Observation
	framer  *closedloop.Framer // nil without recorders
	err     error
	ahead   *ahead // nil if all workers wait for the complete sum
}

// registerCallbacks registers the callbacks through which r observes a job's hosts.
func (r *rounds) registerCallbacks(c *Config, job *closedloop.Job, parts *system.Parts) {
	if c.mode.Sync {
		job.Values, job.Applied = r.recordGradient, r.recordApply
		return
	}
	r.ahead = newAhead(r, parts.Server != nil && parts.Window == 0)
	job.Values, job.Applied, job.Observer = r.ahead.recordGradient, r.ahead.recordApply, r.ahead
	if !r.station.measured { // on wires, the switch itself reports sums
		r.ahead.sums.WrapPrograms(parts)
	}
}

func (b *station) watchRounds(id RunID) *rounds {
	w := &b.plan.Spec.Workload
	return &rounds{station: b, id: id, fan: b.plan.Spec.workersPerJob(), made: make([][2]uint64, w.Workers),
		had: make([][2]int, w.Clusters)}
}

// recordGradient records the time at which a worker's gradient was ready. It returns no values. No worker is more than
// one round ahead of another.
func (r *rounds) recordGradient(now olaf.Time, worker int, vector uint32) []uint32 {
	r.made[worker][vector%2] = uint64(now) / uint64(olaf.Nanosecond)
	return nil
}

// recordApply counts the workers that have applied a round, and adds an observation for the last one.
func (r *rounds) recordApply(now olaf.Time, host int, a *endpoint.Aggregate) {
	if host >= len(r.made) { // a server only adds and has no model
		return
	}
	job, turn := host/r.fan, a.Number%2
	if r.had[job][turn]++; r.had[job][turn] < r.fan {
		return
	}
	r.had[job][turn] = 0
	r.observeRound(now, job, a.Number)
}

// batch is the number of observations that are published together.
const batch = 256

func (r *rounds) observeRound(now olaf.Time, job int, round uint32) {
	first := len(r.inside)
	o := olaf.Observation{At: now, Queued: -1,
		Update: olaf.Update{Seq: round, Cluster: olaf.ClusterID(job), Count: uint16(r.fan)}}
	for w := job * r.fan; w < (job+1)*r.fan; w++ {
		k := olaf.Contributor{GenNS: r.made[w][round%2], Seq: round, Worker: olaf.WorkerID(w)}
		if k.GenNS >= o.Update.GenNS {
			o.Update.GenNS, o.Update.Worker = k.GenNS, k.Worker
		}
		r.inside = append(r.inside, k)
	}
	o.Contributors = r.inside[first:len(r.inside):len(r.inside)]
	r.addObservation(o)
}

// addObservation appends an observation to the current batch.
func (r *rounds) addObservation(o olaf.Observation) {
	if r.pending = append(r.pending, o); len(r.pending) == batch {
		r.err = errors.Join(r.err, r.publishBatch())
	}
}

// publishBatch publishes the observations collected since the last call.
func (r *rounds) publishBatch() error {
	b := r.station
	for i := range r.pending {
		b.collector.Observe(&r.pending[i])
	}
	defer func() { r.pending, r.inside = r.pending[:0], r.inside[:0] }()
	if len(r.pending) == 0 || !b.stream.hasSinks() {
		return nil
	}
	return b.stream.publishEvent(Observed{r.id, r.pending})
}

// publishFrame publishes a frame in its system's own format. After the first error it publishes nothing more.
func (r *rounds) publishFrame(f *closedloop.Frame) {
	if r.err != nil {
		return
	}
	p, err := r.framer.Packet(f)
	if err == nil {
		err = r.station.stream.publishEvent(Framed{r.id, p})
	}
	r.err = err
}

// loopCounts combines the counts from the device's registers, the hosts and the links in a run.
func (b *station) loopCounts(c *fpga.Counters, r *closedloop.Result, net *closedloop.Network,
	parts *system.Parts) olaf.Counts {
	counts := b.accounts[b.config].Counts(c)
	for i := range r.Endpoints.Ledger().Counters {
		counts.Add(r.Endpoints.Ledger().Counters[i].Name, r.Endpoints.At(i))
	}
	for i := range r.Below.Names() { // no register counts these
		counts.Add(r.Below.Ledger().Counters[i].Name, r.Below.At(i))
	}
	s := &b.plan.Spec
	packets := closedPackets(s, parts)
	vectors := packets
	if !b.plan.Configs[b.config].mode.Sync { // asynchronous workers send a variable number
		vectors = packets / int64(s.Workload.UpdatesPerWorker*s.Workload.Workers) * r.Endpoints.Of("vectors_sent")
	}
	served := int64(0)
	if r.Served.Known() {
		served = int64(math.Round(float64(r.Served) * float64(packets) / float64(net.Workers)))
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"received", b.collector.ObservedCount()}, {"frames", int64(r.Frames)}, {"frames_arrived", int64(r.Arrived)},
		{"frames_lost", int64(r.Lost)},
		{"frames_underway", int64(r.Underway)}, {"frames_switched", int64(r.Switched)},
		{"frames_marked", int64(r.Marked)}, {"frames_served", served},
		{"wire_bytes", int64(r.Bytes)}, {"vector_packets", vectors}, {"slots_peak", toCount(r.OccupiedSlotsPeak, 1)},
		{"slots_left", int64(r.HeldLast)},
		{"memory_bytes", int64(r.Memory)}, {"slots_built", int64(r.Slots)},
		{"held_slot_ns", toCount(r.OccupiedSlots*r.Duration, 1)},
		{"goodput_bps", toCount(r.Goodput, 1)}, {"ceiling_bps", closedloop.GoodputCeiling(net, parts)},
		{"iteration_ps", toCount(r.Iteration, 1000)},
		{"gradient_ps", toCount(r.Gradient, 1000)},
		{"aggregation_ps", toCount(r.Aggregation, 1000)}, {"completion_ps", toCount(r.Completion, 1000)},
		{"span_ps", toCount(r.Duration, 1000)},
		{"stale_micro", toCount(r.StaleUpdates, 1e6)},
	} {
		counts.Add(n.name, n.value)
	}
	return counts
}

// closedPackets returns the number of packets that all workers send for their vectors in all rounds, without
// retransmissions.
func closedPackets(s *Spec, parts *system.Parts) int64 {
	l := endpoint.Layout{Values: s.Loop.Values, PerPacket: parts.PerPacket}
	return int64(l.Packets()) * int64(s.Workload.UpdatesPerWorker) * int64(s.Workload.Workers)
}

// toCount multiplies v by the given factor and rounds the product to a count. A missing number becomes 0.
func toCount(v results.Float, by float64) int64 {
	if !v.Known() {
		return 0
	}
	return int64(math.Round(float64(v) * by))
}

// loopDoubts returns the reasons why a run of a closed loop is invalid. If the system is published as inexact under
// loss, or workers do not wait for the complete sum, neither the contents of sums nor occupied slots are a reason.
func (b *station) loopDoubts(r *closedloop.Result, limit olaf.Duration, parts *system.Parts, inexactly bool) []string {
	var why []string
	of, late := " of virtual time", ""
	if b.measured {
		of = ""
		if parts.Inexact {
			late = ": packets later than --timeout are sent again, and this profile adds them twice; use a longer --timeout"
		}
	}
	say := func(bad bool, format string, a ...any) {
		if bad {
			why = append(why, fmt.Sprintf(format, a...))
		}
	}
	say(r.Hung, "it hung: some hosts had not finished after %v%s, the limit", limit, of)
	if inexactly {
		return why
	}
	inexact, torn := r.Endpoints.Of("packets_inexact"), r.Endpoints.Of("updates_torn")
	say(inexact > 0, "%d packets of sums do not contain exactly one contribution from every worker%s", inexact, late)
	say(torn > 0, "%d updates contain sums of different rounds", torn)
	say(!r.Hung && r.HeldLast > 0, "%d slots are still in use after the last job", r.HeldLast)
	return why
}

// ahead observes a closed loop with asynchronous workers. An update becomes an observation when the last worker has it
// or, if a server stores the weights, when the server has it. It implements closedloop.Observer.
type ahead struct {
	closedloop.Unobserved
	*rounds
	served bool // a server stores the weights
	latest []olaf.Contributor
	out    [][]olaf.Contributor // by job: gradients that were sent but not yet found in an update
	had    [][]int              // by job and incomplete update, from next on: the number of workers that have it
	next   []uint32             // by job: number of the first incomplete update
	sums   closedloop.Sums
}

// OnSum implements wired.Listener. It records the gradients in a sum.
func (a *ahead) OnSum(job int, inside uint64, all []wired.Gradient) {
	marks := olaf.Map(all, func(g wired.Gradient) uint64 { return a.markOf(job, olaf.WorkerID(g.Host), g.Vector) })
	a.sums[closedloop.Sum{Job: job, Inside: inside}] = marks
}

// markOf returns the mark that a gradient adds to program.Trace.Inside. Marks number workers within their job.
func (a *ahead) markOf(job int, w olaf.WorkerID, vector uint32) uint64 {
	return program.ContributionMark(w-olaf.WorkerID(job*a.fan), vector)
}

func newAhead(r *rounds, served bool) *ahead {
	jobs := len(r.had)
	return &ahead{rounds: r, served: served, latest: make([]olaf.Contributor, len(r.made)),
		out: make([][]olaf.Contributor, jobs), had: make([][]int, jobs), next: make([]uint32, jobs), sums: closedloop.Sums{}}
}

// recordGradient records the time at which a worker's gradient was ready. It returns no values.
func (a *ahead) recordGradient(now olaf.Time, worker int, vector uint32) []uint32 {
	a.latest[worker] = olaf.Contributor{GenNS: uint64(now) / uint64(olaf.Nanosecond), Seq: vector,
		Worker: olaf.WorkerID(worker)}
	return nil
}

// OnSend implements closedloop.Observer. It is not called for a gradient that is too old to be sent.
func (a *ahead) OnSend(_ olaf.Time, worker int) {
	job := worker / a.fan
	a.out[job] = append(a.out[job], a.latest[worker])
}

// recordApply records an update when a host applies it.
func (a *ahead) recordApply(now olaf.Time, host int, sum *endpoint.Aggregate) {
	if workers := len(a.made); host >= workers {
		if a.served {
			a.recordUpdate(now, host-workers, sum)
		}
		return
	}
	if a.served {
		return
	}
	job := host / a.fan
	at := int(sum.Number - a.next[job])
	for at >= len(a.had[job]) {
		a.had[job] = append(a.had[job], 0)
	}
	if a.had[job][at]++; at > 0 || a.had[job][0] < a.fan {
		return
	}
	a.had[job] = slices.Delete(a.had[job], 0, 1)
	a.next[job]++
	a.recordUpdate(now, job, sum)
}

// recordUpdate records an update of a job's weights as an observation.
func (a *ahead) recordUpdate(now olaf.Time, job int, sum *endpoint.Aggregate) {
	t := &sum.Trace
	o := olaf.Observation{At: now, Queued: -1,
		Update: olaf.Update{Seq: sum.Number, Cluster: olaf.ClusterID(job), GenNS: t.NewestNS, Count: uint16(t.Vectors)}}
	first := len(a.inside)
	a.inside = a.takeGradients(a.inside, job, t)
	if inside := a.inside[first:len(a.inside):len(a.inside)]; len(inside) > 0 {
		o.Contributors = inside
		newest := slices.MaxFunc(inside, func(p, q olaf.Contributor) int { return int(int64(p.GenNS - q.GenNS)) })
		o.Update.Worker = newest.Worker
	}
	a.addObservation(o)
}

// takeGradients removes the gradients that an update contains from the list of gradients in flight and appends them to
// inside. A frame contains their number, the range of their times, and a sum of marks that verifies them. If the marks
// do not match and the contents were not recorded, the gradients stay unknown.
func (a *ahead) takeGradients(inside []olaf.Contributor, job int, t *program.Trace) []olaf.Contributor {
	first, marks := len(inside), uint64(0)
	noted := a.sums[closedloop.Sum{Job: job, Inside: t.Inside}]
	delete(a.sums, closedloop.Sum{Job: job, Inside: t.Inside})
	for _, k := range a.out[job] {
		mark := a.markOf(job, k.Worker, k.Seq)
		held := slices.Contains(noted, mark)
		if noted == nil {
			held = t.Vectors > 1 && k.GenNS >= t.OldestNS && k.GenNS <= t.NewestNS || mark == t.Inside
		}
		if held {
			inside, marks = append(inside, k), marks+mark
		}
	}
	if marks != t.Inside {
		return inside[:first]
	}
	found := inside[first:]
	a.out[job] = slices.DeleteFunc(a.out[job], func(k olaf.Contributor) bool { return slices.Contains(found, k) })
	return inside
}
