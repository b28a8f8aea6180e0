package results

import (
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/metric"
)

// TestUnknownWorkerCount checks that a run with an unknown number of workers is measured as far as possible, and that
// missing values have reasons.
func TestUnknownWorkerCount(t *testing.T) {
	c := NewCollector(Config{Declared: toy.Declared, OutRate: 1e9, SpeedupUpdates: 3})
	c.Observe(&olaf.Observation{At: olaf.Time(olaf.Microsecond), Update: olaf.Update{Count: 1, GenNS: 500, Lanes: 4}})
	run := c.Finish(toy.Counts(map[string]int64{"sent": 1, "in": 1, "appended": 1, "delivered": 1, "received": 1,
		"count_delivered": 1}))
	if why := run.Missing["time_to_n_ns"]; why != "not asked for" {
		t.Errorf("T(3) is missing: %q", why)
	}
}

// TestBenchIsValid checks that a bench is valid if all its rows are and it was not stopped early.
func TestBenchIsValid(t *testing.T) {
	for _, c := range []struct {
		bench Bench
		want  bool
	}{
		{Bench{}, true}, {Bench{Rows: []Row{{Valid: true}}}, true}, {Bench{Rows: []Row{{Valid: true}, {}}}, false},
		{Bench{Rows: []Row{{}, {Valid: true}}}, false}, {Bench{Rows: []Row{{Valid: true}}, Partial: true}, false},
	} {
		if got := c.bench.Valid(); got != c.want {
			t.Errorf("%+v is valid: %t", c.bench, got)
		}
	}
}

// TestMixedReadingIsFound checks that the mixed reading is found only by a published percentage that was judged by it.
func TestMixedReadingIsFound(t *testing.T) {
	mixed, other := Describe([]Float{68, 70}, ""), Describe([]Float{34, 35}, "")
	c := &Comparison{AoMReduction: AoMReduction{WorkerCluster: mixed, ClusterCluster: other}}
	for name, row := range map[string]PaperRow{
		"another unit":   {ID: "x", Unit: "ns", Ours: mixed, Published: 69},
		"another number": {ID: "x", Unit: "%", Ours: other, Published: 69},
		"unpublished":    {ID: "x", Unit: "%", Ours: mixed, Published: Missing()},
	} {
		if got := FindMixedReduction([]PaperRow{row}, c); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	rows := []PaperRow{{Unit: "%", Ours: other, Published: 1}, {ID: "this", Unit: "%", Ours: mixed, Published: 69}}
	if got := FindMixedReduction(rows, c); got != &rows[1] {
		t.Errorf("%+v", got)
	}
	unknown := Describe(nil, "none")
	if got := FindMixedReduction([]PaperRow{{Unit: "%", Ours: unknown, Published: 69}},
		&Comparison{AoMReduction: AoMReduction{WorkerCluster: unknown}}); got != nil {
		t.Errorf("of a reading that is not known: %+v", got)
	}
}

// TestRowsAreDeclared checks that a row that was read gets the declaration of its statistics from the system's
// declaration.
func TestRowsAreDeclared(t *testing.T) {
	declared := toy.Declared.Metrics[0]
	row := Row{Stats: Stats{{Metric: &metric.Metric{Name: "of nobody"}}, {Metric: &metric.Metric{Name: declared.Name}}}}
	row.Declare(toy.Declared)
	if row.Stats[1].Metric != declared || row.Stats[0].Metric.Name != "of nobody" {
		t.Errorf("%+v, %+v", row.Stats[0].Metric, row.Stats[1].Metric)
	}
}

// TestRowsOfClustersAreInOrder checks that rows of clusters are sorted by cluster id, in whatever order the runs have
// them.
func TestRowsOfClustersAreInOrder(t *testing.T) {
	a, b := &Run{Clusters: []ClusterMetric{{Cluster: 7, AoM: 1}, {Cluster: 2, AoM: 2}}},
		&Run{Clusters: []ClusterMetric{{Cluster: 5, AoM: 3}, {Cluster: 2, AoM: 4}}}
	var ids []int
	rows := clusterRows([]*Run{a, b})
	for i := range rows {
		ids = append(ids, rows[i].Cluster)
	}
	if !slices.Equal(ids, []int{2, 5, 7}) || rows[0].AoM.Mean != 3 || rows[0].AoM.N != 2 {
		t.Errorf("%v, %+v", ids, rows)
	}
}

// TestComparisonNamesMissingSide checks that a comparison without numbers names the side that lacks them, with the
// reason.
func TestComparisonNamesMissingSide(t *testing.T) {
	known := func(queue string) *Run { return &Run{Queue: queue, Metrics: toy.Values(map[string]Float{"jain": 1})} }
	lacking := func(queue string) *Run {
		return &Run{Queue: queue, Metrics: toy.Values(map[string]Float{"jain": Missing()}),
			Missing: map[string]string{"jain": "for a reason"}}
	}
	for _, c := range []struct {
		a, b *Run
		want string
	}{{known("a"), lacking("b"), "b: for a reason"}, {lacking("a"), known("b"), "a: for a reason"}} {
		st := runPairs{{c.a, c.b}}.statistic("jain", "jain", func(a, b float64) float64 { return a / b })
		if st.Known() || !strings.Contains(st.Reason, c.want) {
			t.Errorf("%+v, want %q", st, c.want)
		}
	}
}
