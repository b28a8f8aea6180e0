package results

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/metric"
)

// TestSum128 compares the sum with unlimited arithmetic, for all signs and limits of both factors.
func TestSum128(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edge := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64 + 1}))
		var s sum128
		exact := new(big.Int)
		for range rapid.IntRange(0, 6).Draw(t, "n") {
			x, y := uint64(max(edge.Draw(t, "x"), 0)), edge.Draw(t, "y")
			if rapid.Bool().Draw(t, "product") {
				s.addProduct(x, y)
				exact.Add(exact, new(big.Int).Mul(new(big.Int).SetUint64(x), big.NewInt(y)))
			} else {
				s.addInt(y)
				exact.Add(exact, big.NewInt(y))
			}
		}
		if exact.BitLen() > 126 {
			t.Skip("more than a sum of ages ever is")
		}
		got := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(s.hi), 64), new(big.Int).SetUint64(s.lo))
		want, _ := new(big.Float).SetInt(exact).Float64()
		if got.Cmp(exact) != 0 || math.Abs(s.float()-want) > 1e-15*math.Abs(want) {
			t.Fatalf("%v and %v, want %v", got, s.float(), exact)
		}
	})
}

// TestStampsAreUnwrapped checks that stamps on either side of any instant are unwrapped, up to half the range of a
// stamp away.
func TestStampsAreUnwrapped(t *testing.T) {
	const span = int64(1) << 48
	for _, at := range []int64{0, 1, span - 1, span, span + 5, 9_000_000_000_000_000} {
		for _, age := range []int64{0, 1, -1, 1000, -1000, span/2 - 1, -span / 2} {
			genNS := uint64(at-age) % uint64(span)
			if got := unwrapGeneration(olaf.Time(at*1000), genNS); got != (at-age)*1000 {
				t.Errorf("at %d ns, age %d ns: generated at %d ps", at, age, got)
			}
		}
	}
}

// TestSawtoothHasItsCorners checks the corners for two deliveries of one cluster between those of another.
func TestSawtoothHasItsCorners(t *testing.T) {
	got := SawtoothCorners([]olaf.Observation{one(10, 4, 1, 0), one(12, 1, 0, 0), one(30, 5, 1, 0), one(31, 2, 1, 0)}, 1)
	want := []Vertex{{10_000, 6_000}, {30_000, 26_000}, {30_000, 25_000}, {31_000, 26_000}, {31_000, 26_000}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestHistogramByHand checks quantiles of teeth that are complete, begin below zero, or are within one bucket.
func TestHistogramByHand(t *testing.T) {
	for name, c := range map[string]struct {
		teeth      []tooth
		share      float64
		want       Float
		total, at0 int64
	}{
		"even":                {[]tooth{{0, 100}}, 0.5, 0.050, 100, 1},
		"two crossing":        {[]tooth{{0, 100}, {0, 50}}, 0.5, 0.0375, 150, 2},
		"one bucket":          {[]tooth{{100, 1}}, 0.5, 0.1005, 1, 0},
		"below zero":          {[]tooth{{-50, 100}}, 0.5, 0.001 * 50 / 51, 100, 51},
		"wholly below zero":   {[]tooth{{-50, 20}}, 1, 0.001, 20, 20},
		"just above zero":     {[]tooth{{-50, 51}}, 1, 0.001, 51, 51},
		"from just below":     {[]tooth{{-1, 101}}, 0.5, 0.0495, 101, 2},
		"up to zero":          {[]tooth{{-50, 50}}, 1, 0.001, 50, 50},
		"of no length":        {[]tooth{{5, 0}, {0, 100}}, 0.5, 0.050, 100, 1},
		"all of it":           {[]tooth{{0, 100}}, 1, 0.100, 100, 1},
		"nothing of it":       {[]tooth{{100, 20}}, 0, 0.100, 20, 0},
		"of another age":      {[]tooth{{1 << 40, 1 << 34}}, 0.5, Float(float64(1<<40+1<<33) / 1000), 1 << 34, 0},
		"to the longest ages": {[]tooth{{math.MaxInt64 - 10, 10}}, 1, Float(float64(math.MaxInt64) / 1000), 10, 0},
	} {
		h := new(ageHistogram)
		for _, k := range c.teeth {
			h.add(k)
		}
		if got := h.belowNS(c.share); !(math.Abs(float64(got-c.want)) <= 1e-6*float64(c.want)) ||
			h.total != c.total || h.part[0]+h.crossed[0] != c.at0 {
			t.Errorf("%s: %v ns of %d ps, want %v of %d", name, got, h.total, c.want, c.total)
		}
	}
	if got := new(ageHistogram).belowNS(0.5); got.Known() {
		t.Errorf("of nothing: %v", got)
	}
}

func TestPeaksMean(t *testing.T) {
	var p Peaks
	if p.MeanNS().Known() {
		t.Error("no peak has a mean")
	}
	if p.Add(-3000); p.MeanNS() != -3 {
		t.Errorf("one peak: %v", p.MeanNS())
	}
	if p.Add(8000); p.MeanNS() != 2.5 {
		t.Errorf("two peaks: %v", p.MeanNS())
	}
}

// TestUtilisation checks the utilisation of a link that is filled for a known share of a window, completely, or not at
// all.
func TestUtilisation(t *testing.T) {
	const rate = 256 * olaf.Gbps // a frame of 256 B takes 8 ns
	for name, c := range map[string]struct {
		window Window
		rate   olaf.Rate
		obs    []olaf.Observation
		want   Float
	}{
		"a window": {Window{From: 100_000, To: 164_000}, rate, []olaf.Observation{one(90, 0, 0, 0),
			one(110, 0, 0, 0), one(120, 0, 0, 0)}, 16.0 / 64},
		"first to last":    {Window{}, rate, []olaf.Observation{one(90, 0, 0, 0), one(114, 0, 0, 0)}, 16.0 / 32},
		"one frame":        {Window{}, rate, []olaf.Observation{one(90, 0, 0, 0)}, 1},
		"nothing":          {Window{From: 100_000, To: 164_000}, rate, nil, Missing()},
		"an endless link":  {Window{}, 0, []olaf.Observation{one(90, 0, 0, 0)}, Missing()},
		"one bit a second": {Window{}, 1, []olaf.Observation{one(90, 0, 0, 0)}, 1},
	} {
		r := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 1, OutRate: c.rate, Window: c.window})
		for i := range c.obs {
			r.Observe(&c.obs[i])
		}
		run := r.Finish(toy.Counts(nil))
		got := run.Metrics.Of("utilisation")
		if got.Known() != c.want.Known() || got.Known() && !close64(float64(got), float64(c.want)) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestEveryFaultIsNamed checks that each fault makes a run invalid for its own reason and no other.
func TestEveryFaultIsNamed(t *testing.T) {
	good := toy.Counts(map[string]int64{"sent": 1, "in": 1, "appended": 1, "delivered": 1, "received": 1,
		"count_delivered": 1})
	with := func(name string, n int64) olaf.Counts { c := good.Clone(); c.Add(name, n); return c }
	for want, c := range map[string]struct {
		counts olaf.Counts
		obs    []olaf.Observation
	}{
		"": {good, []olaf.Observation{one(10, 0, 0, 0)}},
		"the capture has 1 frames, 0 were delivered": {good, nil},
		"the capture has 2 frames, 1 were delivered": {with("received", 1), []olaf.Observation{one(10, 0, 0, 0)}},
		"the capture lost 1 frames": {with("capture_lost", 1),
			[]olaf.Observation{one(10, 0, 0, 0)}},
		"1 updates were generated after they were delivered": {good, []olaf.Observation{one(10, 20, 0, 0)}},
		"1 observations go backwards in time": {good, []olaf.Observation{one(10, 0, 0, 0),
			one(9, 0, 0, 0)}},
	} {
		r := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 1})
		for i := range c.obs {
			r.Observe(&c.obs[i])
		}
		run := r.Finish(c.counts)
		if want == "" && len(run.Invalid) > 0 || want != "" && !slices.Contains(run.Invalid, want) {
			t.Errorf("%q is not said: %q", want, run.Invalid)
		}
	}
}

// TestNeverDelivered checks the number of workers with too few deliveries for an age, both expected and unexpected
// ones.
func TestNeverDelivered(t *testing.T) {
	c := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 2})
	// Worker 0 delivers twice, worker 1 once. Of the unexpected workers, worker 2 delivers once and worker 3 twice.
	for _, o := range []olaf.Observation{one(10, 0, 0, 0), one(20, 10, 0, 0), one(21, 0, 0, 2), one(30, 0, 0, 3),
		one(50, 45, 0, 3)} {
		c.Observe(&o)
	}
	// Two updates of worker 1 in one frame are one delivery.
	both := one(60, 55, 0, 1)
	both.Update.Count, both.Contributors = 2, []olaf.Contributor{{GenNS: 50, Worker: 1}, {GenNS: 55, Worker: 1}}
	c.Observe(&both)
	r := c.Finish(toy.Counts(nil))
	if got := r.Metrics.Of("never_delivered"); got != 2 {
		t.Errorf("%v never delivered, want workers 1 and 2", got)
	}
	// Worker 0: 10 → 20 over 10 ns; worker 3: 30 → 50 over 20 ns.
	if got := r.Metrics.Of("aom_worker_ns"); got != (15+40)/2.0 {
		t.Errorf("AoM by worker %v, want 27.5", got)
	}
}

// TestInitialAgeOfSilentWorkers checks that an initial age applies to workers that were expected or have delivered, and
// to no others.
func TestInitialAgeOfSilentWorkers(t *testing.T) {
	c := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 1, Window: Window{From: 0, To: 100_000,
		InitialAge: 0}})
	o := one(50, 50, 0, 3) // workers 1 and 2 are in the gap
	c.Observe(&o)
	// Worker 0 grows from 0 to 100, worker 3 falls to 0 half way: 50 and 25.
	if got := c.Finish(toy.Counts(nil)).Metrics.Of("aom_worker_ns"); got != 37.5 {
		t.Errorf("AoM by worker %v, want 37.5", got)
	}
}

// TestDelayIsMeanOverMeasuredFrames checks that the mean delay is over frames whose time in the queue was measured.
func TestDelayIsMeanOverMeasuredFrames(t *testing.T) {
	for measured, want := range []Float{Missing(), 2, 2} {
		c := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 1})
		for i := range 3 {
			o := one(int64(10*i), 0, 0, 0)
			if i >= measured {
				o.Queued = -1
			}
			c.Observe(&o)
		}
		r := c.Finish(toy.Counts(nil))
		for _, name := range []string{"queue_delay_ns", "queue_delay_max_ns"} {
			if got := r.Metrics.Of(name); got.Known() != want.Known() || got.Known() && got != want {
				t.Errorf("%s of %d frames is %v, want %v", name, measured, got, want)
			}
		}
	}
}

// TestTimeToNAtOnce checks a T(N) that is reached by the first frame.
func TestTimeToNAtOnce(t *testing.T) {
	for obs, want := range map[int]Float{0: Missing(), 1: 0} {
		c := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 1, SpeedupUpdates: 1})
		for range obs {
			o := one(0, 0, 0, 0)
			c.Observe(&o)
		}
		r := c.Finish(toy.Counts(nil))
		if got := r.Metrics.Of("time_to_n_ns"); got.Known() != want.Known() || got.Known() && got != want {
			t.Errorf("T(1) after %d frames is %v, want %v", obs, got, want)
		}
	}
}

// TestWorkerMeansWithClusterGaps checks deliveries from clusters whose ids have gaps.
func TestWorkerMeansWithClusterGaps(t *testing.T) {
	c := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 9})
	for _, o := range []olaf.Observation{one(10, 0, 0, 0), one(20, 10, 0, 0), one(30, 0, 5, 7), one(50, 45, 5, 7)} {
		c.Observe(&o)
	}
	got := map[int]Float{}
	for _, k := range c.Finish(toy.Counts(nil)).Clusters {
		got[k.Cluster] = k.AoMWorker
	}
	if got[0] != 15 || got[5] != 40 || len(got) != 2 {
		t.Errorf("%v, want 15 of cluster 0 and 40 of cluster 5", got)
	}
}

// TestJobsEndWhereTheNextBegins renumbers two jobs and checks the end of each cluster's workers.
func TestJobsEndWhereTheNextBegins(t *testing.T) {
	var p places
	cfg := Config{Jobs: []Job{{Cluster: 4, Clusters: 2, Workers: 3}, {Cluster: 9, Clusters: 1, Workers: 2}}}
	p.assign(&cfg)
	for i, want := range []int{3, 6, 8} {
		if p.end(i) != want {
			t.Errorf("cluster %d ends at %d, want %d", i, p.end(i), want)
		}
	}
	for _, c := range []struct {
		cluster, worker int
		known           bool
	}{{4, 2, true}, {4, 3, false}, {5, 2, true}, {5, 3, false}, {9, 1, true}, {9, 2, false}, {6, 0, false},
		{10, 0, false}} {
		o := one(1, 0, c.cluster, c.worker)
		if _, known := p.placeOf(&o); known != c.known {
			t.Errorf("worker %d of cluster %d: known %v", c.worker, c.cluster, known)
		}
	}
}

// TestBootstrapByHand checks resamples of values whose interval is known.
func TestBootstrapByHand(t *testing.T) {
	if low, high, ok := Bootstrap([]float64{7, 7, 7}, 50, 1); !ok || low != 7 || high != 7 {
		t.Errorf("of equal values: %v, %v, %v", low, high, ok)
	}
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(i % 2)
	}
	// Means of 100 coins: 0.5 ± 1.96 · 0.05.
	if low, high, _ := Bootstrap(values, 2000, 3); math.Abs(low-0.402) > 0.02 || math.Abs(high-0.598) > 0.02 {
		t.Errorf("of coins: %v to %v", low, high)
	}
	if _, _, ok := Bootstrap([]float64{1, 2}, 0, 1); ok {
		t.Error("no resample has no interval")
	}
	if low, high, ok := Bootstrap([]float64{1, 2}, 1, 1); !ok || low != high {
		t.Errorf("one resample: %v, %v, %v", low, high, ok)
	}
}

// TestDifferences checks that differences are reported with their surroundings, and that an empty text means that there
// is none.
func TestDifferences(t *testing.T) {
	if d := Difference([]int{1, 2}, []int{1, 2}); d != "" {
		t.Error(d)
	}
	long := strings.Repeat("a", 100)
	if got, want := Difference(long+"x", long+"y"), "stored …"+long[:40]+`x"…, computed …`+long[:40]+`y"…`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := Difference("ab", "abc"), `stored …"ab"…, computed …"abc"…`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := Difference(1, 12), "stored …1…, computed …12…"; got != want { // one text is a prefix of the other
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if d := Difference(math.NaN(), 1); !strings.Contains(d, "can't be written") {
		t.Error(d)
	}
}

// TestRunsDiffer compares a stored run with a recomputed run, name by name.
func TestRunsDiffer(t *testing.T) {
	run := func(sent int64, aom Float) *Run {
		r := aRun(0, aom, 5)
		r.Counters = toy.Counts(map[string]int64{"sent": sent})
		return &r
	}
	for _, c := range []struct {
		name       string
		was, again *Run
		want       string
	}{
		{"the same", run(3, 10), run(3, 10), ""},
		{"a counter", run(3, 10), run(4, 10), "sent: stored 3, computed 4"},
		{"a counter that is 0 again", run(3, 10), run(0, 10), "sent: stored 3, computed 0"},
		{"a metric", run(3, 10), run(3, 11), "aom_cluster_ns: stored 10, computed 11"},
		{"a metric that is gone", run(3, 10), run(3, Missing()), "aom_cluster_ns: stored 10, computed null"},
		{"a metric that was missing", run(3, Missing()), run(3, Missing()), ""},
		{"a counter that nobody declares any more", run(3, 10),
			func() *Run { r := run(3, 10); r.Counters = olaf.Counts{}; return r }(), ""},
	} {
		if got := c.was.Differs(c.again); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	other := run(3, 10)
	other.Aggregations = []int64{1, 3}
	if got := run(3, 10).Differs(other); !strings.Contains(got, "computed") {
		t.Errorf("aggregations: %q", got)
	}
	worded := run(3, 10)
	worded.Missing, worded.Invalid = map[string]string{"a": "b"}, []string{"other words"}
	if got := run(3, 10).Differs(worded); got != "" {
		t.Errorf("other words: %q", got)
	}
}

// TestRowsDiffer does the same for rows of statistics.
func TestRowsDiffer(t *testing.T) {
	row := func(aom Float, reason string) *Row {
		r := Summarise(toy.Declared, []Run{aRun(0, aom, 5), aRun(1, aom, 5)})
		for i := range r.Stats {
			if r.Stats[i].Name == "aom_cluster_ns" {
				r.Stats[i].Reason = reason
			}
		}
		return &r
	}
	if got := row(10, "").Differs(row(10, "other words")); got != "" {
		t.Errorf("other words: %q", got)
	}
	of := func(reason string) *Row {
		r := row(10, "")
		r.Clusters = []ClusterRow{{AoM: Statistic{Reason: reason}, PeakAoM: Statistic{Reason: reason},
			AoMWorker: Statistic{Reason: reason}}}
		return r
	}
	if got := of("").Differs(of("other words")); got != "" {
		t.Errorf("other words of a cluster: %q", got)
	}
	if got := of("").Differs(row(10, "")); got == "" {
		t.Error("a cluster is gone")
	}
	if got := row(10, "").Differs(row(11, "")); !strings.HasPrefix(got, "aom_cluster_ns: stored") {
		t.Errorf("another mean: %q", got)
	}
	without := row(10, "")
	without.Stats = slices.DeleteFunc(slices.Clone(without.Stats), func(s Stat) bool { return s.Name == "aom_cluster_ns" })
	if got := row(10, "").Differs(without); !strings.HasPrefix(got, "aom_cluster_ns: ") {
		t.Errorf("a statistic that is gone: %q", got)
	}
	if got := without.Differs(row(10, "")); got != "" {
		t.Errorf("a statistic that is new: %q", got)
	}
	strange := &metric.Metric{Name: "of another olafctl"}
	with := *row(10, "")
	with.Stats = append(Stats{{strange, Statistic{N: 2}}}, with.Stats...)
	if got := with.Differs(row(10, "")); got != "" {
		t.Errorf("a statistic that nobody declares any more: %q", got)
	}
	again := *row(10, "")
	again.Stats = append(Stats{{strange, Statistic{N: 3}}}, again.Stats...)
	if got := with.Differs(&again); !strings.HasPrefix(got, "of another olafctl: ") {
		t.Errorf("a statistic that both have: %q", got)
	}
	fewer := row(10, "")
	fewer.Runs = 1
	if got := row(10, "").Differs(fewer); !strings.Contains(got, `"runs":2`) {
		t.Errorf("fewer runs: %q", got)
	}
}

// TestComparisonsDiffer does the same for comparisons.
func TestComparisonsDiffer(t *testing.T) {
	of := func(mean Float, reason string) *Comparison {
		s := Statistic{Mean: mean, Reason: reason}
		return &Comparison{AoMReduction: AoMReduction{s, s, s}, Speedup: s}
	}
	if got := of(1, "").Differs(of(1, "other words")); got != "" {
		t.Errorf("other words: %q", got)
	}
	if got := of(1, "").Differs(of(2, "")); got == "" {
		t.Error("other means")
	}
}

// TestNewAndUnknownNames compares the names in a stored run with those declared today.
func TestNewAndUnknownNames(t *testing.T) {
	r := aRun(0, 10, 5)
	new, unknown := r.New(toy.Declared)
	if slices.Contains(new, "sent") || slices.Contains(new, "aom_cluster_ns") || len(unknown) != 0 {
		t.Errorf("new %v, unknown %v", new, unknown)
	}
	r.Counters, r.Metrics = olaf.Counts{}, metric.Values{}
	if new, _ := r.New(toy.Declared); !slices.Contains(new, "sent") || !slices.Contains(new, "utilisation") {
		t.Errorf("of a run without anything: new %v", new)
	}
	r = aRun(0, 10, 5)
	less := *toy.Declared
	less.Metrics = slices.DeleteFunc(slices.Clone(less.Metrics),
		func(m *metric.Metric) bool { return m.Name == "aom_cluster_ns" })
	if _, unknown := r.New(&less); !slices.Equal(unknown, []string{"aom_cluster_ns"}) {
		t.Errorf("unknown %v", unknown)
	}
}

// TestDocumentPaths checks the list of a document's paths, and the readable part of the list for a truncated document.
func TestDocumentPaths(t *testing.T) {
	for text, want := range map[string][][2]string{
		`{"a":1,"b":{"c":[true,null,"x"]},"d":[]}`: {{"a", "1"}, {"b.c[0]", "true"}, {"b.c[1]", "<nil>"}, {"b.c[2]", "x"}},
		`[[1.50],2]`:      {{"[0][0]", "1.50"}, {"[1]", "2"}},
		`7`:               {{"", "7"}},
		`{"a":1,"b":[2,`:  {{"a", "1"}, {"b[0]", "2"}},
		`{"a":[1}`:        {{"a[0]", "1"}},
		`{"a":[1},"b":2}`: {{"a[0]", "1"}},
		``:                nil,
	} {
		if d := cmp.Diff(want, ListLeaves(json.RawMessage(text))); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

// TestMetricsInRows checks that the result is the union of two rows' statistics, in their order.
func TestMetricsInRows(t *testing.T) {
	m := func(name string) Stat { return Stat{&metric.Metric{Name: name}, Statistic{}} }
	var got []string
	rows := []Row{{Stats: Stats{m("a"), m("c")}}, {Stats: Stats{m("a"), m("b"), m("c")}}, {Stats: Stats{m("d")}}}
	for _, of := range MetricsIn(rows) {
		got = append(got, of.Name)
	}
	if d := cmp.Diff([]string{"d", "a", "b", "c"}, got); d != "" {
		t.Error(d)
	}
}

// TestCountsThatARunLacksAreMissing checks that a counter that is newer than a stored run is missing in it.
func TestCountsThatARunLacksAreMissing(t *testing.T) {
	r := aRun(0, 10, 5)
	sent := toy.Declared.Metric("sent")
	if v := r.Value(sent); !v.Known() {
		t.Errorf("sent is %v", v)
	}
	r.Counters = olaf.Counts{}
	if v := r.Value(sent); v.Known() {
		t.Errorf("sent of a run without counters is %v", v)
	}
}

// TestComparisonsNameBothSides checks the sides named in comparisons.
func TestComparisonsNameBothSides(t *testing.T) {
	fifo := aRun(1, 20, 50)
	fifo.Queue = "fifo"
	if c := CompareRuns([]Run{aRun(1, 10, 5)}, []Run{fifo}); c.Queue != "olaf" || c.Versus != "fifo" ||
		c.OutRateBPS != 40e9 {
		t.Errorf("%+v", c)
	}
	if c := CompareRuns(nil, []Run{fifo}); c.Queue != "" || c.Versus != "fifo" {
		t.Errorf("%+v", c)
	}
	if c := CompareRuns([]Run{aRun(1, 10, 5)}, nil); c.Queue != "olaf" || c.Versus != "" {
		t.Errorf("%+v", c)
	}
}
