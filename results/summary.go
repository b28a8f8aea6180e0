package results

import (
	"fmt"
	"slices"
)

// Scalar is one number of a run and the statistic of it in a row: the vocabulary that tables, workbook, report and
// documents share.
type Scalar struct {
	Name  string // as in JSON and docs/metrics.md
	Title string // as a column header, without the unit
	Unit  string // updates, frames, %, ns, or empty for a plain number
	Of    func(*Run) Float
	At    func(*Stats) *Statistic
}

// tcWithheld is the one scalar that most experiments can't have.
const tcWithheld = "tc_withheld"

// In says whether a row with these statistics shows s: all but what transmission control withheld, where that is nothing.
func (s *Scalar) In(stats *Stats) bool { return s.Name != tcWithheld || *s.At(stats) != (Statistic{}) }

// ScalarsOf lists the scalars that a table of these runs shows, by the same rule.
func ScalarsOf(runs []Run) []Scalar {
	if slices.ContainsFunc(runs, withholds) {
		return Scalars()
	}
	return slices.DeleteFunc(Scalars(), func(s Scalar) bool { return s.Name == tcWithheld })
}

func withholds(r Run) bool { return r.Counters.TCWithheld != 0 }

// Scalars lists every scalar, in the order of documents.
func Scalars() []Scalar {
	counter := func(of func(*Counters) int64) func(*Run) Float {
		return func(r *Run) Float { return Float(of(&r.Counters)) }
	}
	return []Scalar{
		{"sent", "Sent", "updates", counter(func(c *Counters) int64 { return c.Sent }), func(s *Stats) *Statistic { return &s.Sent }},
		{tcWithheld, "Withheld by transmission control", "updates", counter(func(c *Counters) int64 { return c.TCWithheld }), func(s *Stats) *Statistic { return &s.TCWithheld }},
		{"received", "Received", "frames", counter(func(c *Counters) int64 { return c.Received }), func(s *Stats) *Statistic { return &s.Received }},
		{"aggregated", "Aggregated", "updates", counter(func(c *Counters) int64 { return c.Aggregated }), func(s *Stats) *Statistic { return &s.Aggregated }},
		{"replaced", "Replaced", "updates", counter(func(c *Counters) int64 { return c.Replaced }), func(s *Stats) *Statistic { return &s.Replaced }},
		{"replaced_reward", "Replaced by reward", "updates", counter(func(c *Counters) int64 { return c.ReplacedReward }), func(s *Stats) *Statistic { return &s.ReplacedReward }},
		{"dropped_full", "Dropped, queue full", "updates", counter(func(c *Counters) int64 { return c.DroppedFull }), func(s *Stats) *Statistic { return &s.DroppedFull }},
		{"dropped_reward", "Dropped by reward", "updates", counter(func(c *Counters) int64 { return c.DroppedReward }), func(s *Stats) *Statistic { return &s.DroppedReward }},
		{"dropped_mismatch", "Dropped, size mismatch", "updates", counter(func(c *Counters) int64 { return c.DroppedMismatch }), func(s *Stats) *Statistic { return &s.DroppedMismatch }},
		{"bypassed", "Bypassed", "frames", counter(func(c *Counters) int64 { return c.Bypassed }), func(s *Stats) *Statistic { return &s.Bypassed }},
		{"malformed", "Malformed", "frames", counter(func(c *Counters) int64 { return c.Malformed }), func(s *Stats) *Statistic { return &s.Malformed }},
		{"lost", "Lost (paper)", "updates", counter((*Counters).Lost), func(s *Stats) *Statistic { return &s.Lost }},
		{"lost_pct", "Lost (paper)", "%", func(r *Run) Float { return r.Metrics.LostPct }, func(s *Stats) *Statistic { return &s.LostPct }},
		{"aom_cluster_ns", "AoM per cluster", "ns", func(r *Run) Float { return r.Metrics.AoMCluster }, func(s *Stats) *Statistic { return &s.AoMCluster }},
		{"aom_worker_ns", "AoM per worker", "ns", func(r *Run) Float { return r.Metrics.AoMWorker }, func(s *Stats) *Statistic { return &s.AoMWorker }},
		{"peak_aom_ns", "Peak AoM", "ns", func(r *Run) Float { return r.Metrics.PeakAoM }, func(s *Stats) *Statistic { return &s.PeakAoM }},
		{"aom_p50_ns", "AoM median", "ns", func(r *Run) Float { return r.Metrics.AoMP50 }, func(s *Stats) *Statistic { return &s.AoMP50 }},
		{"aom_p95_ns", "AoM 95th percentile", "ns", func(r *Run) Float { return r.Metrics.AoMP95 }, func(s *Stats) *Statistic { return &s.AoMP95 }},
		{"aom_p99_ns", "AoM 99th percentile", "ns", func(r *Run) Float { return r.Metrics.AoMP99 }, func(s *Stats) *Statistic { return &s.AoMP99 }},
		{"jain", "Jain's index, clusters", "", func(r *Run) Float { return r.Metrics.Jain }, func(s *Stats) *Statistic { return &s.Jain }},
		{"jain_worker_means", "Jain's index, cluster means of workers", "", func(r *Run) Float { return r.Metrics.JainWorkerMeans }, func(s *Stats) *Statistic { return &s.JainWorkerMeans }},
		{"jain_workers", "Jain's index, workers", "", func(r *Run) Float { return r.Metrics.JainWorkers }, func(s *Stats) *Statistic { return &s.JainWorkers }},
		{"utilisation", "Output utilisation", "", func(r *Run) Float { return r.Metrics.Utilisation }, func(s *Stats) *Statistic { return &s.Utilisation }},
		{"queue_delay_ns", "Queue delay", "ns", func(r *Run) Float { return r.Metrics.QueueDelay }, func(s *Stats) *Statistic { return &s.QueueDelay }},
		{"never_delivered", "Workers never delivered", "workers", func(r *Run) Float { return r.Metrics.NeverDelivered }, func(s *Stats) *Statistic { return &s.NeverDelivered }},
		{"time_to_n_ns", "Time to N updates per worker", "ns", func(r *Run) Float { return r.Metrics.TimeToN }, func(s *Stats) *Statistic { return &s.TimeToN }},
	}
}

// Summarise makes the row of one configuration from its runs, in the order given; runs that are not valid are counted
// and stay out of every statistic. All runs must be of one queue and rate.
func Summarise(runs []Run) Row {
	row := Row{Valid: len(runs) > 0}
	valid := make([]*Run, 0, len(runs))
	for i := range runs {
		r := &runs[i]
		row.Queue, row.OutRateBPS = r.Queue, r.OutRateBPS
		if r.Valid() {
			valid = append(valid, r)
			continue
		}
		row.Valid = false
		row.InvalidRuns++
		row.Reasons = append(row.Reasons, fmt.Sprintf("run %d: %s", r.Index, r.Invalid[0]))
	}
	row.Runs = len(valid)
	for _, scalar := range Scalars() {
		*scalar.At(&row.Stats) = over(valid, scalar.Name, scalar.Of)
	}
	if !(row.TCWithheld.Max > 0) { // nor without a valid run
		row.TCWithheld = Statistic{}
	}
	row.CDF = pooledCDF(valid)
	row.Clusters = clusterRows(valid)
	return row
}

// over describes one scalar over runs; what is missing carries the first run's reason.
func over(runs []*Run, name string, of func(*Run) Float) Statistic {
	values := make([]Float, len(runs))
	reason := "no valid run"
	for i := len(runs) - 1; i >= 0; i-- {
		if values[i] = of(runs[i]); !values[i].Known() {
			reason = runs[i].Missing[name]
		}
	}
	return Describe(values, reason)
}

func pooledCDF(runs []*Run) []CDFPoint {
	var counts []int64
	for _, r := range runs {
		for len(counts) < len(r.Aggregations) {
			counts = append(counts, 0)
		}
		for k, n := range r.Aggregations {
			counts[k] += n
		}
	}
	return CDF(counts)
}

// CDF accumulates a histogram of aggregations per outgoing update.
func CDF(counts []int64) []CDFPoint {
	var total, below int64
	for _, n := range counts {
		total += n
	}
	points := make([]CDFPoint, len(counts))
	for k, n := range counts {
		below += n
		points[k] = CDFPoint{LE: k, P: Float(float64(below) / float64(total))}
	}
	return points
}

func clusterRows(runs []*Run) []ClusterRow {
	byID := map[int][]*ClusterMetric{}
	var ids []int
	for _, r := range runs {
		for i := range r.Clusters {
			m := &r.Clusters[i]
			if byID[m.Cluster] == nil {
				ids = append(ids, m.Cluster)
			}
			byID[m.Cluster] = append(byID[m.Cluster], m)
		}
	}
	slices.Sort(ids)
	rows := make([]ClusterRow, len(ids))
	for i, id := range ids {
		describe := func(reason string, of func(*ClusterMetric) Float) Statistic {
			values := make([]Float, len(byID[id]))
			for k, m := range byID[id] {
				values[k] = of(m)
			}
			return Describe(values, reason)
		}
		rows[i] = ClusterRow{
			Cluster:    id,
			Deliveries: describe("", func(m *ClusterMetric) Float { return Float(m.Deliveries) }),
			AoM:        describe("needs two deliveries", func(m *ClusterMetric) Float { return m.AoM }),
			PeakAoM:    describe("needs two deliveries", func(m *ClusterMetric) Float { return m.PeakAoM }),
			AoMWorker:  describe("needs two deliveries of one worker, and provenance", func(m *ClusterMetric) Float { return m.AoMWorker }),
		}
	}
	return rows
}

// CompareRuns sets the runs of one queue against another's at the same output rate, pairing runs of equal index, so that
// each pair saw the same traffic. Pairs with a run that is not valid or not there are left out.
func CompareRuns(queue, versus []Run) Comparison {
	var c Comparison
	pairs := pairRuns(queue, versus)
	if len(queue) > 0 {
		c.Queue, c.OutRateBPS = queue[0].Queue, queue[0].OutRateBPS
	}
	if len(versus) > 0 {
		c.Versus = versus[0].Queue
	}
	cluster := func(r *Run) (Float, string) { return r.Metrics.AoMCluster, r.Missing["aom_cluster_ns"] }
	worker := func(r *Run) (Float, string) { return r.Metrics.AoMWorker, r.Missing["aom_worker_ns"] }
	timeToN := func(r *Run) (Float, string) { return r.Metrics.TimeToN, r.Missing["time_to_n_ns"] }
	reduction := func(ours, theirs float64) float64 { return 100 * (1 - ours/theirs) }
	c.AoMReduction = AoMReduction{
		WorkerCluster:  pairs.statistic(cluster, worker, reduction),
		ClusterCluster: pairs.statistic(cluster, cluster, reduction),
		WorkerWorker:   pairs.statistic(worker, worker, reduction),
	}
	c.Speedup = pairs.statistic(timeToN, timeToN, func(ours, theirs float64) float64 { return theirs / ours })
	return c
}

type runPairs [][2]*Run

func pairRuns(a, b []Run) runPairs {
	byIndex := make(map[int]*Run, len(b))
	for i := range b {
		byIndex[b[i].Index] = &b[i]
	}
	var pairs runPairs
	for i := range a {
		if other := byIndex[a[i].Index]; other != nil && a[i].Valid() && other.Valid() {
			pairs = append(pairs, [2]*Run{&a[i], other})
		}
	}
	return pairs
}

func (pairs runPairs) statistic(ofA, ofB func(*Run) (Float, string), combine func(a, b float64) float64) Statistic {
	values := make([]Float, len(pairs))
	reason := "no pair of valid runs"
	for i, p := range pairs {
		a, whyA := ofA(p[0])
		b, whyB := ofB(p[1])
		values[i] = Missing()
		switch {
		case !a.Known():
			reason = p[0].Queue + ": " + whyA
		case !b.Known():
			reason = p[1].Queue + ": " + whyB
		default:
			values[i] = Float(combine(float64(a), float64(b)))
		}
	}
	return Describe(values, reason)
}
