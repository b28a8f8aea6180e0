package twin

import (
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// downlinks models the links from the switch to the workers (register aggregator.results). A sum that leaves the queue
// is sent to all workers of its cluster at the same time. All links of a cluster therefore carry the same sums in the
// same order, and the model needs only one link and one observation per cluster. The number of sums that wait for a
// link is not limited.
type downlinks struct {
	free     []olaf.Time // by cluster: device time at which the links of the cluster are free
	onTheWay []answer    // heap, ordered by time, then by number
	number   uint64
	spare    [][]olaf.Contributor
	lanes    [][]int32
}

// downConfig is the configuration of the links to the workers, from the registers that take effect when the queue is
// enabled.
type downConfig struct {
	toWorkers bool
	rate      engine.Increment
}

// answer is a sum that is being sent to the workers of its cluster.
type answer struct {
	at     olaf.Time // device time at which its last bit arrives
	number uint64    // number in the order of departure
	queued olaf.Duration
	flow   *flow
	update olaf.Update
	inside []olaf.Contributor
	lanes  []int32
}

func (a *answer) before(b *answer) bool { return a.at < b.at || a.at == b.at && a.number < b.number }

// nextArrival returns the cycle in which the next sum arrives at its workers, or never if there is none.
func (l *downlinks) nextArrival() int64 {
	if len(l.onTheWay) == 0 {
		return never
	}
	return cycleBy(l.onTheWay[0].at)
}

// reset removes all sums in flight.
func (l *downlinks) reset() { *l = downlinks{onTheWay: l.onTheWay[:0], free: l.free[:0]} }

// putSum sends a sum that leaves the switch at the given time over the links of its cluster. takes is its transmission
// time.
func (l *downlinks) putSum(a answer, leaves olaf.Time, takes olaf.Duration) {
	c := int(a.update.Cluster)
	for c >= len(l.free) {
		l.free = append(l.free, 0)
	}
	a.at = max(l.free[c], leaves).Add(takes)
	a.queued += a.at.Sub(leaves)
	a.number, l.number = l.number, l.number+1
	l.free[c] = a.at
	l.onTheWay = append(l.onTheWay, a)
	for i := len(l.onTheWay) - 1; i > 0; {
		parent := (i - 1) / 2
		if !l.onTheWay[i].before(&l.onTheWay[parent]) {
			break
		}
		l.onTheWay[i], l.onTheWay[parent] = l.onTheWay[parent], l.onTheWay[i]
		i = parent
	}
}

// takeSum removes and returns the sum that arrives next.
func (l *downlinks) takeSum() answer {
	h := l.onTheWay
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = answer{}
	h = h[:last]
	for i := 0; ; {
		least := i
		for kid := 2*i + 1; kid <= 2*i+2 && kid < last; kid++ {
			if h[kid].before(&h[least]) {
				least = kid
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	l.onTheWay = h
	return first
}

// copySum returns copies of data that is only valid during the call. It reuses the memory of sums that have arrived.
func (l *downlinks) copySum(inside []olaf.Contributor, lanes []int32) ([]olaf.Contributor, []int32) {
	if inside != nil {
		inside = append(takeSpare(&l.spare), inside...)
	}
	if lanes != nil {
		lanes = append(takeSpare(&l.lanes), lanes...)
	}
	return inside, lanes
}

func takeSpare[T any](spare *[][]T) (s []T) {
	if n := len(*spare); n > 0 {
		s, *spare = (*spare)[n-1][:0], (*spare)[:n-1]
	}
	return s
}

// releaseMemory makes the memory of a sum available for reuse.
func (l *downlinks) releaseMemory(a *answer) {
	if a.inside != nil {
		l.spare = append(l.spare, a.inside)
	}
	if a.lanes != nil {
		l.lanes = append(l.lanes, a.lanes)
	}
}

// answersWorkers reports whether a cluster's sums are sent to its workers. They are not if the tables name a parent
// switch, because the parent is reached through the uplink, like the server.
func (t *Twin) answersWorkers(c olaf.ClusterID) bool {
	return t.queue.config.down.toWorkers && t.front.Aggregator != nil && !t.hasParentSwitch(c)
}

// answerWorkers sends a sum whose last bit has left the queue to the workers of its cluster.
func (t *Twin) answerWorkers(d *engine.Departure, leaves olaf.Time, stay olaf.Duration) {
	u := &d.Frame.Update
	lanes := d.Frame.Lanes
	if !t.recording {
		lanes = nil
	}
	a := answer{queued: stay, flow: t.queue.slotFlow[d.Slot], update: *u}
	a.inside, a.lanes = t.down.copySum(d.Frame.Contributors, lanes)
	size := u.Size() + olaf.Size(t.queue.config.output.OverheadBytes)
	t.down.putSum(a, leaves, t.queue.config.down.rate.Rate().TimeToSend(size))
}

// deliverSums delivers the sums that have arrived at the workers.
func (t *Twin) deliverSums() {
	for t.down.nextArrival() <= t.now {
		a := t.down.takeSum()
		t.tap.observations = append(t.tap.observations, olaf.Observation{
			At: t.runTime(a.at), Queued: a.queued, Update: a.update, Contributors: t.tap.keepContributors(a.inside),
		})
		o := &t.tap.observations[len(t.tap.observations)-1]
		t.front.own.ResultsOut += uint64(t.recordCopies(&a, o))
		if l, ok := t.cfg.Observer.(answerObserver); ok {
			l.Answer(a.at, o)
		}
		t.down.releaseMemory(&a)
	}
}

// recordCopies records a copy of the sum for each worker in its cluster and returns the number of copies.
func (t *Twin) recordCopies(a *answer, o *olaf.Observation) (copies int) {
	lanes := []int32(nil)
	t.visitGroup(a.update.Cluster, func(w olaf.WorkerID, port uint8) {
		copies++
		if !t.recording {
			return
		}
		if lanes == nil {
			lanes = t.tap.keepLanes(a.lanes)
		}
		t.tap.packets = append(t.tap.packets, Packet{
			At: o.At, Queued: o.Queued, Kind: Answered,
			Addresses: downlinkAddresses(t.flowOf(a.update.Cluster, w, a.flow)), Update: a.update,
			Seg: a.flow.Seg, ToS: a.flow.ToS, Port: port, Lanes: lanes, Contributors: o.Contributors,
		})
	})
	return copies
}

// visitGroup calls visit for each member of a cluster's multicast group. The group is taken from the tables, or from
// the replication block if the tables have none. It reports whether there is a group.
func (t *Twin) visitGroup(c olaf.ClusterID, visit func(w olaf.WorkerID, port uint8)) bool {
	if t.tables.lookup != nil {
		if members, ok := t.tables.lookup.Group(c); ok {
			for _, w := range members {
				visit(w, 0)
			}
			return true
		}
	}
	members := t.file.Replication.Group(uint32(c))
	for _, m := range members {
		visit(olaf.WorkerID(m), uint8(m>>16))
	}
	return len(members) > 0
}

// flowOf returns the flow of a worker, which has its addresses. If the worker does not send, it returns otherwise.
func (t *Twin) flowOf(c olaf.ClusterID, w olaf.WorkerID, otherwise *flow) *flow {
	for i := range t.generator.flows {
		f := &t.generator.flows[i]
		if t.tables.lookup == nil {
			continue
		}
		if cluster, worker, ok := t.tables.lookup.Worker(netip.AddrFrom4(f.SourceIP)); ok && cluster == c &&
			worker == w {
			return f
		}
	}
	return otherwise
}

// readDownConfig reads the configuration of the links to the workers from the registers.
func (t *Twin) readDownConfig() downConfig {
	return downConfig{
		toWorkers: t.reg(regmap.AggregatorResults)&regmap.AggregatorResultsToWorkers != 0,
		rate:      engine.Increment(t.reg(regmap.AggregatorDownlinkIncrement)),
	}
}
