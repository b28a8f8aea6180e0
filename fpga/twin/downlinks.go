package twin

import (
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// downlinks are the links from the switch to the workers (aggregator.results). A sum that has left the queue is replicated to
// every worker of its cluster at once, so that the links of a cluster carry the same, one after the other and without a limit,
// and one observation stands for all of its workers.
type downlinks struct {
	free     []olaf.Time // by cluster: device time at which its links are
	onTheWay []answer    // a heap by time, then by number
	number   uint64
	spare    [][]olaf.Contributor
	lanes    [][]int32
}

// downConfig is what the idle registers say of the links.
type downConfig struct {
	toWorkers bool
	rate      engine.Increment
}

// answer is a sum on its way to the workers of its cluster.
type answer struct {
	at     olaf.Time // device time of its last bit there
	number uint64    // in the order in which sums left
	queued olaf.Duration
	flow   *flow
	update olaf.Update
	inside []olaf.Contributor
	lanes  []int32
}

func (a *answer) before(b *answer) bool { return a.at < b.at || a.at == b.at && a.number < b.number }

// next is the cycle in which the next sum will have arrived, never when none is on its way.
func (l *downlinks) next() int64 {
	if len(l.onTheWay) == 0 {
		return never
	}
	return cycleBy(l.onTheWay[0].at)
}

// reset forgets what is on its way.
func (l *downlinks) reset() { *l = downlinks{onTheWay: l.onTheWay[:0], free: l.free[:0]} }

// put takes a sum that leaves the switch at some time with a frame that takes so long.
func (l *downlinks) put(a answer, leaves olaf.Time, takes olaf.Duration) {
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

// take removes the next sum to arrive.
func (l *downlinks) take() answer {
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

// keep copies what is valid during a call only, into memory of sums that have arrived.
func (l *downlinks) keep(inside []olaf.Contributor, lanes []int32) ([]olaf.Contributor, []int32) {
	if inside != nil {
		inside = append(reuse(&l.spare), inside...)
	}
	if lanes != nil {
		lanes = append(reuse(&l.lanes), lanes...)
	}
	return inside, lanes
}

func reuse[T any](spare *[][]T) (s []T) {
	if n := len(*spare); n > 0 {
		s, *spare = (*spare)[n-1][:0], (*spare)[:n-1]
	}
	return s
}

// release gives the memory of a sum back.
func (l *downlinks) release(a *answer) {
	if a.inside != nil {
		l.spare = append(l.spare, a.inside)
	}
	if a.lanes != nil {
		l.lanes = append(l.lanes, a.lanes)
	}
}

// answering says whether the sums of a cluster go to its workers: not where the tables name a switch above, which is behind the
// uplink as the server is.
func (t *Twin) answering(c olaf.ClusterID) bool {
	return t.queue.config.down.toWorkers && t.front.Aggregator != nil && !t.rises(c)
}

// answerWorkers takes a sum whose last bit left the queue.
func (t *Twin) answerWorkers(d *engine.Departure, leaves olaf.Time, stay olaf.Duration) {
	u := &d.Frame.Update
	lanes := d.Frame.Lanes
	if !t.recording {
		lanes = nil
	}
	a := answer{queued: stay, flow: t.queue.slotFlow[d.Slot], update: *u}
	a.inside, a.lanes = t.down.keep(d.Frame.Contributors, lanes)
	size := u.Size() + olaf.Size(t.queue.config.output.OverheadBytes)
	t.down.put(a, leaves, t.queue.config.down.rate.Rate().TimeToSend(size))
}

// arrive delivers what has reached the workers.
func (t *Twin) arrive() {
	for t.down.next() <= t.now {
		a := t.down.take()
		t.tap.observations = append(t.tap.observations, olaf.Observation{
			At: t.runTime(a.at), Queued: a.queued, Update: a.update, Contributors: t.tap.keepContributors(a.inside),
		})
		o := &t.tap.observations[len(t.tap.observations)-1]
		t.front.own.ResultsOut += uint64(t.replicate(&a, o))
		if l, ok := t.cfg.Observer.(AnswerObserver); ok {
			l.Answer(a.at, o)
		}
		t.down.release(&a)
	}
}

// replicate records a copy for every worker of the sum's cluster and says how many there are.
func (t *Twin) replicate(a *answer, o *olaf.Observation) (copies int) {
	lanes := []int32(nil)
	t.replicas(a.update.Cluster, func(w olaf.WorkerID, port uint8) {
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

// replicas visits the members of a cluster's multicast group, by the tables or else by the replication block; it says whether
// there is one.
func (t *Twin) replicas(c olaf.ClusterID, visit func(w olaf.WorkerID, port uint8)) bool {
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

// flowOf is the flow of a worker of a cluster, by which its addresses are known; otherwise where it sends nothing.
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

// downlinked is what the idle registers say of the links.
func (t *Twin) downlinked() downConfig {
	return downConfig{
		toWorkers: t.reg(regmap.AggregatorResults)&regmap.AggregatorResultsToWorkers != 0,
		rate:      engine.Increment(t.reg(regmap.AggregatorDownlinkIncrement)),
	}
}
