package sweep

import (
	"encoding/json"
	"testing"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// TestSweepAndBenchReduceAlike checks that the change in a sweep agrees with the reduction in a bench over the same
// pairs. Documents of the first version keep the ratio of means.
func TestSweepAndBenchReduceAlike(t *testing.T) {
	ours, theirs := []results.Float{1, 2}, []results.Float{2, 8}
	run := func(queue string, values []results.Float) (runs []results.Run) {
		d := &metric.Declaration{Metrics: metric.ByName("aom_cluster_ns")}
		for i, v := range values {
			runs = append(runs, results.Run{Queue: queue, Index: i, Declared: d,
				Metrics: metric.NewValues(d.Metrics, func(int) metric.Float { return v })})
		}
		return runs
	}
	bench := results.CompareRuns(run("olaf", ours), run("fifo", theirs)).AoMReduction.ClusterCluster.Mean
	if got := comparePairs(ours, theirs, false).ChangePct; got != -bench || bench != 62.5 {
		t.Errorf("a sweep says a change of %v %%, a bench a reduction of %v %%: one is minus the other, 62.5", got, bench)
	}
	if got := comparePairs(ours, theirs, true).ChangePct; got != -70 {
		t.Errorf("a document of the first version has a change of %v %%, want the ratio of means, -70", got)
	}
}

// TestUntilPrintsTheIntervalOfItsRule checks that a cell whose rule was evaluated three times is described with the
// interval that decided the rule.
func TestUntilPrintsTheIntervalOfItsRule(t *testing.T) {
	values := []results.Float{9, 10, 11, 10, 12, 8}
	lot, err := json.Marshal(Lot{Metrics: []string{"x"}, Runs: runsOf(values)})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := ParseLot(lot)
	if err != nil {
		t.Fatal(err)
	}
	_, share := new(Enough).Decide([]*Lot{parsed}, []string{"x"}, 3)
	d := &Document{Schema: Schema}
	s := d.describe(values, 3)
	if got := float64(s.CI95 / s.Mean); got < share*(1-1e-12) || got > share*(1+1e-12) {
		t.Errorf("the interval is printed as ± %v of the mean, the rule decided by ± %v", got, share)
	}
	d.Schema = SchemaV1
	if plain := d.describe(values, 3); plain.CI95 >= s.CI95 {
		t.Errorf("a document of the first version has the plain interval, which is narrower: %v, not %v", plain.CI95, s.CI95)
	}
}

func runsOf(values []results.Float) (runs []Run) {
	for i, v := range values {
		runs = append(runs, Run{Seed: uint64(i), Values: []results.Float{v}})
	}
	return runs
}
