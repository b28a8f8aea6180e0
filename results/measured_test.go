package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/metric"
)

// crowd draws frames of three clusters with up to three workers each, merged or not. Their stamps wrap, and some are a
// day old.
func crowd(seed uint64, n int) []olaf.Observation {
	r := rand.New(rand.NewPCG(seed, 9))
	at := int64(olaf.GenModulus)*1000 - 20_000_000
	out := make([]olaf.Observation, n)
	for i := range out {
		at += r.Int64N(2_000_000)
		o := &out[i]
		*o = olaf.Observation{At: olaf.Time(at), Queued: olaf.Duration(r.IntN(5000)) - 1000, Update: olaf.Update{
			Cluster: olaf.ClusterID(r.IntN(3)), Worker: olaf.WorkerID(r.IntN(3)), Seq: uint32(r.IntN(9)),
			Lanes: uint16(16 + r.IntN(3)), Count: uint16(1 + r.IntN(3))}}
		for range o.Update.Count {
			age := r.Int64N(3000)
			if r.IntN(12) == 0 {
				age = 100_000_000_000_000 // ns: 28 hours
			}
			k := olaf.Contributor{GenNS: uint64(at/1000-age) % olaf.GenModulus, Worker: olaf.WorkerID(r.IntN(3)),
				Seq: uint32(r.IntN(9))}
			if o.Contributors == nil || unwrapGeneration(o.At, k.GenNS) > unwrapGeneration(o.At, o.Update.GenNS) {
				o.Update.GenNS, o.Update.Worker, o.Update.Seq = k.GenNS, k.Worker, k.Seq
			}
			o.Contributors = append(o.Contributors, k)
		}
	}
	return out
}

// alone converts merged frames into frames of one update each, without contributors.
func alone(obs []olaf.Observation) []olaf.Observation {
	for i := range obs {
		obs[i].Update.Count, obs[i].Contributors = 1, nil
	}
	return obs
}

// globally numbers workers over all clusters, and leaves two clusters and some workers without updates.
func globally(obs []olaf.Observation) []olaf.Observation {
	for i := range obs {
		u := &obs[i].Update
		u.Cluster *= 2
		u.Worker += 5 * olaf.WorkerID(u.Cluster)
		for k := range obs[i].Contributors {
			obs[i].Contributors[k].Worker += 5 * olaf.WorkerID(u.Cluster)
		}
	}
	return obs
}

// TestCollectorNumbers checks every number that a collector computes from seeded frames, for all kinds of windows and
// numberings, with new and reused collectors.
func TestCollectorNumbers(t *testing.T) {
	frames := crowd(1, 60)
	from, to := frames[10].At, frames[50].At
	merged := crowd(6, 20)
	merged[4].Update.Count, merged[5].Update.Count, merged[6].Update.Count = 64, 65, 300 // around the size of a table
	back := crowd(7, 12)
	back[5].At -= 9_000_000
	back[8].Update.GenNS = uint64(back[8].At.NS()+2) % olaf.GenModulus
	back[8].Contributors = nil
	back[9].Update.GenNS = uint64(back[9].At.NS()) % olaf.GenModulus
	var text bytes.Buffer
	used := NewCollector(Config{Clusters: 40, Workers: 90, Window: Window{To: 1 << 60, InitialAge: 7}, Segments: 2})
	for _, c := range []struct {
		name string
		cfg  Config
		obs  []olaf.Observation
	}{
		{"nothing", Config{Clusters: 2, Workers: 2, OutRate: olaf.Gbps, SpeedupUpdates: 1}, nil},
		{"nothing in a window", Config{Clusters: 2, Workers: 2, OutRate: olaf.Gbps, Window: Window{From: from, To: to,
			InitialAge: 3 * olaf.Microsecond}}, nil},
		{"first to last", Config{Clusters: 5, Workers: 24, OutRate: olaf.Gbps, OverheadBytes: 24, SpeedupUpdates: 1},
			globally(crowd(1, 60))},
		{"who was not announced", Config{Clusters: 1, Workers: 2, OutRate: olaf.Gbps}, globally(crowd(1, 60))},
		{"two are enough", Config{Clusters: 1, Workers: 2, SpeedupUpdates: 2}, globally(crowd(8, 60))},
		{"a window", Config{Clusters: 5, Workers: 24, OutRate: olaf.Gbps, OverheadBytes: 24,
			Window: Window{From: from, To: to, InitialAge: UnknownAge}}, globally(crowd(1, 60))},
		{"a window with an age", Config{Clusters: 5, Workers: 24, OutRate: 2 * olaf.Gbps, Window: Window{From: from,
			To: to}}, globally(crowd(1, 60))},
		{"an age, and who was not announced", Config{Clusters: 2, Workers: 2, Window: Window{From: from, To: to,
			InitialAge: olaf.Microsecond}}, globally(crowd(1, 60))},
		{"nobody announced, and nothing in time", Config{Workers: 2, Window: Window{To: 9, InitialAge: 4}}, crowd(1, 3)},
		{"frames of their own", Config{Clusters: 5, Workers: 24, OutRate: olaf.Gbps, OwnFrames: true},
			globally(crowd(1, 30))},
		{"nobody says who is inside", Config{Clusters: 5, Workers: 24, SpeedupUpdates: 1}, func() []olaf.Observation {
			obs := globally(crowd(2, 30))
			obs[20].Contributors = nil
			obs[20].Update.Count = 2
			return obs
		}()},
		{"single updates", Config{Clusters: 3, Workers: 3, SpeedupUpdates: 3, OutRate: olaf.Gbps}, alone(crowd(3, 30))},
		{"segments", Config{Clusters: 3, Workers: 3, Segments: 3, OutRate: olaf.Gbps}, alone(crowd(4, 90))},
		{"segments of merged", Config{Clusters: 3, Workers: 3, Segments: 2, Window: Window{From: from, To: to,
			InitialAge: 5}}, crowd(1, 60)},
		{"jobs", Config{Jobs: []Job{{Cluster: 1, Clusters: 2, Workers: 3}, {Cluster: 0, Clusters: 1, Workers: 2}},
			SpeedupUpdates: 2}, crowd(5, 60)},
		{"merges of all lengths", Config{Clusters: 3, Workers: 3}, merged},
		{"back in time and from the future", Config{Clusters: 3, Workers: 3}, back},
	} {
		c.cfg.Declared = toy.Declared
		used.Reset(c.cfg)
		var told [2]string
		for i, collector := range []*Collector{NewCollector(c.cfg), used} {
			for k := range c.obs {
				collector.Observe(&c.obs[k])
			}
			run, err := json.MarshalIndent(
				collector.Finish(toy.Counts(map[string]int64{"received": collector.ObservedCount()})), "", " ")
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			told[i] = fmt.Sprintf("%s: %d frames of %d updates\n%s\n", c.name, collector.ObservedCount(),
				collector.countSum, run)
		}
		if told[0] != told[1] {
			t.Errorf("%s: a used collector says something else:\n%s", c.name, told[1])
		}
		text.WriteString(told[0])
	}
	golden.Equal(t, "measured.txt", text.Bytes())
}

// TestAgeMatchesCollector compares a separately computed age with that of the cluster in a collector with the same
// deliveries.
func TestAgeMatchesCollector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Window{}
		if rapid.Bool().Draw(t, "fixed") {
			w.From = olaf.Time(rapid.Int64Range(0, 20_000).Draw(t, "from"))
			w.To = w.From + olaf.Time(rapid.Int64Range(1, 30_000).Draw(t, "length"))
			w.InitialAge = olaf.Duration(rapid.Int64Range(-1, 5000).Draw(t, "initial age"))
		}
		c := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 1, Window: w})
		var age Age
		var peaks Peaks
		age.Begin(w)
		at := int64(0)
		for range rapid.IntRange(0, 30).Draw(t, "deliveries") {
			at += 1000 * rapid.Int64Range(0, 4).Draw(t, "gap")
			gen := at - 1000*rapid.Int64Range(0, 9).Draw(t, "age")
			o := one(at/1000, gen/1000, 0, 0)
			o.Update.GenNS = uint64(gen/1000) % olaf.GenModulus
			if AgeOf(&o) != olaf.Duration(at-gen) {
				t.Fatalf("the age of %+v is %s, want %d ps", o, AgeOf(&o), at-gen)
			}
			c.Observe(&o)
			if w.To > 0 && at > int64(w.To) {
				continue
			}
			before, known := age.At(olaf.Time(at))
			delivered := age.saw.delivered
			peak := age.Deliver(w, olaf.Time(at), olaf.Time(gen-3000))
			age.Renew(olaf.Time(gen))
			age.Renew(olaf.Time(gen - 1))
			if delivered && (!known || peak != before) || !delivered && peak != 0 {
				t.Fatalf("a peak of %s after an age of %s, %t", peak, before, known)
			}
			if delivered && at >= int64(w.From) {
				peaks.Add(peak)
			}
		}
		age.Close(w)
		run := c.Finish(olaf.Counts{})
		want := run.Clusters[0]
		if want.Deliveries != age.Deliveries() || !same(want.PeakAoM, peaks.MeanNS()) {
			t.Fatalf("%d deliveries with peaks of %v, want %d with %v", age.Deliveries(), peaks.MeanNS(),
				want.Deliveries, want.PeakAoM)
		}
		if want.AoM.Known() && !same(want.AoM, age.MeanNS()) {
			t.Fatalf("a mean of %v, want %v", age.MeanNS(), want.AoM)
		}
	})
}

func same(a, b Float) bool { return a == b || !a.Known() && !b.Known() }

// TestWindowsInWords checks the description of each kind of window.
func TestWindowsInWords(t *testing.T) {
	us := olaf.Time(olaf.Microsecond)
	for w, want := range map[Window]string{
		{}:             "first to last delivery",
		{From: 2 * us}: "first to last delivery",
		{To: us}:       "0ps to 1us, age 0ps at the start",
		{From: us, To: 3 * us, InitialAge: olaf.Nanosecond}: "1us to 3us, age 1ns at the start",
		{From: us, To: 3 * us, InitialAge: UnknownAge}:      "1us to 3us, from the first delivery on",
	} {
		if got := w.String(); got != want {
			t.Errorf("%+v is %q, want %q", w, got, want)
		}
	}
}

// TestMeasuredAgesAreComparedWithTheTwin compares measured ages with two others, each of which may be missing.
func TestMeasuredAgesAreComparedWithTheTwin(t *testing.T) {
	none := Missing()
	for _, c := range []struct {
		b    TwinComparison
		want Float
	}{
		{TwinComparison{1, 4, 5}, 25}, {TwinComparison{1, 4, 4}, 0}, {TwinComparison{none, 4, 3}, -25}, {TwinComparison{1, 0, 5}, none},
		{TwinComparison{1, none, 5}, none}, {TwinComparison{1, 4, none}, none},
		{TwinComparison{1, -2, 1}, -150},
	} {
		if got := c.b.OutputPct(); !same(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.b, got, c.want)
		}
	}
	run := func(age Float) *Run {
		return &Run{Metrics: toy.Values(map[string]Float{"aom_cluster_ns": age, "lost_pct": 9})}
	}
	r := run(7)
	r.Compare(nil, run(5))
	age, counted := r.TwinComparisons["aom_cluster_ns"], r.TwinComparisons["lost_pct"]
	if !same(age.Plan, none) || age.Twin != 5 || age.Measured != 7 || counted != (TwinComparison{}) || len(r.TwinComparisons) == 0 {
		t.Errorf("%+v", r.TwinComparisons)
	}
	if r.Compare(run(3), nil); r.TwinComparisons["aom_cluster_ns"].Plan != 3 || !same(r.TwinComparisons["aom_cluster_ns"].Twin, none) {
		t.Errorf("%+v", r.TwinComparisons)
	}
	with := func(b TwinComparison) *Run { return &Run{TwinComparisons: map[string]TwinComparison{"a": b}} }
	for name, c := range map[string]struct {
		runs []*Run
		want *TwinComparison
	}{
		"no run":                 {nil, nil},
		"nothing beside":         {[]*Run{{}, {}}, nil},
		"another age":            {[]*Run{{TwinComparisons: map[string]TwinComparison{"b": {1, 2, 3}}}}, nil},
		"all told":               {[]*Run{with(TwinComparison{1, 2, 3}), {}, with(TwinComparison{3, 4, 7})}, &TwinComparison{2, 3, 5}},
		"one told":               {[]*Run{with(TwinComparison{1, 2, none}), with(TwinComparison{3, 4, 7})}, &TwinComparison{3, 4, 7}},
		"none told":              {[]*Run{with(TwinComparison{1, 2, none}), with(TwinComparison{3, 4, none})}, &TwinComparison{2, 3, none}},
		"plan and twin not told": {[]*Run{with(TwinComparison{none, none, 6})}, &TwinComparison{none, none, 6}},
	} {
		got := AverageBeside(c.runs, "a")
		if (got == nil) != (c.want == nil) || got != nil && (!same(got.Plan, c.want.Plan) ||
			!same(got.Twin, c.want.Twin) || !same(got.Measured, c.want.Measured)) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestSpeedups checks speed-ups: the other system's time divided by ours, pair by pair.
func TestSpeedups(t *testing.T) {
	run := func(index int, n Float) Run {
		return Run{Index: index, Metrics: toy.Values(map[string]Float{"time_to_n_ns": n})}
	}
	c := CompareRuns([]Run{run(0, 10), run(1, 20)}, []Run{run(1, 100), run(0, 30)})
	if c.Speedup.Mean != 4 || c.Speedup.Min != 3 || c.Speedup.Max != 5 {
		t.Errorf("%+v", c.Speedup)
	}
}

// TestDescribeByHand checks every number in statistics of zero, one, two and many values, with and without missing
// ones.
func TestDescribeByHand(t *testing.T) {
	none := Missing()
	many := make([]Float, 30)
	for i := range many {
		many[i] = Float(i % 3)
	}
	for _, c := range []struct {
		values []Float
		want   Statistic
	}{
		{nil, Statistic{Mean: none, SD: none, CI95: none, Min: none, Max: none, Reason: "why"}},
		{[]Float{none, none}, Statistic{Mean: none, SD: none, CI95: none, Min: none, Max: none, Reason: "why"}},
		{[]Float{7}, Statistic{Mean: 7, SD: none, CI95: none, Min: 7, Max: 7, N: 1}},
		{[]Float{none, 7}, Statistic{Mean: 7, SD: none, CI95: none, Min: 7, Max: 7, N: 1, Reason: "why"}},
		// t(0.975, 1) = 12.706205; sd of 1, 3 = √2.
		{[]Float{3, 1}, Statistic{Mean: 2, SD: math.Sqrt2, CI95: 12.7062047, Min: 1, Max: 3, N: 2}},
		// t(0.975, 29) = 2.045230; ten each of 0, 1, 2: sd = √(20/29).
		{many, Statistic{Mean: 1, SD: 0.8304548, CI95: 0.3100969, Min: 0, Max: 2, N: 30}},
	} {
		got := Describe(c.values, "why")
		near := func(a, b Float) bool { return same(a, b) || math.Abs(float64(a-b)) < 1e-6 }
		if !near(got.Mean, c.want.Mean) || !near(got.SD, c.want.SD) || !near(got.CI95, c.want.CI95) ||
			!near(got.Min, c.want.Min) || !near(got.Max, c.want.Max) || got.N != c.want.N || got.Reason != c.want.Reason {
			t.Errorf("%v: %+v, want %+v", c.values, got, c.want)
		}
	}
	values := []float64{3, 1, 4, 1, 5, 9, 2, 6}
	if low, high, ok := Bootstrap(values, 40, 7); low != 2.25 || high != 5.5 || !ok { // the draws depend only on the seed
		t.Errorf("%v %v %t, want 2.25 to 5.5", low, high, ok)
	}
	for _, few := range [][]float64{nil, {1}} {
		if low, high, ok := Bootstrap(few, 40, 7); low != 0 || high != 0 || ok {
			t.Errorf("of %v: %v, %v, %t", few, low, high, ok)
		}
	}
}

// TestInvalidStatisticsAreRejected checks that invalid statistics are rejected, with their names.
func TestInvalidStatisticsAreRejected(t *testing.T) {
	var row Row
	if err := json.Unmarshal([]byte(`{"queue":"q","aom":{"mean":"x"}}`), &row); err == nil ||
		!bytes.Contains([]byte(err.Error()), []byte("statistic aom: ")) {
		t.Errorf("%v, %+v", err, row)
	}
	for _, raw := range []string{`7`, `{"queue":7}`, `[`} {
		if err := json.Unmarshal([]byte(raw), &row); err == nil {
			t.Errorf("%s is taken for a row", raw)
		}
	}
	withheld := new(Run)
	withheld.Metrics = toy.Values(map[string]Float{"aom_cluster_ns": 1})
	if withheld.Withhold("clocks"); withheld.Missing["aom_cluster_ns"] != "clocks" {
		t.Errorf("%+v", withheld)
	}
	read := new(Run)
	kept := aRun(0, 10, 5)
	if raw, err := json.Marshal(kept); err != nil || json.Unmarshal(raw, read) != nil {
		t.Fatal(err)
	}
	read.Declare(toy.Declared)
	if read.Declared == nil || len(read.Declared.Metrics) != len(toy.Declared.Metrics) ||
		read.Value(toy.Declared.Metric("aom_cluster_ns")) != 10 || kept.Differs(read) != "" {
		t.Errorf("%+v", read)
	}
	// Metrics that this olafctl cannot compute are not compared.
	strange := func(v string) (m metric.Values) {
		if err := json.Unmarshal([]byte(`{"of another olafctl":`+v+`}`), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	was, is := &Run{Metrics: strange("1")}, &Run{Metrics: strange("2")}
	if why := was.Differs(is); why != "" {
		t.Error(why)
	}
	if _, unknown := was.New(toy.Declared); len(unknown) != 1 || unknown[0] != "of another olafctl" {
		t.Errorf("%q", unknown)
	}
}
