package results

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/internal/toy"
	"github.com/olafctl/olaf/results/metric"
)

// TestRealRow holds what a row of runs on real wires carries, and that it is read back as it was written.
func TestRealRow(t *testing.T) {
	age, count := &metric.Metric{Name: "aom_cluster_ns", Age: true}, &metric.Metric{Name: "frames"}
	runs := []*Run{
		{Decisions: &olaf.Decisions{Checked: 10, Equal: 10}, LatenessNS: &olaf.Quantiles{P50: 1, P99: 9, Max: 20}, BurstRate: 90, Beside: map[string]Beside{"aom_cluster_ns": {1, 2, 4}}},
		{Decisions: &olaf.Decisions{Checked: 5, Equal: 4, First: "that"}, LatenessNS: &olaf.Quantiles{P50: 2, P99: 8, Max: 10}, BurstRate: 110, Withheld: "late",
			Beside: map[string]Beside{"aom_cluster_ns": {3, 4, Missing()}}},
	}
	row := Row{Queue: "olaf", Stats: Stats{{age, Describe([]Float{4}, "")}, {count, Describe([]Float{7}, "")}}}
	row.real(runs)
	written, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"decisions":{"checked":15,"equal":14,"first":"that"}`, `"lateness_ns":{"p50":2,"p99":9,"max":20}`, `"withheld":{"runs":1,"reason":"late"}`,
		`"plan":1,"twin":2,"measured":4`, `"burst_rate_bps":{"mean":100,`,
	} {
		if !strings.Contains(string(written), want) {
			t.Errorf("no %s in %s", want, written)
		}
	}
	if n := strings.Count(string(written), `"plan"`); n != 1 {
		t.Errorf("%d statistics stand beside the twin's: %s", n, written)
	}
	var read Row
	if err := json.Unmarshal(written, &read); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(read)
	if err != nil || string(again) != string(written) || len(read.Stats) != 2 {
		t.Errorf("read back: %v\n%s\n%s", err, again, written)
	}
}

// TestRecall holds that a run measured again from its frames stands beside the twin as it did, with its own ages.
func TestRecall(t *testing.T) {
	stored := &Run{Decisions: &olaf.Decisions{Checked: 3, Equal: 3}, LatenessNS: &olaf.Quantiles{P50: 1}, BurstRate: 9,
		Beside: map[string]Beside{"aom_cluster_ns": {1, 2, 3}}}
	again := &Run{Metrics: toy.Values(map[string]Float{"aom_cluster_ns": 7})}
	again.Recall(stored)
	if b := again.Beside["aom_cluster_ns"]; b != (Beside{1, 2, 7}) || again.Decisions != stored.Decisions || again.LatenessNS != stored.LatenessNS || again.BurstRate != 9 {
		t.Errorf("%+v", again)
	}
	again = new(Run)
	if again.Recall(new(Run)); again.Beside != nil || again.Decisions != nil {
		t.Errorf("%+v", again)
	}
}
