// Package ages measures the Age of Model in a capture, if its timestamps allow this. The measured updates are those
// received by a parameter server, or those delivered by a queue in a replay. The computation is the same as in every
// bench. This package decides whether packets and workers were timed by the same clock.
package ages

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// The possible common clocks of packets and generation times.
const (
	RunClock  = "run"  // a run's own clock, such as a twin's
	WallClock = "wall" // the hosts' clock
)

// longest is the maximum age on arrival at which the clocks of two hosts are considered to be the same. Generation
// times repeat every 78 hours, so unrelated clocks are mistaken for the same clock in one of 28,000 cases.
const longest = 10 * int64(olaf.Second/olaf.Nanosecond)

// Ages contains the ages in a capture. If there are none, Reason contains the reason.
type Ages struct {
	Reason string `json:"why,omitempty"`
	Clock  string `json:"clock,omitempty"` // RunClock or WallClock
	// ClockErrorNS bounds the difference between the clocks of packets and workers. It is unknown if the hosts' clocks
	// were not compared; the ages must then not be compared with published numbers.
	ClockErrorNS results.Float `json:"clock_error_ns"`
	Metrics      metric.Values `json:"metrics"`
	// Missing gives the reason for each missing metric.
	Missing  map[string]string       `json:"missing,omitempty"`
	Clusters []results.ClusterMetric `json:"clusters,omitempty"`
}

// Available reports whether there are ages.
func (a *Ages) Available() bool { return a.Reason == "" }

// coarsest is the maximum acceptable ratio of the timestamps' resolution, or of the clock error, to the mean age. It
// corresponds to a bench's --age-error.
const coarsest = 0.1

// Remedy is advice on how to capture with timestamps that are precise enough.
const Remedy = "capture with 'tcpdump --time-stamp-precision=nano' or 'olafctl capture'; a conversion cannot bring " +
	"back what is not in the file"

// Meter measures captured updates, which must be passed in order of time. It is not safe for concurrent use.
type Meter struct {
	// Grain is the resolution of the stamps; 0 means exact. It may grow while updates arrive.
	Grain olaf.Duration
	// ClockErrorNS bounds the difference between the clocks of packets and workers. New sets it to unknown.
	ClockErrorNS results.Float

	collector *results.Collector
	declared  *metric.Declaration
	origin    int64
	virtual   bool

	deliveries int64
	numbers    map[uint32]olaf.WorkerID // by cluster and worker, since workers may be numbered within their cluster
	crowded    bool                     // there are more workers than numbers
	inside     []olaf.Contributor

	arrivals         int64
	shortest, oldest int64 // from generation to arrival, ns
}

// New returns a meter for the age metrics in a declaration.
func New(d *metric.Declaration) *Meter {
	of := &metric.Declaration{Ledger: d.Ledger, Metrics: slices.DeleteFunc(slices.Clone(d.Metrics),
		func(m *metric.Metric) bool { return !m.Age })}
	return &Meter{ClockErrorNS: results.Missing(), declared: of, collector: results.NewCollector(results.Config{Declared: of}),
		numbers: map[uint32]olaf.WorkerID{}}
}

// Start sets the instant at which the arrival clock is 0, in ns since 1970. virtual means that generation times count
// from the same instant. Start must be called before the first arrival.
func (m *Meter) Start(originNS int64, virtual bool) {
	m.origin, m.virtual = originNS, virtual
	if virtual {
		m.origin = 0
	}
}

// generationBits is the number of bits in a generation time.
const generationBits = 48

// sinceStart converts a generation time to the arrival clock.
func (m *Meter) sinceStart(genNS uint64) uint64 {
	return (genNS - uint64(m.origin)) & (1<<generationBits - 1)
}

// age returns the age of an update at an instant. The age is negative if the update was generated later.
func (m *Meter) age(at olaf.Time, genNS uint64) int64 {
	const shift = 64 - generationBits
	return int64((uint64(at.NS())-m.sinceStart(genNS))<<shift) >> shift
}

// generatedAt returns a generation time. If it is later than the arrival only because of the timestamps' resolution or
// the clock error, generatedAt returns the arrival time instead.
func (m *Meter) generatedAt(at olaf.Time, genNS uint64) uint64 {
	if age := m.age(at, genNS); age < 0 && -age <= m.earlyNS() {
		return uint64(at.NS())
	}
	return m.sinceStart(genNS)
}

// grainNS returns the time in whole ns by which a timestamp may be early.
func (m *Meter) grainNS() int64 {
	if m.Grain <= olaf.Nanosecond {
		return 0
	}
	return int64((m.Grain + olaf.Nanosecond - 1) / olaf.Nanosecond)
}

// earlyNS returns the time in whole ns by which an arrival may seem to precede its generation.
func (m *Meter) earlyNS() int64 {
	if m.virtual || !m.ClockErrorNS.Known() {
		return m.grainNS()
	}
	return m.grainNS() + int64(m.ClockErrorNS)
}

// Arrive records a captured update. The update's age shows whether the clocks are the same.
func (m *Meter) Arrive(at olaf.Time, u *olaf.Update) {
	age := m.age(at, u.GenNS)
	if m.arrivals == 0 {
		m.shortest, m.oldest = age, age
	}
	m.shortest, m.oldest = min(m.shortest, age), max(m.oldest, age)
	m.arrivals++
}

// Deliver records an update that a parameter server receives. It does not retain o.
func (m *Meter) Deliver(o *olaf.Observation) {
	m.deliveries++
	seen := *o
	seen.Update.GenNS = m.generatedAt(o.At, o.Update.GenNS)
	seen.Update.Worker = m.workerNumber(o.Update.Cluster, o.Update.Worker)
	if o.Contributors != nil {
		m.inside = append(m.inside[:0], o.Contributors...)
		for i := range m.inside {
			k := &m.inside[i]
			k.GenNS, k.Worker = m.generatedAt(o.At, k.GenNS), m.workerNumber(o.Update.Cluster, k.Worker)
		}
		seen.Contributors = m.inside
	}
	m.collector.Observe(&seen)
}

// workerNumber returns a number that identifies a worker uniquely across all clusters.
func (m *Meter) workerNumber(c olaf.ClusterID, w olaf.WorkerID) olaf.WorkerID {
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

// Report ends the measurement and returns the ages.
func (m *Meter) Report() *Ages {
	clockError := m.ClockErrorNS
	if m.virtual {
		clockError = 0
	}
	if why := m.missingReason(); why != "" {
		return &Ages{Reason: why, ClockErrorNS: clockError}
	}
	run := m.collector.Finish(olaf.NewCounts(m.declared.Ledger))
	if why := m.withheldReason(run.Metrics.Of("aom_cluster_ns"), clockError); why != "" {
		return &Ages{Reason: why, ClockErrorNS: clockError}
	}
	a := &Ages{Clock: WallClock, ClockErrorNS: clockError, Metrics: run.Metrics, Missing: run.Missing}
	if m.virtual {
		a.Clock = RunClock
	}
	for _, c := range run.Clusters {
		if c.Deliveries > 0 { // skip clusters without deliveries
			a.Clusters = append(a.Clusters, c)
		}
	}
	return a
}

// withheldReason returns the reason why the timestamps or the clocks are too imprecise for a mean age, or "" if they
// are precise enough.
func (m *Meter) withheldReason(mean, clockError results.Float) string {
	switch {
	case !mean.Known():
		return ""
	case float64(m.grainNS()) > coarsest*float64(mean):
		return fmt.Sprintf("the stamps have a resolution of %v, more than %g %% of the mean age; %s", m.Grain,
			100*coarsest, Remedy)
	case clockError.Known() && float64(clockError) > coarsest*float64(mean):
		return fmt.Sprintf("the clocks of packets and workers may be %v apart, more than %g %% of the mean age; "+
			"synchronise them better (ptp4l, phc2sys), or offer less so that updates grow older",
			olaf.Duration(clockError)*olaf.Nanosecond, 100*coarsest)
	}
	return ""
}

// missingReason returns the reason why there are no ages, or "" if there are.
func (m *Meter) missingReason() string {
	switch {
	case m.deliveries == 0:
		return "no update was delivered"
	case m.crowded:
		return fmt.Sprintf("there are more than %d workers", int(^olaf.WorkerID(0))+1)
	case m.shortest < -m.earlyNS() && m.virtual:
		return fmt.Sprintf("updates arrive up to %v before they were generated", olaf.Duration(-m.shortest)*olaf.Nanosecond)
	case m.virtual:
		return ""
	case m.shortest < -m.earlyNS() || m.oldest > longest:
		return fmt.Sprintf("the clock that timed the packets is not the one that the workers stamp by: by it updates are "+
			"%s to %s old when they arrive",
			roundToMS(m.shortest), roundToMS(m.oldest))
	}
	return ""
}

// roundToMS formats a duration given in ns, rounded down to a millisecond.
func roundToMS(ns int64) string {
	return (olaf.Duration(ns) * olaf.Nanosecond / olaf.Millisecond * olaf.Millisecond).String()
}
