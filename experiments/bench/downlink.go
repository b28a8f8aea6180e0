package bench

import (
	"container/heap"
	"fmt"

	"github.com/olafctl/olaf"
)

// Topology says whom results reach.
type Topology string

// The topologies.
const (
	ToServer  Topology = "P" // everything crosses the link to the parameter server, where ages are taken; the zero value too
	ToWorkers Topology = "S" // the switch answers its workers, by one link a worker, and ages are taken there
)

// Topologies are what users may choose.
func Topologies() []string { return []string{string(ToServer), string(ToWorkers)} }

// Set takes a topology by its name. The error matches ErrSpec.
func (t *Topology) Set(name string) error {
	switch Topology(name) {
	case ToServer:
		*t = "" // as a specification without one
	case ToWorkers:
		*t = ToWorkers
	default:
		return fmt.Errorf("%w: no topology is called %q; there are %v", ErrSpec, name, Topologies())
	}
	return nil
}

// String is the topology's name.
func (t Topology) String() string {
	if t == "" {
		return string(ToServer)
	}
	return string(t)
}

// Type is what help calls it.
func (t Topology) Type() string { return "P|S" }

// downlinks are the links from the switch to the workers. A sum is replicated to every worker of its cluster at once, so that
// the links of a cluster carry the same, one after the other and without a limit, and one observation stands for all. What
// comes from the tap in order of time leaves in order of time.
type downlinks struct {
	rate     olaf.Rate
	overhead olaf.Size
	free     map[olaf.ClusterID]olaf.Time
	onTheWay arrivals
	number   uint64
}

func newDownlinks(rate olaf.Rate, overhead olaf.Size) *downlinks {
	return &downlinks{rate: rate, overhead: overhead, free: map[olaf.ClusterID]olaf.Time{}}
}

// pass replaces observations at the switch by those at the workers that can be known by then: nothing that is still to come
// from the switch can arrive before them.
func (d *downlinks) pass(seen []olaf.Observation) []olaf.Observation {
	for i := range seen {
		d.send(&seen[i])
	}
	if len(seen) == 0 {
		return seen
	}
	return d.arrived(seen[:0], seen[len(seen)-1].At)
}

// rest is what is still on the way when nothing more comes.
func (d *downlinks) rest(buf []olaf.Observation) []olaf.Observation {
	for len(d.onTheWay) > 0 {
		buf = append(buf, heap.Pop(&d.onTheWay).(arrival).Observation)
	}
	return buf
}

func (d *downlinks) send(o *olaf.Observation) {
	a := arrival{Observation: *o, number: d.number}
	d.number++
	a.Contributors = append([]olaf.Contributor(nil), o.Contributors...) // the tap's are its own
	at := max(d.free[o.Update.Cluster], o.At).Add(d.rate.TimeToSend(o.Update.Size() + d.overhead))
	d.free[o.Update.Cluster] = at
	a.At, a.Queued = at, o.Queued+at.Sub(o.At)
	heap.Push(&d.onTheWay, a)
}

func (d *downlinks) arrived(buf []olaf.Observation, until olaf.Time) []olaf.Observation {
	for len(d.onTheWay) > 0 && d.onTheWay[0].At <= until {
		buf = append(buf, heap.Pop(&d.onTheWay).(arrival).Observation)
	}
	return buf
}

// arrival is an observation on its way to the workers.
type arrival struct {
	olaf.Observation
	number uint64 // in the order in which they left
}

// arrivals is a heap by time, then by number.
type arrivals []arrival

func (a arrivals) Len() int { return len(a) }

func (a arrivals) Less(i, j int) bool {
	if a[i].At != a[j].At {
		return a[i].At < a[j].At
	}
	return a[i].number < a[j].number
}

func (a arrivals) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

func (a *arrivals) Push(x any) { *a = append(*a, x.(arrival)) }

func (a *arrivals) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
