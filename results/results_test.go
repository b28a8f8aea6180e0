package results

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCheckNamesTheBrokenIdentity(t *testing.T) {
	good := Counters{Sent: 20, Bypassed: 1, Malformed: 1, LostBeforeEngine: 1, In: 17, Appended: 8, Aggregated: 4, Replaced: 2, ReplacedReward: 1,
		DroppedFull: 1, DroppedReward: 0, DroppedMismatch: 1, Delivered: 6, Queued: 1, Flushed: 1, Received: 5, CaptureLost: 1,
		CountDelivered: 8, CountQueued: 2, CountFlushed: 1, CountDiscarded: 4}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	var parts int64
	for _, p := range good.LostParts() {
		parts += p.Count
	}
	if parts != good.Lost() {
		t.Errorf("the parts of lost make %d, lost is %d", parts, good.Lost())
	}
	for want, breakIt := range map[string]func(*Counters){
		"sent =":      func(c *Counters) { c.Sent++ },
		"in =":        func(c *Counters) { c.Replaced-- },
		"appended =":  func(c *Counters) { c.Queued++ },
		"delivered =": func(c *Counters) { c.Received-- },
		"Σcount":      func(c *Counters) { c.CountDelivered++ },
	} {
		bad := good
		breakIt(&bad)
		if err := bad.Check(); !errors.Is(err, ErrAccounting) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	saturated := good
	saturated.CountDelivered, saturated.CountSaturations = 0, 1
	if err := saturated.Check(); err != nil {
		t.Errorf("a saturated count voids the identity over counts: %v", err)
	}
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
	none := Describe([]Float{Missing()}, NeedsProvenance)
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
		Metrics: Metrics{AoMCluster: aom, AoMWorker: worker}, Missing: map[string]string{"aom_worker_ns": NeedsProvenance},
		Clusters: []ClusterMetric{{Cluster: 0, Deliveries: 3, AoM: aom, PeakAoM: Missing(), AoMWorker: worker}}}
}

func TestSummariseLeavesInvalidRunsOut(t *testing.T) {
	row := Summarise([]Run{aRun(0, 10, Missing()), aRun(1, 1e9, 5, "the capture lost 3 frames"), aRun(2, 20, Missing())})
	if row.AoMCluster.Mean != 15 || row.Runs != 2 || row.InvalidRuns != 1 || row.Valid || len(row.Reasons) != 1 {
		t.Errorf("%+v", row)
	}
	if row.AoMWorker.Known() || row.AoMWorker.Reason != NeedsProvenance {
		t.Errorf("per worker: %+v", row.AoMWorker)
	}
	if row.CDF[0].P != Float(1.0/3) || row.CDF[1].P != 1 {
		t.Errorf("cdf %+v", row.CDF)
	}
	if empty := Summarise(nil); empty.Valid || empty.Sent.Known() {
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
	if got := c.AoMReduction.WorkerWorker; got.Known() || got.Reason != "olaf: "+NeedsProvenance {
		t.Errorf("worker/worker %+v", got)
	}
}

func TestScalarsHaveUniqueNamesOfTheDocument(t *testing.T) {
	document := mustJSON(t, Row{Stats: Stats{TCWithheld: Statistic{N: 1}}})
	seen := map[string]bool{}
	for _, s := range Scalars() {
		if seen[s.Name] || !strings.Contains(document, `"`+s.Name+`":`) {
			t.Errorf("%s is doubled or not in the document", s.Name)
		}
		seen[s.Name] = true
		var stats Stats
		s.At(&stats).N = 1
		if !strings.Contains(mustJSON(t, stats), `"`+s.Name+`":{"mean":0,"sd":0,"ci95":0,"min":0,"max":0,"n":1}`) {
			t.Errorf("%s writes to another name", s.Name)
		}
	}
}

// TestNothingWithheldIsNotShown holds that documents and tables of what has no transmission control are as they would be
// without that scalar.
func TestNothingWithheldIsNotShown(t *testing.T) {
	off, on := []Run{aRun(0, 10, 10), aRun(1, 20, 20)}, []Run{aRun(0, 10, 10), aRun(1, 20, 20)}
	on[1].Counters.TCWithheld = 8
	for name, runs := range map[string][]Run{"off": off, "invalid": {aRun(0, 1, 1, "bad")}, "none": nil} {
		row := Summarise(runs)
		if strings.Contains(mustJSON(t, row)+mustJSON(t, runs), tcWithheld) || len(ScalarsOf(runs)) != len(Scalars())-1 {
			t.Errorf("%s: %+v", name, row.TCWithheld)
		}
		for _, s := range Scalars() {
			if s.In(&row.Stats) == (s.Name == tcWithheld) {
				t.Errorf("%s: %s is in the row: %v", name, s.Name, s.In(&row.Stats))
			}
		}
	}
	row := Summarise(on)
	var back Row
	if err := json.Unmarshal([]byte(mustJSON(t, row)), &back); err != nil || back.TCWithheld != row.TCWithheld {
		t.Errorf("%+v reads back as %+v: %v", row.TCWithheld, back.TCWithheld, err)
	}
	if row.TCWithheld.Mean != 4 || row.TCWithheld.N != 2 || len(ScalarsOf(on)) != len(Scalars()) {
		t.Errorf("%+v", row.TCWithheld)
	}
	for _, s := range Scalars() {
		if !s.In(&row.Stats) {
			t.Errorf("%s is not in the row", s.Name)
		}
	}
}
