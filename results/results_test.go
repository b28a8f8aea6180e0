package results

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/metric"
)

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDescribe(t *testing.T) {
	// t(0.975, 3) = 3.182446; sd of 1,2,3,4 = 1.290994.
	s := Describe([]Float{1, 2, 3, 4}, "")
	if s.Mean != 2.5 || s.Min != 1 || s.Max != 4 || math.Abs(float64(s.CI95)-3.182446*1.290994/2) > 1e-5 {
		t.Errorf("%+v", s)
	}
	if one := Describe([]Float{7}, ""); one.Mean != 7 || one.CI95.Known() || one.SD.Known() {
		t.Errorf("one value: %+v", one)
	}
	none := Describe([]Float{Missing()}, metric.NeedsProvenance)
	if got := mustJSON(t, none); got != `{"mean":null,"sd":null,"ci95":null,"min":null,"max":null,"n":0,"reason":"needs provenance"}` {
		t.Error(got)
	}
	var back Statistic
	if err := json.Unmarshal([]byte(mustJSON(t, none)), &back); err != nil || back.Mean.Known() {
		t.Error(back, err)
	}
}

func TestBootstrapEnclosesTheMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 2, 20).Draw(t, "v")
		low, high, ok := Bootstrap(v, 200, 1)
		low2, high2, _ := Bootstrap(v, 200, 1)
		if !ok || low > high || low != low2 || high != high2 {
			t.Fatal(low, high, ok)
		}
	})
	if _, _, ok := Bootstrap([]float64{1}, 100, 1); ok {
		t.Error("one value has no interval")
	}
}

func aRun(index int, aom, worker Float, invalid ...string) Run {
	return Run{Queue: "olaf", OutRateBPS: 40e9, Index: index, Invalid: invalid, Aggregations: []int64{1, 2},
		Declared: toy.Declared, Counters: toy.Counts(nil),
		Metrics:  toy.Values(map[string]Float{"aom_cluster_ns": aom, "aom_worker_ns": worker}),
		Missing:  map[string]string{"aom_worker_ns": metric.NeedsProvenance},
		Clusters: []ClusterMetric{{Cluster: 0, Deliveries: 3, AoM: aom, PeakAoM: Missing(), AoMWorker: worker}}}
}

func TestSummariseLeavesInvalidRunsOut(t *testing.T) {
	row := Summarise(toy.Declared, []Run{aRun(0, 10, Missing()), aRun(1, 1e9, 5, "the capture lost 3 frames"),
		aRun(2, 20, Missing())})
	if row.Stats.Of("aom_cluster_ns").Mean != 15 || row.Runs != 2 || row.InvalidRuns != 1 || row.Valid ||
		len(row.Reasons) != 1 {
		t.Errorf("%+v", row)
	}
	if worker := row.Stats.Of("aom_worker_ns"); worker.Known() || worker.Reason != metric.NeedsProvenance {
		t.Errorf("per worker: %+v", worker)
	}
	if row.CDF[0].P != Float(1.0/3) || row.CDF[1].P != 1 {
		t.Errorf("cdf %+v", row.CDF)
	}
	if empty := Summarise(toy.Declared, nil); empty.Valid || empty.Stats.Of("sent").Reason != "no valid run" {
		t.Errorf("no runs: %+v", empty)
	}
}

func TestCompareRunsPairsByIndex(t *testing.T) {
	fifo := []Run{aRun(2, 40, 100), aRun(1, 20, 50), aRun(3, 1, 1, "bad")}
	for i := range fifo {
		fifo[i].Queue = "fifo"
	}
	c := CompareRuns([]Run{aRun(1, 10, Missing()), aRun(2, 10, Missing()), aRun(3, 10, Missing())}, fifo)
	if got := c.AoMReduction.WorkerCluster; got.Mean != 85 || got.N != 2 {
		t.Errorf("worker/cluster %+v", got)
	}
	if got := c.AoMReduction.ClusterCluster; got.Mean != 62.5 {
		t.Errorf("cluster/cluster %+v", got)
	}
	if got := c.AoMReduction.WorkerWorker; got.Known() || got.Reason != "olaf: "+metric.NeedsProvenance {
		t.Errorf("worker/worker %+v", got)
	}
	if got := CompareRuns([]Run{{Queue: "waiting"}},
		[]Run{{}}).Speedup; got.Reason != "waiting: time_to_n_ns is not measured" {
		t.Errorf("what nobody measures: %+v", got)
	}
}

// TestRowsInDocuments encodes the statistics of a row between its other members, and decodes them again.
func TestRowsInDocuments(t *testing.T) {
	one := Statistic{Mean: 1, N: 1}
	row := Row{Queue: "a<b", Valid: true, Stats: Stats{{&metric.Metric{Name: "b"}, one}, {&metric.Metric{Name: "a"}, one}},
		Reasons: []string{`"*":{}`}, CDF: []CDFPoint{{LE: 1, P: 1}}}
	const stat = `{"mean":1,"sd":0,"ci95":0,"min":0,"max":0,"n":1}`
	for want, row := range map[string]Row{
		`{"queue":"a\u003cb","out_rate_bps":0,"runs":0,"invalid_runs":0,"valid":true,"invalid_reasons":["\"*\":{}"],"b":` + stat + `,"a":` + stat + `,"aggregations_cdf":[{"le":1,"p":1}]}`: row,
		`{"queue":"","out_rate_bps":0,"runs":0,"invalid_runs":0,"valid":false,"aggregations_cdf":null}`:                                                                                     {},
	} {
		if got := mustJSON(t, row); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		var back Row
		if err := json.Unmarshal([]byte(want), &back); err != nil || mustJSON(t, back) != want {
			t.Errorf("%s\nreads back as\n%s: %v", want, mustJSON(t, back), err)
		}
	}
	if s := row.Stats.Of("nowhere"); s.Known() || s.Mean.Known() {
		t.Errorf("%+v", s)
	}
}

// TestWithholdingCounterIsHidden checks that documents and tables of systems without transmission control do not show
// its counter.
func TestWithholdingCounterIsHidden(t *testing.T) {
	shown := func(row *Row, runs []Run) (in, of bool) {
		for _, s := range row.Stats {
			in = in || s.Name == "tc_withheld"
		}
		for _, m := range MetricsOf(runs) {
			of = of || m.Name == "tc_withheld"
		}
		return in, of
	}
	off, on := []Run{aRun(0, 10, 10), aRun(1, 20, 20)}, []Run{aRun(0, 10, 10), aRun(1, 20, 20)}
	on[1].Counters.Add("tc_withheld", 8)
	for name, runs := range map[string][]Run{"off": off, "invalid": {aRun(0, 1, 1, "bad")}, "none": nil} {
		row := Summarise(toy.Declared, runs)
		if in, of := shown(&row, runs); in || of || strings.Contains(mustJSON(t, row)+mustJSON(t, runs), "tc_withheld") {
			t.Errorf("%s: in the row %v, of the runs %v", name, in, of)
		}
	}
	row := Summarise(toy.Declared, on)
	if in, of := shown(&row, on); !in || !of {
		t.Errorf("in the row %v, of the runs %v", in, of)
	}
	withheld := row.Stats.Of("tc_withheld")
	var back Row
	if err := json.Unmarshal([]byte(mustJSON(t, row)), &back); err != nil ||
		*back.Stats.Of("tc_withheld") != *withheld || withheld.Mean != 4 || withheld.N != 2 {
		t.Errorf("%+v reads back as %+v: %v", withheld, back.Stats.Of("tc_withheld"), err)
	}
}

// TestMetricsOfSeveralSystems checks that each name occurs once, and that names of a single system stay in the place
// where that system has them.
func TestMetricsOfSeveralSystems(t *testing.T) {
	declared := func(names ...string) Run {
		d := &metric.Declaration{Ledger: new(olaf.Ledger)}
		for _, name := range names {
			d.Metrics = append(d.Metrics, &metric.Metric{Name: name, Of: func(*metric.Measured) Float { return 1 }})
		}
		return Run{Declared: d}
	}
	var got []string
	for _, m := range MetricsOf([]Run{declared("a", "b", "c"), {}, declared("x", "a", "y", "c", "z")}) {
		got = append(got, m.Name)
	}
	if want := []string{"x", "a", "y", "b", "c", "z"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
