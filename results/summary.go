package results

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/olafctl/olaf/results/metric"
)

// Summarise returns the row of one configuration. It has a statistic for each metric of d, except aside metrics, over
// the given runs, in order. Invalid runs are counted but excluded from all statistics. All runs must have the same
// queue and rate.
func Summarise(d *metric.Declaration, runs []Run) Row {
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
	for _, m := range d.Metrics {
		if s := metricOver(valid, m); !m.Aside && (!m.Sparse || s.Max > 0) {
			row.Stats = append(row.Stats, Stat{m, s})
		}
	}
	row.addReal(valid)
	row.CDF = pooledCDF(valid)
	row.Clusters, row.Model = clusterRows(valid), modelRow(valid)
	return row
}

// metricOver returns the statistic of one metric over runs. If the statistic is missing, its reason is that of the
// first run.
func metricOver(runs []*Run, m *metric.Metric) Statistic {
	values := make([]Float, len(runs))
	reason := "no valid run"
	for i := len(runs) - 1; i >= 0; i-- {
		if values[i] = runs[i].Value(m); !values[i].Known() {
			reason = runs[i].Missing[m.Name]
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
	return cdf(counts)
}

// cdf returns the cumulative distribution of aggregations per outgoing update. counts[n] is the number of updates with
// n aggregations.
func cdf(counts []int64) []CDFPoint {
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

// clusterOf contains the metrics of one cluster in a run.
type clusterOf struct {
	*ClusterMetric
	run *Run
}

func clusterRows(runs []*Run) []ClusterRow {
	byID := map[int][]clusterOf{}
	var ids []int
	for _, r := range runs {
		for i := range r.Clusters {
			m := &r.Clusters[i]
			if byID[m.Cluster] == nil {
				ids = append(ids, m.Cluster)
			}
			byID[m.Cluster] = append(byID[m.Cluster], clusterOf{m, r})
		}
	}
	slices.Sort(ids)
	rows := make([]ClusterRow, len(ids))
	for i, id := range ids {
		rows[i] = clusterRow(id, byID[id])
	}
	return rows
}

// clusterRow returns the statistics of a cluster over its runs. The reason for a missing age is taken from the first
// run that lacks it, if the metric over all clusters is missing there too.
func clusterRow(id int, runs []clusterOf) ClusterRow {
	values := make([]Float, len(runs))
	for k, c := range runs {
		values[k] = Float(c.Deliveries)
	}
	row := ClusterRow{Cluster: id, Deliveries: Describe(values, "")}
	for _, a := range clusterAges {
		reason := ""
		var beside []TwinComparison
		for k, c := range runs {
			if values[k] = *a.of(c.ClusterMetric); !values[k].Known() {
				reason = cmp.Or(reason, c.run.Missing[a.total], c.run.Withheld, a.reason)
			}
			if b, ok := c.TwinComparisons[a.name]; ok {
				beside = append(beside, b)
			}
		}
		s := a.row(&row)
		*s = Describe(values, cmp.Or(reason, a.reason))
		s.TwinComparison = averageBeside(beside)
	}
	return row
}

// CompareRuns compares the runs of two queues at the same output rate. Runs with the same index are a pair, because
// they had the same traffic. Pairs in which a run is invalid or absent are excluded.
func CompareRuns(queue, versus []Run) Comparison {
	var c Comparison
	pairs := pairRuns(queue, versus)
	if len(queue) > 0 {
		c.Queue, c.OutRateBPS = queue[0].Queue, queue[0].OutRateBPS
	}
	if len(versus) > 0 {
		c.Versus = versus[0].Queue
	}
	const cluster, worker, timeToN = "aom_cluster_ns", "aom_worker_ns", "time_to_n_ns"
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

// statistic returns a statistic over pairs. For each pair it combines metric ofA of the first run with metric ofB of
// the second.
func (pairs runPairs) statistic(ofA, ofB string, combine func(a, b float64) float64) Statistic {
	values := make([]Float, len(pairs))
	reason := "no pair of valid runs"
	for i, p := range pairs {
		a, b := p[0].Metrics.Of(ofA), p[1].Metrics.Of(ofB)
		values[i] = Missing()
		switch {
		case !a.Known():
			reason = p[0].missingReason(ofA)
		case !b.Known():
			reason = p[1].missingReason(ofB)
		default:
			values[i] = Float(combine(float64(a), float64(b)))
		}
	}
	return Describe(values, reason)
}

// missingReason returns the reason why the run has no value for a metric. The run's system may not declare the metric
// at all.
func (r *Run) missingReason(name string) string {
	return r.Queue + ": " + cmp.Or(r.Missing[name], name+" is not measured")
}
