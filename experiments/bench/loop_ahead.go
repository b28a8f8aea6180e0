package bench

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/wired"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// ahead watches a loop of asynchronous workers: an update becomes an observation when the last worker has it or, if a
// server stores the weights, when the server has. It implements closed.Observer.
type ahead struct {
	*rounds
	served bool // a server stores the weights
	latest []olaf.Contributor
	out    [][]olaf.Contributor // by job, the gradients that were sent and not yet found in an update
	had    [][]int              // by job and incomplete update, from next on: the number of workers that have it
	next   []uint32             // by job
	sums   closedloop.Sums
}

// OnSum implements wired.Listener.
func (a *ahead) OnSum(job int, inside uint64, all []wired.Gradient) {
	var marks []uint64
	for _, g := range all {
		marks = append(marks, a.markOf(job, olaf.WorkerID(g.Host), g.Vector))
	}
	a.sums[closedloop.Sum{Job: job, Inside: inside}] = marks
}

// markOf returns a gradient's contribution to program.Trace.Inside, which numbers workers within their job.
func (a *ahead) markOf(job int, w olaf.WorkerID, vector uint32) uint64 {
	return program.ContributionMark(w-olaf.WorkerID(job*a.fan), vector)
}

func newAhead(r *rounds, served bool) *ahead {
	jobs := len(r.had)
	return &ahead{rounds: r, served: served, latest: make([]olaf.Contributor, len(r.made)),
		out: make([][]olaf.Contributor, jobs), had: make([][]int, jobs), next: make([]uint32, jobs), sums: closedloop.Sums{}}
}

// recordGradient records when a worker's gradient was ready; it provides no values.
func (a *ahead) recordGradient(now olaf.Time, worker int, vector uint32) []uint32 {
	a.latest[worker] = olaf.Contributor{GenNS: uint64(now) / uint64(olaf.Nanosecond), Seq: vector,
		Worker: olaf.WorkerID(worker)}
	return nil
}

// OnCompute implements closed.Observer.
func (a *ahead) OnCompute(olaf.Time, int) {}

// OnSend implements closed.Observer. A gradient that is too old is not sent.
func (a *ahead) OnSend(_ olaf.Time, worker int) {
	job := worker / a.fan
	a.out[job] = append(a.out[job], a.latest[worker])
}

// OnSumPacket implements closed.Observer.
func (a *ahead) OnSumPacket(olaf.Time, *program.Packet) {}

// OnDrop implements closed.Observer.
func (a *ahead) OnDrop(olaf.Time, *program.Packet) {}

// OnLoss implements closed.Observer.
func (a *ahead) OnLoss(olaf.Time, *program.Packet) {}

// recordApply records an update that a host applies.
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

// recordUpdate records an update of a job's weights.
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

// takeGradients finds the gradients in an update among those in flight and removes them. A frame contains their number, their
// range of times, and a sum of marks that verifies them. If the marks contradict, and the contents were not recorded,
// the gradients stay unknown.
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
