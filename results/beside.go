package results

import (
	"cmp"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/metric"
)

// TwinComparison contains one age in three forms: on the twin with the planned arrivals, on the twin with the logged
// arrivals, and as measured. The first two differ because of the senders, and the last two because of the output.
// Values that are withheld or unknown are missing.
type TwinComparison struct {
	Plan     Float `json:"plan"`
	Twin     Float `json:"twin"`
	Measured Float `json:"measured"`
}

// OutputPct returns the percentage by which the measured age exceeds the twin's age for the same arrivals. This
// difference is the effect of the output.
func (b *TwinComparison) OutputPct() Float {
	if !b.Twin.Known() || !b.Measured.Known() || b.Twin == 0 {
		return Missing()
	}
	return 100 * (b.Measured/b.Twin - 1)
}

// Compare stores the ages of the twin's runs in a measured run. plan is the twin's run with the planned arrivals, and
// twin is its run with the logged arrivals. A nil run means that its ages are unknown.
func (r *Run) Compare(plan, twin *Run) {
	r.TwinComparisons = map[string]TwinComparison{}
	for m, measured := range r.Metrics.All {
		if m.Age && m.AbovePathOf == "" {
			r.TwinComparisons[m.Name] = TwinComparison{plan.age(m), twin.age(m), measured}
		}
	}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		c.TwinComparisons = map[string]TwinComparison{}
		for _, a := range clusterAges {
			c.TwinComparisons[a.name] = TwinComparison{plan.clusterAge(c.Cluster, a.of), twin.clusterAge(c.Cluster, a.of), *a.of(c)}
		}
	}
}

// clusterAges lists the ages of a single cluster, with the metrics that average them over all clusters.
var clusterAges = []struct {
	name, total string
	reason      string // reason given if the age is missing but the metric is not
	of          func(*ClusterMetric) *Float
	row         func(*ClusterRow) *Statistic
}{
	{"aom_ns", "aom_cluster_ns", "needs two deliveries", func(c *ClusterMetric) *Float { return &c.AoM },
		func(r *ClusterRow) *Statistic { return &r.AoM }},
	{"peak_aom_ns", "peak_aom_ns", "needs two deliveries", func(c *ClusterMetric) *Float { return &c.PeakAoM },
		func(r *ClusterRow) *Statistic { return &r.PeakAoM }},
	{"aom_worker_ns", "aom_worker_ns", "needs two deliveries of one worker, and provenance",
		func(c *ClusterMetric) *Float { return &c.AoMWorker }, func(r *ClusterRow) *Statistic { return &r.AoMWorker }},
}

// ClusterAge is a statistic of one cluster's age over several runs.
type ClusterAge struct {
	Cluster int
	Name    string // name in a ClusterMetric
	Total   string // metric with the average over all clusters
	Statistic
}

// ClusterAges returns statistics of all ages of all clusters over the given runs, in ascending order of clusters.
func ClusterAges(runs []*Run) (ages []ClusterAge) {
	rows := clusterRows(runs)
	for i := range rows {
		for _, a := range clusterAges {
			ages = append(ages, ClusterAge{rows[i].Cluster, a.name, a.total, *a.row(&rows[i])})
		}
	}
	return ages
}

// ClusterAge returns one of a cluster's ages by its name in a ClusterMetric. The value is missing if the run does not
// have it.
func (r *Run) ClusterAge(cluster int, name string) Float {
	for _, a := range clusterAges {
		if a.name == name {
			return r.clusterAge(cluster, a.of)
		}
	}
	return Missing()
}

func (r *Run) clusterAge(id int, of func(*ClusterMetric) *Float) Float {
	if r != nil {
		if at := slices.IndexFunc(r.Clusters, func(c ClusterMetric) bool { return c.Cluster == id }); at >= 0 {
			return *of(&r.Clusters[at])
		}
	}
	return Missing()
}

// Recall copies the values from a stored run that cannot be computed from its frames. These are decisions, lateness,
// burst rates, and the twin's ages.
func (r *Run) Recall(stored *Run) {
	r.Decisions, r.LatenessNS, r.BurstRate = stored.Decisions, stored.LatenessNS, stored.BurstRate
	if stored.TwinComparisons == nil {
		return
	}
	r.TwinComparisons = map[string]TwinComparison{}
	for name, b := range stored.TwinComparisons {
		r.TwinComparisons[name] = TwinComparison{b.Plan, b.Twin, r.Metrics.Of(name)}
	}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		at := slices.IndexFunc(stored.Clusters, func(s ClusterMetric) bool { return s.Cluster == c.Cluster })
		if at < 0 || stored.Clusters[at].TwinComparisons == nil { // stored before these ages existed for clusters
			continue
		}
		c.TwinComparisons = map[string]TwinComparison{}
		for _, a := range clusterAges {
			b := stored.Clusters[at].TwinComparisons[a.name]
			c.TwinComparisons[a.name] = TwinComparison{b.Plan, b.Twin, *a.of(c)}
		}
	}
}

func (r *Run) age(m *metric.Metric) Float {
	if r == nil {
		return Missing()
	}
	return r.Metrics.Of(m.Name)
}

// Withheld contains the number of runs whose ages are withheld, and the reason for the first of them.
type Withheld struct {
	Runs   int    `json:"runs"`
	Reason string `json:"reason"`
}

// addReal sets the fields that only runs in real time have. These are decisions compared with the engine, lateness of
// frames, withheld runs, and burst rates.
func (row *Row) addReal(runs []*Run) {
	var bursts []Float
	for _, r := range runs {
		if d := r.Decisions; d != nil {
			row.Decisions = cmp.Or(row.Decisions, new(olaf.Decisions))
			row.Decisions.Add(d)
		}
		if l := r.LatenessNS; l != nil {
			row.LatenessNS = cmp.Or(row.LatenessNS, new(olaf.Quantiles))
			row.LatenessNS.Worst(l)
		}
		if r.Withheld != "" {
			row.Withheld = cmp.Or(row.Withheld, &Withheld{Reason: r.Withheld})
			row.Withheld.Runs++
		}
		if r.BurstRate > 0 {
			bursts = append(bursts, r.BurstRate)
		}
	}
	if len(bursts) > 0 {
		s := Describe(bursts, "")
		row.BurstRate = &s
	}
	for i := range row.Stats {
		row.Stats[i].TwinComparison = AverageBeside(runs, row.Stats[i].Name)
	}
}

// AverageBeside averages each form of an age over the given runs; see averageBeside.
func AverageBeside(runs []*Run, name string) *TwinComparison {
	var all []TwinComparison
	for _, r := range runs {
		if b, ok := r.TwinComparisons[name]; ok {
			all = append(all, b)
		}
	}
	return averageBeside(all)
}

// averageBeside averages each form of an age over the runs in which the age was measured, so that all averages cover
// the same runs. If there are no such runs, the twin's ages are averaged over all runs, because they do not depend on
// the real output. It returns nil if no run was compared with the twin.
func averageBeside(runs []TwinComparison) *TwinComparison {
	told := slices.ContainsFunc(runs, func(b TwinComparison) bool { return b.Measured.Known() })
	var plan, twin, measured []Float
	for _, b := range runs {
		if b.Measured.Known() == told {
			plan, twin, measured = append(plan, b.Plan), append(twin, b.Twin), append(measured, b.Measured)
		}
	}
	if plan == nil {
		return nil
	}
	mean := func(values []Float) Float {
		s := Describe(values, "")
		return s.Mean
	}
	return &TwinComparison{mean(plan), mean(twin), mean(measured)}
}
