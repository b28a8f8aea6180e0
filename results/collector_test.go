package results

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/metric"
)

// slowAoM integrates a sawtooth over [from, to] piece by piece in rationals: the age at t is t minus the newest
// generation time among the deliveries up to t. Nothing is known before the first delivery unless initial is not nil.
func slowAoM(deliveries [][2]int64, from, to int64, initial *int64) *big.Rat {
	cuts := []int64{from, to}
	for _, d := range deliveries {
		if d[0] > from && d[0] < to {
			cuts = append(cuts, d[0])
		}
	}
	slices.Sort(cuts)
	area, length := new(big.Rat), int64(0)
	for i := 1; i < len(cuts); i++ {
		a, b := cuts[i-1], cuts[i]
		newest, known := int64(math.MinInt64), false
		if initial != nil {
			newest, known = from-*initial, true
		}
		for _, d := range deliveries {
			if d[0] <= a {
				newest, known = max(newest, d[1]), true
			}
		}
		if !known || a == b {
			continue
		}
		piece := new(big.Rat).SetFrac64(a-newest+b-newest, 2)
		area.Add(area, piece.Mul(piece, new(big.Rat).SetInt64(b-a)))
		length += b - a
	}
	if length == 0 {
		return nil
	}
	return area.Quo(area, new(big.Rat).SetInt64(length*1000))
}

func close64(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// traffic draws observations of a few workers in ascending order of time. Their generation times wrap.
func traffic(t *rapid.T, clusters, workers int) []olaf.Observation {
	start := rapid.Int64Range(0, 1<<58).Draw(t, "start")
	n := rapid.IntRange(0, 40).Draw(t, "n")
	out := make([]olaf.Observation, n)
	at := start
	for i := range out {
		at += rapid.Int64Range(0, 1<<rapid.IntRange(0, 45).Draw(t, "bits")).Draw(t, "gap")
		contributors := make([]olaf.Contributor, rapid.IntRange(1, 4).Draw(t, "inside"))
		newest := 0
		for k := range contributors {
			age := rapid.Int64Range(0, 1<<30).Draw(t, "age")
			contributors[k] = olaf.Contributor{GenNS: uint64(at/1000-age) % olaf.GenModulus,
				Worker: olaf.WorkerID(rapid.IntRange(0, workers-1).Draw(t, "worker"))}
			if unwrapGeneration(olaf.Time(at), contributors[k].GenNS) > unwrapGeneration(olaf.Time(at),
				contributors[newest].GenNS) {
				newest = k
			}
		}
		out[i] = olaf.Observation{At: olaf.Time(at), Queued: olaf.Duration(i), Contributors: contributors,
			Update: olaf.Update{
				GenNS: contributors[newest].GenNS, Cluster: olaf.ClusterID(rapid.IntRange(0, clusters-1).Draw(t, "cluster")),
				Worker: contributors[len(contributors)-1].Worker, Count: uint16(len(contributors)), Lanes: 48}}
	}
	return out
}

// byKey lists (delivery, newest generation) per cluster or per worker.
func byKey(obs []olaf.Observation, workers bool) map[int][][2]int64 {
	out := map[int][][2]int64{}
	for _, o := range obs {
		if !workers {
			k := int(o.Update.Cluster)
			out[k] = append(out[k], [2]int64{int64(o.At), unwrapGeneration(o.At, o.Update.GenNS)})
			continue
		}
		newest := map[int]int64{}
		for _, c := range o.Contributors {
			g := unwrapGeneration(o.At, c.GenNS)
			if old, ok := newest[int(c.Worker)]; !ok || g > old {
				newest[int(c.Worker)] = g
			}
		}
		for w, g := range newest {
			out[w] = append(out[w], [2]int64{int64(o.At), g})
		}
	}
	return out
}

func TestAoMEqualsIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const clusters, workers = 3, 4
		obs := traffic(t, clusters, workers)
		cfg := Config{Clusters: clusters, Workers: workers}
		if len(obs) > 0 && rapid.Bool().Draw(t, "fixed window") {
			first, span := obs[0].At, int64(obs[len(obs)-1].At-obs[0].At)
			cfg.Window.From = first + olaf.Time(rapid.Int64Range(-1000, span).Draw(t, "from"))
			cfg.Window.From = max(cfg.Window.From, 0)
			cfg.Window.To = cfg.Window.From + olaf.Time(rapid.Int64Range(1, span+2000).Draw(t, "length"))
			cfg.Window.InitialAge = olaf.Duration(rapid.Int64Range(-1, 1e9).Draw(t, "initial age"))
		}
		c := NewCollector(cfg)
		for i := range obs {
			c.Observe(&obs[i])
		}
		run := c.Finish(olaf.Counts{})
		got := map[int]Float{}
		for _, m := range run.Clusters {
			got[m.Cluster] = m.AoM
		}
		compare(t, "cluster", cfg.Window, byKey(obs, false), clusters, func(id int) Float { return got[id] })
		compare(t, "worker", cfg.Window, byKey(obs, true), workers, func(id int) Float {
			if !c.counts(&c.workers[id].saw) {
				return Missing()
			}
			return c.workers[id].saw.meanNS()
		})
	})
}

func compare(t *rapid.T, what string, w Window, deliveries map[int][][2]int64, n int, got func(int) Float) {
	for id := range n {
		d := deliveries[id]
		var want *big.Rat
		switch {
		case w.FirstToLast() && len(d) >= 2:
			want = slowAoM(d, d[0][0], d[len(d)-1][0], nil)
		case !w.FirstToLast():
			inside := 0
			var initial *int64
			if w.InitialAge >= 0 {
				age := int64(w.InitialAge)
				initial = &age
			}
			for _, x := range d {
				if x[0] >= int64(w.From) && x[0] <= int64(w.To) {
					inside++
				}
			}
			if inside >= 2 || initial != nil {
				want = slowAoM(d, int64(w.From), int64(w.To), initial)
			}
		}
		if want == nil {
			if got(id).Known() {
				t.Fatalf("%s %d: got %v, want none", what, id, got(id))
			}
			continue
		}
		exact, _ := want.Float64()
		if !close64(float64(got(id)), exact) {
			t.Fatalf("%s %d: AoM %v ns, the slow integral says %v (window %v, deliveries %v)", what, id, got(id), exact, w, d)
		}
	}
}

func TestAgeQuantilesAgainstSortedTeeth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := new(ageHistogram)
		teeth := make([]tooth, rapid.IntRange(1, 30).Draw(t, "n"))
		for i := range teeth {
			teeth[i] = tooth{age: rapid.Int64Range(0, 1<<rapid.IntRange(1, 50).Draw(t, "bits")).Draw(t, "age"),
				length: rapid.Int64Range(1, 1<<40).Draw(t, "length")}
			h.add(teeth[i])
		}
		var inside, crossing int64
		for i := range h.part {
			_, width := ageBounds(i)
			crossing += h.crossed[i]
			inside += h.part[i] + crossing*width
		}
		if inside != h.total || crossing != 0 {
			t.Fatalf("the buckets hold %d of %d ps, %d teeth do not end", inside, h.total, crossing)
		}
		var total float64
		for _, k := range teeth {
			total += float64(k.length)
		}
		for _, share := range []float64{0.5, 0.95, 0.99} {
			q := h.belowNS(share)
			// The time spent below the quantile, widened by a bucket either way, must enclose the share.
			below := func(ps float64) float64 {
				var s float64
				for _, k := range teeth {
					s += min(max(ps-float64(k.age), 0), float64(k.length))
				}
				return s / total
			}
			ps := float64(q) * 1000
			if low, high := below(ps*(1-1.0/64)-1), below(ps*(1+1.0/64)+1); low > share+1e-9 || high < share-1e-9 {
				t.Fatalf("quantile %v: %v ns has between %v and %v of the time below it", share, q, low, high)
			}
		}
	})
}

// one delivers an update of worker w and cluster u at the given ns, generated at gen ns.
func one(at, gen int64, u, w int) olaf.Observation {
	return olaf.Observation{At: olaf.Time(at * 1000), Queued: 2 * olaf.Nanosecond,
		Update: olaf.Update{GenNS: uint64(gen), Cluster: olaf.ClusterID(u), Worker: olaf.WorkerID(w), Count: 1, Lanes: 48}}
}

func TestMetricsByHand(t *testing.T) {
	// Cluster 0: deliveries at 10, 20, 40 of updates from 0, 15, 30. Ages: 10→20 over 10 ns, then 5→25 over 20 ns:
	// (150+300)/30 = 15. Peaks: 20−0, 40−15 → 22.5. Worker 0 delivers at 10 and 40: age 10→40 → 25.
	obs := []olaf.Observation{one(10, 0, 0, 0), one(20, 15, 0, 1), one(40, 30, 0, 0), one(50, 50, 1, 2)}
	c := NewCollector(Config{Declared: toy.Declared, Clusters: 2, Workers: 4, OutRate: 256 * olaf.Gbps, SpeedupUpdates: 1})
	for i := range obs {
		c.Observe(&obs[i])
	}
	r := c.Finish(toy.Counts(map[string]int64{"sent": 8, "in": 8, "appended": 4, "turned_away": 4, "delivered": 4,
		"received": 4, "count_delivered": 4}))
	if len(r.Invalid) > 0 {
		t.Fatal(r.Invalid)
	}
	for _, check := range []struct {
		name string
		want Float
	}{
		{"aom_cluster_ns", 15}, {"aom_worker_ns", 25}, {"peak_aom_ns", 22.5}, {"lost_pct", 50}, {"jain", 1},
		{"never_delivered", 3},
		{"queue_delay_ns", 2}, {"queue_delay_max_ns", 2}, {"duration_ns", 40},
		// 4 frames of 8 ns in 8 + 40 ns.
		{"utilisation", 32.0 / 48},
	} {
		if got := r.Metrics.Of(check.name); !close64(float64(got), float64(check.want)) {
			t.Errorf("%s = %v, want %v", check.name, got, check.want)
		}
	}
	// The age is below 15 for half of the 30 ns: 5 to 15 in the second tooth and 10 to 15 in the first. Buckets are
	// 1/64 wide.
	if got := float64(r.Metrics.Of("aom_p50_ns")); math.Abs(got-15) > 15.0/64 {
		t.Errorf("median AoM %v, want 15", got)
	}
	if why := r.Missing["time_to_n_ns"]; why == "" || r.Metrics.Of("time_to_n_ns").Known() {
		t.Errorf("worker 3 never delivered, T(1) = %v for %q", r.Metrics.Of("time_to_n_ns"), why)
	}
	if want := []int64{4}; !slices.Equal(r.Aggregations, want) {
		t.Errorf("aggregations %v, want %v", r.Aggregations, want)
	}
}

func TestTimeToN(t *testing.T) {
	c := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 2, SpeedupUpdates: 2})
	merged := one(30, 25, 0, 1)
	merged.Update.Count = 3
	merged.Contributors = []olaf.Contributor{{GenNS: 20, Worker: 0}, {GenNS: 25, Worker: 1}, {GenNS: 24, Worker: 1}}
	// Workers 7 and 8 do not belong to the configured two, so they do not count.
	for _, o := range []olaf.Observation{one(10, 0, 0, 0), one(20, 9, 0, 7), one(21, 9, 0, 7), one(22, 9, 0, 8),
		one(23, 9, 0, 8), merged, one(60, 50, 0, 1)} {
		c.Observe(&o)
	}
	if r := c.Finish(olaf.Counts{}); r.Metrics.Of("time_to_n_ns") != 30 {
		t.Errorf("T(2) = %v, want 30", r.Metrics.Of("time_to_n_ns"))
	}
}

func TestMergedWithoutProvenance(t *testing.T) {
	c := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 2, SpeedupUpdates: 1})
	o := one(10, 0, 0, 0)
	c.Observe(&o)
	o = one(20, 5, 0, 1)
	o.Update.Count = 2
	c.Observe(&o)
	r := c.Finish(olaf.Counts{})
	for _, name := range []string{"aom_worker_ns", "never_delivered", "jain_workers", "time_to_n_ns"} {
		if r.Missing[name] != metric.NeedsProvenance {
			t.Errorf("%s is missing for %q, want %q", name, r.Missing[name], metric.NeedsProvenance)
		}
	}
	if !r.Metrics.Of("aom_cluster_ns").Known() {
		t.Error("per cluster AoM needs no provenance")
	}
}

func TestInvalidRuns(t *testing.T) {
	good := toy.Counts(map[string]int64{"sent": 1, "in": 1, "appended": 1, "delivered": 1, "received": 1,
		"count_delivered": 1})
	unbalanced, silent := good.Clone(), toy.Counts(map[string]int64{"sent": 1, "in": 1, "turned_away": 1})
	unbalanced.Add("sent", 1)
	late := one(10, 20, 0, 0)
	for name, test := range map[string]struct {
		counters olaf.Counts
		obs      []olaf.Observation
	}{
		"accounting": {unbalanced, []olaf.Observation{one(10, 0, 0, 0)}},
		"silent":     {silent, nil},
		"captured":   {good, nil},
		"backwards":  {good, []olaf.Observation{one(10, 0, 0, 0), one(9, 0, 0, 0)}},
		"future":     {good, []olaf.Observation{late}},
	} {
		c := NewCollector(Config{Clusters: 1, Workers: 1})
		for i := range test.obs {
			c.Observe(&test.obs[i])
		}
		if r := c.Finish(test.counters); r.Valid() {
			t.Errorf("%s: the run passes as valid", name)
		}
	}
}

// measuredOf returns a collector's run for the given deliveries.
func measuredOf(cfg Config, obs ...olaf.Observation) Run {
	c := NewCollector(cfg)
	for i := range obs {
		c.Observe(&obs[i])
	}
	return c.Finish(olaf.NewCounts(cfg.Declared.Ledger))
}

// TestOneSegmentEqualsNone checks that an update of one frame is measured equally whether the number of segments is 1
// or not given.
func TestOneSegmentEqualsNone(t *testing.T) {
	obs := []olaf.Observation{one(10, 0, 0, 0), one(20, 15, 1, 1), one(30, 20, 1, 1), one(40, 20, 0, 0)}
	for _, declared := range []*metric.Declaration{toy.Declared, toy.Summing} {
		none, single := measuredOf(Config{Declared: declared, Clusters: 2, Workers: 2}, obs...),
			measuredOf(Config{Declared: declared, Clusters: 2, Workers: 2, Segments: 1}, obs...)
		if a, b := mustJSON(t, none), mustJSON(t, single); a != b {
			t.Errorf("%s\n%s", a, b)
		}
	}
	// With several segments, other stamps are unknown, with or without an initial age.
	r := measuredOf(Config{Declared: toy.Summing, Clusters: 1, Workers: 1, Segments: 2,
		Window: Window{To: olaf.Time(100 * olaf.Nanosecond), InitialAge: 5 * olaf.Nanosecond}}, one(10, 0, 0, 0))
	if v := r.Metrics.Of(metric.OldestStamp); v.Known() {
		t.Errorf("the oldest stamp of vectors is %v old", v)
	}
}

// TestExtremeFrames checks frames with extreme values: a generation time one nanosecond after the arrival, since stamps
// are in whole nanoseconds, and a count of 0.
func TestExtremeFrames(t *testing.T) {
	future := func(gen int64) string {
		return strings.Join(measuredOf(Config{Declared: toy.Declared, Clusters: 1, Workers: 1},
			one(10, gen, 0, 0)).Invalid, "; ")
	}
	if now, next := future(11), future(12); strings.Contains(now, "generated") || now == next {
		t.Errorf("a nanosecond ahead %q, two %q", now, next)
	}
	empty := one(10, 0, 0, 0)
	empty.Update.Count = 0
	if r := measuredOf(Config{Declared: toy.Declared, Clusters: 1, Workers: 1}, empty); len(r.Aggregations) != 1 ||
		r.Aggregations[0] != 1 {
		t.Errorf("%v", r.Aggregations)
	}
	cfg := Config{Declared: toy.Declared, Clusters: 1, Workers: 1, SpeedupUpdates: 2}
	if why := measuredOf(cfg, one(10, 0, 0, 0)).Missing["time_to_n_ns"]; why != "not every worker had 2 updates received" {
		t.Errorf("of one worker: %q", why)
	}
}

// TestStampsOfSingleUpdates checks that frames with one update each have the same age by the mean, by the oldest and by
// the newest stamp.
func TestStampsOfSingleUpdates(t *testing.T) {
	obs := []olaf.Observation{one(10, 0, 0, 0), one(20, 15, 1, 1), one(30, 20, 1, 1), one(40, 20, 0, 0), one(70, 60, 0, 0)}
	for i := range obs {
		u := &obs[i].Update
		obs[i].Contributors = []olaf.Contributor{{GenNS: u.GenNS, Seq: u.Seq, Worker: u.Worker}}
	}
	at := func(ns int64) olaf.Time { return olaf.Time(ns * 1000) }
	for _, w := range []Window{{}, {From: at(5), To: at(100), InitialAge: UnknownAge}, {From: at(15), To: at(90),
		InitialAge: 4 * olaf.Nanosecond}, {From: at(0), To: at(35), InitialAge: UnknownAge}} {
		v := measuredOf(Config{Declared: toy.Summing, Clusters: 2, Workers: 2, Window: w}, obs...).Metrics
		newest := v.Of("aom_cluster_ns")
		if mean, oldest := v.Of("aom_mean_ns"), v.Of(metric.OldestStamp); !newest.Known() ||
			math.Abs(float64(mean-newest)) > 1e-9 || math.Abs(float64(oldest-newest)) > 1e-9 {
			t.Errorf("%+v: %v by the newest stamp, %v by the mean, %v by the oldest", w, newest, mean, oldest)
		}
	}
}

// TestMissingSparseCounterIsZero checks that a sparse counter that a run does not store is 0, and that any other such
// counter is unknown.
func TestMissingSparseCounterIsZero(t *testing.T) {
	r := Run{Counters: olaf.NewCounts(&olaf.Ledger{Counters: []olaf.Counter{{Name: "there"}}})}
	r.Counters.Add("there", 3)
	for name, want := range map[string]Float{"there": 3, "nowhere": Missing()} {
		for sparse, want := range map[bool]Float{false: want, true: map[bool]Float{true: want, false: 0}[want.Known()]} {
			if got := r.Value(&metric.Metric{Name: name, Counter: name, Sparse: sparse}); got != want &&
				(got.Known() || want.Known()) {
				t.Errorf("%s, sparse %t: %v, want %v", name, sparse, got, want)
			}
		}
	}
}

// TestStamped checks the mean time at which frames were observed, and the time from the first to the last.
func TestStamped(t *testing.T) {
	for _, c := range []struct {
		at         []int64 // ns
		mean, span Float
	}{{nil, Missing(), Missing()}, {[]int64{7}, 7, 0}, {[]int64{10, 20, 60}, 30, 50},
		{[]int64{10, 20, 15}, 50.0 / 3, 10}} {
		collector := NewCollector(Config{Clusters: 1, Workers: 1})
		for _, at := range c.at {
			o := one(at, 0, 0, 0)
			collector.Observe(&o)
		}
		mean, span := collector.TimeSpan()
		if mean.Known() != c.mean.Known() || span.Known() != c.span.Known() ||
			math.Abs(float64(mean-c.mean)) > 1e-9 || span.Known() && span != c.span {
			t.Errorf("at %v ns: %v on the average over %v, want %v over %v", c.at, mean, span, c.mean, c.span)
		}
	}
}

func TestResetForgets(t *testing.T) {
	cfg := Config{Declared: toy.Declared, Clusters: 2, Workers: 2}
	obs := []olaf.Observation{one(10, 0, 0, 0), one(20, 15, 1, 1), one(30, 20, 1, 1), one(40, 20, 0, 0)}
	run := func(c *Collector) Run {
		for i := range obs {
			c.Observe(&obs[i])
		}
		return c.Finish(olaf.Counts{})
	}
	c := NewCollector(Config{Clusters: 9, Workers: 30, Window: Window{From: 3, To: 99999, InitialAge: 4}})
	run(c)
	c.Reset(cfg)
	fresh, reused := mustJSON(t, run(NewCollector(cfg))), mustJSON(t, run(c))
	if fresh != reused {
		t.Errorf("a reused collector differs:\n%s\n%s", reused, fresh)
	}
}

func benchmarkCollector(b *testing.B, clusters, inside int) {
	const n = 1_000_000
	obs := make([]olaf.Observation, 4096)
	contributors := make([]olaf.Contributor, inside)
	c := NewCollector(Config{Declared: toy.Declared, Clusters: clusters, Workers: 3 * clusters,
		OutRate: 40 * olaf.Gbps, SpeedupUpdates: 500})
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(Config{Declared: toy.Declared, Clusters: clusters, Workers: 3 * clusters, OutRate: 40 * olaf.Gbps,
			SpeedupUpdates: 500})
		for i := range n {
			o := &obs[i%len(obs)]
			at := int64(i) * 51
			u := i * 7919 % clusters
			*o = one(at+400, at, u, 3*u+i%3)
			if inside > 0 {
				for k := range contributors {
					contributors[k] = olaf.Contributor{GenNS: uint64(at), Worker: olaf.WorkerID(3*u + k%3)}
				}
				o.Update.Count, o.Contributors = uint16(inside), contributors
			}
			c.Observe(o)
		}
		c.Finish(olaf.Counts{})
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/1e6obs")
}

// BenchmarkCollector10M measures a run of ten million observations; B/op is the total allocation.
func BenchmarkCollector10M(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		c := NewCollector(Config{Clusters: 10_000, Workers: 30_000, OutRate: 40 * olaf.Gbps})
		for i := range 10_000_000 {
			o := one(int64(i)*51+400, int64(i)*51, i%10_000, i%30_000)
			c.Observe(&o)
		}
		c.Finish(olaf.Counts{})
	}
}

func BenchmarkCollectorFIFO(b *testing.B)        { benchmarkCollector(b, 9, 0) }
func BenchmarkCollectorOlaf(b *testing.B)        { benchmarkCollector(b, 9, 3) }
func BenchmarkCollector10kClusters(b *testing.B) { benchmarkCollector(b, 10_000, 0) }
func TestObserveAllocatesNothing(t *testing.T) {
	c := NewCollector(Config{Clusters: 9, Workers: 27})
	o := one(10, 0, 3, 4)
	if n := testing.AllocsPerRun(1000, func() { o.At += 1000; c.Observe(&o) }); n != 0 {
		t.Errorf("%v allocations per observation", n)
	}
}
