// Package ages tells the Age of Model of what was captured, where the stamps allow it: of what a parameter server received, or of
// what a queue would have made of it. The arithmetic is that of every bench; what is decided here is whether the clock that
// timed the packets is the one that the workers stamp by.
package ages

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// Clocks that packets and generation times can have in common.
const (
	RunClock  = "run"  // a run's own, as a twin's
	WallClock = "wall" // that of the hosts
)

// longest is how old an update may be when it arrives for the clocks of hosts to be taken for one: generation times repeat
// every 78 hours, so that of two clocks that have nothing to do with each other one in 28,000 pairs passes.
const longest = 10 * int64(olaf.Second/olaf.Nanosecond)

// Ages are those of a capture. Either Why says why there are none, or the rest is theirs.
type Ages struct {
	Why     string        `json:"why,omitempty"`
	Clock   string        `json:"clock,omitempty"` // RunClock or WallClock
	Metrics metric.Values `json:"metrics"`
	// Missing says why a metric is.
	Missing  map[string]string       `json:"missing,omitempty"`
	Clusters []results.ClusterMetric `json:"clusters,omitempty"`
}

// Known says whether there are ages.
func (a *Ages) Known() bool { return a.Why == "" }

// Meter takes what was captured, in order of time. It is not safe for concurrent use.
type Meter struct {
	collector *results.Collector
	declared  *metric.Declaration
	origin    int64
	virtual   bool

	deliveries int64
	numbers    map[uint32]olaf.WorkerID // by cluster and worker, since workers may be numbered within their clusters
	crowded    bool                     // more workers than there are numbers
	inside     []olaf.Contributor

	arrivals         int64
	shortest, oldest int64 // from generation to arrival, ns
}

// New makes a meter for the metrics of a declaration that are made of ages.
func New(d *metric.Declaration) *Meter {
	of := &metric.Declaration{Ledger: d.Ledger, Metrics: slices.DeleteFunc(slices.Clone(d.Metrics), func(m *metric.Metric) bool { return !m.Age })}
	return &Meter{declared: of, collector: results.NewCollector(results.Config{Declared: of}), numbers: map[uint32]olaf.WorkerID{}}
}

// Start says which instant, in ns since 1970, is 0 on the clock of arrivals, and whether generation times are known to count
// from there, too. It comes before the first arrival.
func (m *Meter) Start(originNS int64, virtual bool) {
	m.origin, m.virtual = originNS, virtual
	if virtual {
		m.origin = 0
	}
}

// wrapped is how many bits a generation time has.
const wrapped = 48

// since is a generation time on the clock of arrivals.
func (m *Meter) since(genNS uint64) uint64 { return (genNS - uint64(m.origin)) & (1<<wrapped - 1) }

// Arrive takes an update as it was captured: its age then tells whether the clocks are one.
func (m *Meter) Arrive(at olaf.Time, u *olaf.Update) {
	const shift = 64 - wrapped
	age := int64((uint64(at.NS())-m.since(u.GenNS))<<shift) >> shift
	if m.arrivals == 0 {
		m.shortest, m.oldest = age, age
	}
	m.shortest, m.oldest = min(m.shortest, age), max(m.oldest, age)
	m.arrivals++
}

// Deliver takes a frame that a parameter server receives, which is not kept.
func (m *Meter) Deliver(o *olaf.Observation) {
	m.deliveries++
	seen := *o
	seen.Update.GenNS = m.since(o.Update.GenNS)
	seen.Update.Worker = m.number(o.Update.Cluster, o.Update.Worker)
	if o.Contributors != nil {
		m.inside = append(m.inside[:0], o.Contributors...)
		for i := range m.inside {
			k := &m.inside[i]
			k.GenNS, k.Worker = m.since(k.GenNS), m.number(o.Update.Cluster, k.Worker)
		}
		seen.Contributors = m.inside
	}
	m.collector.Observe(&seen)
}

// number is a worker's own over all clusters.
func (m *Meter) number(c olaf.ClusterID, w olaf.WorkerID) olaf.WorkerID {
	key := uint32(c)<<16 | uint32(w)
	n, known := m.numbers[key]
	if known {
		return n
	}
	if len(m.numbers) > int(^olaf.WorkerID(0)) {
		m.crowded = true
		return 0
	}
	n = olaf.WorkerID(len(m.numbers))
	m.numbers[key] = n
	return n
}

// Report ends the measurement.
func (m *Meter) Report() *Ages {
	if why := m.why(); why != "" {
		return &Ages{Why: why}
	}
	run := m.collector.Finish(olaf.NewCounts(m.declared.Ledger))
	a := &Ages{Clock: WallClock, Metrics: run.Metrics, Missing: run.Missing}
	if m.virtual {
		a.Clock = RunClock
	}
	for _, c := range run.Clusters {
		if c.Deliveries > 0 { // not one that only has a number
			a.Clusters = append(a.Clusters, c)
		}
	}
	return a
}

// why says why nothing can be told; empty if it can.
func (m *Meter) why() string {
	switch {
	case m.deliveries == 0:
		return "no update was delivered"
	case m.crowded:
		return fmt.Sprintf("there are more than %d workers", int(^olaf.WorkerID(0))+1)
	case m.shortest < 0 && m.virtual:
		return fmt.Sprintf("updates arrive up to %v before they were generated", olaf.Duration(-m.shortest)*olaf.Nanosecond)
	case m.virtual:
		return ""
	case m.shortest < 0 || m.oldest > longest:
		return fmt.Sprintf("the clock that timed the packets is not the one that the workers stamp by: by it updates are %s to %s old when they arrive",
			rounded(m.shortest), rounded(m.oldest))
	}
	return ""
}

// rounded is a span in ns to a millisecond.
func rounded(ns int64) string {
	return (olaf.Duration(ns) * olaf.Nanosecond / olaf.Millisecond * olaf.Millisecond).String()
}
