package text

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// measured returns a row with the values that headlines use.
func measured(queue string, rate int64, lost, age float64) results.Row {
	stat := func(name string, v float64) results.Stat {
		m := &metric.Metric{Name: name}
		return results.Stat{Metric: m, Statistic: results.Describe([]results.Float{results.Float(v), results.Float(v)}, "")}
	}
	return results.Row{Queue: queue, OutRateBPS: rate, Runs: 6, Valid: true, Stats: results.Stats{stat("lost_pct", lost), stat("aom_cluster_ns", age), stat("aom_worker_ns", 2*age)}}
}

// reduced returns a comparison with a reduction per cluster and one per worker, each with its half-width.
func reduced(rate int64, cluster, clusterHalf, worker, workerHalf float64) results.Comparison {
	stat := func(mean, half float64) results.Statistic {
		return results.Statistic{Mean: results.Float(mean), CI95: results.Float(half), N: 6}
	}
	return results.Comparison{Queue: "olaf", Versus: "fifo", OutRateBPS: rate, AoMReduction: results.AoMReduction{
		ClusterCluster: stat(cluster, clusterHalf), WorkerWorker: stat(worker, workerHalf), WorkerCluster: stat(69, 1)}}
}

// few returns rows over a number of runs.
func few(rows []results.Row, runs int) []results.Row {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Runs = runs
	}
	return rows
}

// TestHeadlines checks the first sentences for different runs: what was lost, comparisons of models, the printed
// numbers. They begin with the models if these are older or if the readings disagree.
func TestHeadlines(t *testing.T) {
	const fast, slow = 40e9, 20e9
	two := []results.Row{measured("olaf", fast, 11.2, 1200), measured("fifo", fast, 54.8, 1800)}
	crowded := json.RawMessage(`{"spec":{"slots":8,"workload":{"clusters":1000}}}`)
	for name, c := range map[string]struct {
		bench results.Bench
		want  string
	}{
		"alone": {results.Bench{Rows: two[:1]}, "OLAF lost 11.2 % of updates.\nOLAF's models were 1.200 µs old per cluster, 2.400 µs per worker."},
		"fresher": {results.Bench{Rows: two, Comparisons: []results.Comparison{reduced(fast, 34.7, 0.6, 42.2, 0.5)}},
			"OLAF lost 11.2 % of updates, FIFO 54.8 %.\nOLAF's models were 34.7 % fresher per cluster than FIFO's."},
		"two rates": {results.Bench{Rows: append(two[:2:2], measured("olaf", slow, 10.4, 1), measured("fifo", slow, 74.8, 1)),
			Comparisons: []results.Comparison{reduced(fast, 34.7, 0.6, 42.2, 0.5), reduced(slow, 47.8, 0.6, 58.3, 0.5)}},
			"At 40Gbps OLAF lost 11.2 % of updates, FIFO 54.8 %; at 20Gbps 10.4 % and 74.8 %.\n" +
				"At 40Gbps OLAF's models were 34.7 % fresher per cluster than FIFO's; at 20Gbps 47.8 % fresher per cluster."},
		"older": {results.Bench{Config: crowded, Rows: []results.Row{measured("olaf", fast, 58.3, 1), measured("fifo", fast, 54.8, 1)},
			Comparisons: []results.Comparison{reduced(fast, -10, 0.5, -6.4, 0.4)}},
			"OLAF's models were 10.0 % older per cluster, 6.4 % older per worker than FIFO's (1000 clusters on 8 slots).\n" +
				"OLAF lost 58.3 % of updates, FIFO only 54.8 %."},
		"readings disagree": {results.Bench{Rows: two, Comparisons: []results.Comparison{reduced(fast, 3, 0.5, -6.4, 0.4)}},
			"The readings of an age disagree: OLAF's models were 3.0 % fresher per cluster, 6.4 % older per worker than FIFO's.\n" +
				"OLAF lost 11.2 % of updates, FIFO 54.8 %."},
		"within the interval": {results.Bench{Rows: two, Comparisons: []results.Comparison{reduced(fast, -0.1, 0.5, 2, 0.4)}},
			"OLAF lost 11.2 % of updates, FIFO 54.8 %.\nOLAF's models were neither fresher nor older per cluster than FIFO's."},
		"published": {results.Bench{Rows: two, Comparisons: []results.Comparison{reduced(fast, 34.7, 0.6, 42.2, 0.5)}, Paper: []results.PaperRow{
			{ID: "olaf/table1.a", Source: "OLAF §8.1, Table 1", Basis: "calibrated", Published: 100, DeviationPct: 4.9},
			{ID: "olaf/table1.b", Source: "OLAF §8.1, Table 1", Basis: "calibrated", Published: 100, DeviationPct: -5.1},
			{ID: "olaf/aom.c", Source: "OLAF §8.1, text", Unit: "%", Published: 69, DeviationPct: 0, Ours: results.Statistic{Mean: 69, CI95: 1, N: 6}}}},
			"OLAF lost 11.2 % of updates, FIFO 54.8 %.\nOLAF's models were 34.7 % fresher per cluster than FIFO's (the paper's reading: 69.0 %, published 69).\n" +
				"Table 1: 1 of 2 numbers within 5 %, all calibrated."},
		"one run": {results.Bench{Rows: few(two, 1), Paper: []results.PaperRow{
			{ID: "olaf/table1.a", Source: "OLAF §8.1, Table 1", Basis: "calibrated", Verdict: "too short", DeviationPct: 1},
			{ID: "olaf/table1.b", Source: "OLAF §8.1, Table 1", Basis: "calibrated", Verdict: "too short", DeviationPct: 1}}},
			"1 run only: OLAF lost 11.2 % of updates, FIFO 54.8 %.\nOLAF's models were 1.200 µs old per cluster, 2.400 µs per worker.\n" +
				"Table 1: too few runs to judge 2 numbers."},
		"two runs, some numbers judged": {results.Bench{Rows: few(two, 2), Paper: []results.PaperRow{
			{ID: "olaf/table1.a", Source: "OLAF §8.1, Table 1", Basis: "calibrated", Verdict: "too short", DeviationPct: 1},
			{ID: "olaf/table1.b", Source: "OLAF §8.1, Table 1", Basis: "calibrated", Verdict: "match", DeviationPct: 1}}},
			"2 runs only: OLAF lost 11.2 % of updates, FIFO 54.8 %.\nOLAF's models were 1.200 µs old per cluster, 2.400 µs per worker.\n" +
				"Table 1: too few runs to judge 1 of 2 numbers; 1 of 1 others within 5 %, all calibrated."},
		"bursts lose although less is offered than leaves": {results.Bench{Rows: two[:1],
			Config: json.RawMessage(`{"spec":{"workload":{"mean_rate":"20Gbps","burst_packets":135}}}`)},
			"OLAF lost 11.2 % of updates.\nOLAF's models were 1.200 µs old per cluster, 2.400 µs per worker.\n" +
				"Bursts determine the loss: the average of 20Gbps offered is below the output of 40Gbps, so --rate changes only the gaps between bursts of 135."},
		"more is offered than leaves": {results.Bench{Rows: two[:1],
			Config: json.RawMessage(`{"spec":{"workload":{"mean_rate":"60Gbps","burst_packets":135}}}`)},
			"OLAF lost 11.2 % of updates.\nOLAF's models were 1.200 µs old per cluster, 2.400 µs per worker."},
		"a chosen rate at which the queue empties between bursts": {results.Bench{Rows: two[:1], Config: bursts("85Gbps"),
			Provenance: results.Provenance{Command: []string{"olafctl", "bench", "--rate=85G"}}},
			"OLAF lost 11.2 % of updates.\nOLAF's models were 1.200 µs old per cluster, 2.400 µs per worker.\n" +
				"Bursts determine the loss: at 85Gbps or less the queue empties between bursts of 135 at 100Gbps, so --rate does not change the loss."},
		"a chosen rate at which it does not": {results.Bench{Rows: two[:1], Config: bursts("86Gbps"),
			Provenance: results.Provenance{Command: []string{"olafctl", "bench", "--rate", "86G"}}},
			"OLAF lost 11.2 % of updates.\nOLAF's models were 1.200 µs old per cluster, 2.400 µs per worker."},
		"the default rate": {results.Bench{Rows: two[:1], Config: bursts("60Gbps")},
			"OLAF lost 11.2 % of updates.\nOLAF's models were 1.200 µs old per cluster, 2.400 µs per worker."},
		"nothing": {results.Bench{}, ""},
	} {
		if got := strings.Join(headlines(&c.bench), "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// bursts returns the configuration of the paper's bursts at a mean rate, in front of 8 slots.
func bursts(rate string) json.RawMessage {
	return json.RawMessage(`{"spec":{"slots":8,"overhead":"0B","workload":{"mean_rate":"` + rate + `","line_rate":"100Gbps","size":"256B",` +
		`"burst_packets":135,"burst_dist":"fixed","gap_dist":"fixed"}}}`)
}
