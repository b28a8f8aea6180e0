package metric

import (
	"slices"

	"github.com/olafctl/olaf"
)

// Metric declares a number of a run and its statistic over runs. It is a count or is computed from measurements.
type Metric struct {
	Name  string // name in documents and in docs/reference/metrics.md
	Title string // column header, without the unit
	Unit  string // updates, frames, %, ns, …; empty for a plain number
	Doc   string // meaning and formula
	Paper string // place in the paper
	// Column is the metric's header in a bench's first table. Part is its header in the table of losses, where metrics
	// with the same header are added up. A metric with neither is printed only with --explain.
	Column, Part string

	// The source of the value, one of: a counter, a sum of counters, or a formula over the measurements.
	Counter string
	Sum     func(olaf.Counts) int64
	Of      func(*Measured) Float

	// MissingReason returns the reason why the value is missing. It is nil, or returns "", if there is no special
	// reason.
	MissingReason func(*Measured) string

	// Zeroed means that earlier versions stored 0 where the value is missing now.
	Zeroed bool

	// Over is the counter by which the value is divided, if the run has it. A run stored before that counter existed
	// used another denominator, so recomputing its value gives a different number.
	Over string

	// PerUpdate means that the metric counts or times updates of the weights. Systems have one or several gradients per
	// update, so the metric is compared only between systems with the same number.
	PerUpdate bool

	// Age means that the metric is derived from ages, which are withheld if the clocks are not good enough.
	Age bool
	// AbovePathOf is the name of the age that the metric measures without the delay of the fastest path; empty for other
	// metrics.
	AbovePathOf string
	// Sparse metrics are shown only if a run has a value; see olaf.Counter.
	Sparse bool
	// Aside metrics are stored with every run, but there are no statistics of them over runs.
	Aside bool
}

// IsCount reports whether the metric is a count, computed from counters alone.
func (m *Metric) IsCount() bool { return m.Counter != "" || m.Sum != nil }

// IsDeclared reports whether this version of olafctl can compute the metric. If it cannot, only the metric's name is
// known, from a document.
func (m *Metric) IsDeclared() bool { return m.IsCount() || m.Of != nil }

// Count returns the value of a metric that is a count.
func (m *Metric) Count(c olaf.Counts) int64 {
	if m.Sum != nil {
		return m.Sum(c)
	}
	return c.Of(m.Counter)
}

// Measured contains the measurements of one run, from which metrics are computed. Ages are in nanoseconds.
type Measured struct {
	Counts olaf.Counts
	// Clusters and Workers are the time averages of their sawtooths, WorkerMeans the clusters' means over their
	// workers, and Peaks the clusters' mean peaks.
	Clusters, Workers, WorkerMeans, Peaks Series
	// MeanStamps and OldestStamps are the time averages of the clusters' sawtooths by the mean and the oldest stamp in
	// a frame, if they are declared.
	MeanStamps, OldestStamps Series
	// Nameless means that merged frames did not list their contributors, so that values per worker are unknown.
	Nameless bool
	Never    int // number of workers with fewer than two deliveries
	// AgeBelow returns the age below which the clusters' sawtooths stayed for the given share of the time.
	AgeBelow    func(share float64) Float
	Utilisation Float
	Delay       Float // delay in the queue, in ns
	DelayMax    Float
	TimeToN     Float  // ns
	TimeNReason string // reason why TimeToN is missing
	Duration    Float  // from first to last delivery, in ns
	Torn        Float  // updates of which only some segments arrived; missing if updates consist of one frame
}

// ofWorkers returns v, or a missing value if the run has no values per worker.
func (m *Measured) ofWorkers(v Float) Float {
	if m.Nameless {
		return Missing()
	}
	return v
}

// NeedsProvenance is the reason given for a missing metric per worker if merged frames do not list their contributors.
const NeedsProvenance = "needs provenance"

const needsTwo = "needs two deliveries"

func fixedReason(why string) func(*Measured) string { return func(*Measured) string { return why } }

func noWorkersReason(m *Measured) string {
	if m.Nameless {
		return NeedsProvenance
	}
	return needsTwo
}

// measured lists the metrics that are computed from measurements, in the order of documents. Add new metrics here.
var measured = []*Metric{
	{Name: "aom_cluster_ns", Title: "AoM per cluster", Unit: "ns", Age: true, Column: "AOM/CLUSTER",
		MissingReason: fixedReason(needsTwo),
		Doc: "one sawtooth per cluster, which falls at deliveries from any of its workers; mean over clusters. " +
			"The wording of §8.1",
		Of: func(m *Measured) Float { return m.Clusters.Mean() }},
	{Name: "aom_worker_ns", Title: "AoM per worker", Unit: "ns", Age: true, Column: "AOM/WORKER", MissingReason: noWorkersReason,
		Doc: "one sawtooth per worker, which falls only at a frame with an update from that worker; mean over a " +
			"cluster's workers, then over clusters",
		Of: func(m *Measured) Float { return m.ofWorkers(m.WorkerMeans.Mean()) }},
	{Name: "peak_aom_ns", Title: "Peak AoM", Unit: "ns", Age: true, Column: "PEAK AOM", MissingReason: fixedReason(needsTwo),
		Doc: "`D(k) − A(l)`, *l* the newest update delivered before *k* (§6); the mean over a cluster's " +
			"deliveries, then over clusters",
		Of: func(m *Measured) Float { return m.Peaks.Mean() }},
	{Name: "aom_p50_ns", Title: "AoM median", Unit: "ns", Age: true, MissingReason: fixedReason(needsTwo),
		Doc: "the age below which the sawtooths of all clusters together were for half of the time; from buckets " +
			"that are at most 1/64 of their age wide and assumed to be even",
		Of: func(m *Measured) Float { return m.AgeBelow(0.50) }},
	{Name: "aom_p95_ns", Title: "AoM 95th percentile", Unit: "ns", Age: true, MissingReason: fixedReason(needsTwo),
		Doc: "the same for 95 % of the time",
		Of:  func(m *Measured) Float { return m.AgeBelow(0.95) }},
	{Name: "aom_p99_ns", Title: "AoM 99th percentile", Unit: "ns", Age: true, MissingReason: fixedReason(needsTwo),
		Doc: "the same for 99 % of the time",
		Of:  func(m *Measured) Float { return m.AgeBelow(0.99) }},
	{Name: "jain", Title: "Jain's index, clusters", Age: true, Column: "JAIN", MissingReason: fixedReason(needsTwo),
		Doc: "Jain's index of the per-cluster averages, `µ²/(µ²+σ²)` with the population's σ (§6, Tables 2 and 3)",
		Of:  func(m *Measured) Float { return m.Clusters.Jain() }},
	{Name: "jain_worker_means", Title: "Jain's index, cluster means of workers", Age: true, MissingReason: noWorkersReason,
		Doc: "the same over the per-cluster means of `aom_worker_ns`",
		Of:  func(m *Measured) Float { return m.ofWorkers(m.WorkerMeans.Jain()) }},
	{Name: "jain_workers", Title: "Jain's index, workers", Age: true, MissingReason: noWorkersReason,
		Doc: "the same over all workers",
		Of:  func(m *Measured) Float { return m.ofWorkers(m.Workers.Jain()) }},
	abovePath("aom_cluster_ns", Metric{Name: "aom_cluster_above_path_ns", Title: "AoM per cluster above the path", Column: "AOM/CLUSTER-PATH"}),
	abovePath("aom_worker_ns", Metric{Name: "aom_worker_above_path_ns", Title: "AoM per worker above the path", Column: "AOM/WORKER-PATH"}),
	abovePath("peak_aom_ns", Metric{Name: "peak_aom_above_path_ns", Title: "Peak AoM above the path"}),
	{Name: "utilisation", Title: "Output utilisation", Column: "UTIL", Paper: "§8.1",
		MissingReason: fixedReason("needs an output rate, frames of known lengths and a delivery"),
		Doc: "time that the received frames take on the output link, divided by the time from the first bit of " +
			"the first frame to the last bit of the last, or by the fixed window",
		Of: func(m *Measured) Float { return m.Utilisation }},
	{Name: "queue_delay_ns", Title: "Queue delay", Unit: "ns", MissingReason: fixedReason("nobody measured it"),
		Doc: "mean over frames of the time from the append to the slot until the last bit is received; null if " +
			"it was not measured",
		Of: func(m *Measured) Float { return m.Delay }},
	{Name: "queue_delay_max_ns", Title: "Queue delay, longest", Unit: "ns", Aside: true,
		Doc: "the longest such time",
		Of:  func(m *Measured) Float { return m.DelayMax }},
	{Name: "never_delivered", Title: "Workers never delivered", Unit: "workers", MissingReason: noWorkersReason,
		Doc: "workers with fewer than two deliveries, which `aom_worker_ns` excludes",
		Of:  func(m *Measured) Float { return m.ofWorkers(Float(m.Never)) }},
	{Name: "time_to_n_ns", Title: "Time to N updates per worker", Unit: "ns", Paper: "§8.2",
		MissingReason: func(m *Measured) string { return m.TimeNReason },
		Doc: "*T(N)*: the time at which *N* updates of every worker have been received, directly or merged; " +
			"replaced updates do not count. In a bench *N* is a tenth of the updates per worker",
		Of: func(m *Measured) Float { return m.TimeToN }},
	{Name: "vectors_torn", Title: "Vectors torn", Unit: "updates", Column: "TORN", Sparse: true,
		Doc: "updates of which some segments were delivered, alone or in sums, and others never; only if an " +
			"update takes several frames",
		Of: func(m *Measured) Float { return m.Torn }},
	{Name: "duration_ns", Title: "Duration", Unit: "ns", Aside: true,
		Doc: "first to last delivery",
		Of:  func(m *Measured) Float { return m.Duration }},
}

// abovePath returns the metric for an age without the delay of the fastest path, which removes a constant.
func abovePath(age string, m Metric) *Metric {
	m.Unit, m.Age, m.Sparse, m.AbovePathOf = "ns", true, true, age
	m.Doc = "`" + age + "` without the delay of the fastest path from generator to server (`clock: {by: probe}`); never compared with " +
		"`" + age + "` or a paper"
	m.Of = func(*Measured) Float { return Missing() } // see Values.AbovePath
	return &m
}

// ByName returns the measured metrics with the given names. It panics if a name is unknown.
func ByName(names ...string) []*Metric {
	rows := make([]*Metric, len(names))
	for i, name := range names {
		at := slices.IndexFunc(measured, func(m *Metric) bool { return m.Name == name })
		rows[i] = measured[at]
	}
	return rows
}
