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

// coarsest is how much of the mean age the resolution of the stamps may be, as --age-error of a bench.
const coarsest = 0.1

// Remedy is how a user gets a capture whose stamps are fine enough.
const Remedy = "capture with 'tcpdump --time-stamp-precision=nano' or 'olafctl capture'; a conversion cannot bring back what is not in the file"

// Meter takes what was captured, in order of time. It is not safe for concurrent use.
type Meter struct {
	// Grain is the resolution of the stamps, 0 if they are exact. It may grow while updates arrive.
	Grain olaf.Duration

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

// age returns how old an update is at an instant, negative if it is generated later.
func (m *Meter) age(at olaf.Time, genNS uint64) int64 {
	const shift = 64 - wrapped
	return int64((uint64(at.NS())-m.since(genNS))<<shift) >> shift
}

// generated is since, but not later than the arrival where only the resolution of the stamps makes it so.
func (m *Meter) generated(at olaf.Time, genNS uint64) uint64 {
	if age := m.age(at, genNS); age < 0 && -age <= m.grainNS() {
		return uint64(at.NS())
	}
	return m.since(genNS)
}

// grainNS returns by how many whole ns a stamp may be early.
func (m *Meter) grainNS() int64 {
	if m.Grain <= olaf.Nanosecond {
		return 0
	}
	return int64((m.Grain + olaf.Nanosecond - 1) / olaf.Nanosecond)
}

// Arrive takes an update as it was captured: its age then tells whether the clocks are one.
func (m *Meter) Arrive(at olaf.Time, u *olaf.Update) {
	age := m.age(at, u.GenNS)
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
	seen.Update.GenNS = m.generated(o.At, o.Update.GenNS)
	seen.Update.Worker = m.number(o.Update.Cluster, o.Update.Worker)
	if o.Contributors != nil {
		m.inside = append(m.inside[:0], o.Contributors...)
		for i := range m.inside {
			k := &m.inside[i]
			k.GenNS, k.Worker = m.generated(o.At, k.GenNS), m.number(o.Update.Cluster, k.Worker)
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
	if mean := run.Metrics.Of("aom_cluster_ns"); mean.Known() && float64(m.grainNS()) > coarsest*float64(mean) {
		return &Ages{Why: fmt.Sprintf("the stamps have a resolution of %v, more than %g %% of the mean age; %s", m.Grain, 100*coarsest, Remedy)}
	}
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
	case m.shortest < -m.grainNS() && m.virtual:
		return fmt.Sprintf("updates arrive up to %v before they were generated", olaf.Duration(-m.shortest)*olaf.Nanosecond)
	case m.virtual:
		return ""
	case m.shortest < -m.grainNS() || m.oldest > longest:
		return fmt.Sprintf("the clock that timed the packets is not the one that the workers stamp by: by it updates are %s to %s old when they arrive",
			rounded(m.shortest), rounded(m.oldest))
	}
	return ""
}

// rounded is a span in ns to a millisecond.
func rounded(ns int64) string {
	return (olaf.Duration(ns) * olaf.Nanosecond / olaf.Millisecond * olaf.Millisecond).String()
}
