package pktgen

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

func table1(testing.TB) Burst { return Table1Burst() }

func play(t testing.TB, w Burst, seed uint64) []regmap.Descriptor {
	t.Helper()
	s, err := NewSchedule(w, seed)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]regmap.Descriptor, s.Total()+1)
	n := s.Fill(all)
	if n != s.Total() {
		t.Fatalf("%d descriptors of %d", n, s.Total())
	}
	return all[:n]
}

func TestTable1IsValid(t *testing.T) {
	w := Table1Burst()
	if err := w.Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		want  string
		spoil func(*Burst)
	}{
		{"0 workers", func(w *Burst) { w.Workers = 0 }},
		{"65537 workers", func(w *Burst) { w.Workers = 65537 }},
		{"27 workers cannot fill 28 clusters", func(w *Burst) { w.Clusters = 28 }},
		{"0 clusters", func(w *Burst) { w.Clusters = 0 }},
		{"0 updates per worker", func(w *Burst) { w.UpdatesPerWorker = 0 }},
		{"can be addressed", func(w *Burst) { w.Workers, w.UpdatesPerWorker = 65536, 10_000_000 }},
		{"whole number of lanes", func(w *Burst) { w.Size = 255 }},
		{"size 9040B", func(w *Burst) { w.Size = 9040 }},
		{"size -64B", func(w *Burst) { w.Size = -64 }},
		{"vectors of -1 values", func(w *Burst) { w.Values = -1 }},
		{"which hold 48; make frames of 252B", func(w *Burst) { w.Values = 47 }},
		{"frames of 64B hold no values", func(w *Burst) { w.Size, w.Values = 64, 5 }},
		{"27 workers with 2428 segments of a vector each; together there can be 65536", func(w *Burst) { w.Values = 2427*48 + 1 }},
		{"536871780 frames of updates in all", func(w *Burst) { w.Values, w.UpdatesPerWorker = 20*48, 994_207 }},
		{"line rate 0bps must be positive", func(w *Burst) { w.LineRate = 0 }},
		{"above the 128Gbps", func(w *Burst) { w.LineRate = 400 * olaf.Gbps }},
		{"rate 0bps must be positive", func(w *Burst) { w.MeanRate = 0 }},
		{"rate -1Gbps must be positive", func(w *Burst) { w.MeanRate = -olaf.Gbps }},
		{"rate 101Gbps is above the line rate 100Gbps", func(w *Burst) { w.MeanRate = 101 * olaf.Gbps }},
		{"lasts longer|it lasts", func(w *Burst) { w.MeanRate = 1 }},
		{"burst of 0", func(w *Burst) { w.BurstPackets = 0 }},
		{"unknown burst distribution", func(w *Burst) { w.BurstDist = "exp" }},
		{"unknown gap distribution", func(w *Burst) { w.GapDist = "" }},
		{"sigma NaN", func(w *Burst) { w.ClusterSigma = math.NaN() }},
		{"sigma -1", func(w *Burst) { w.ClusterSigma = -1 }},
		{"held for 0 bursts", func(w *Burst) { w.HoldBursts = 0 }},
		{"probability 1", func(w *Burst) { w.ClusterRunProb = 1 }},
		{"10 active clusters of 9", func(w *Burst) { w.ActiveClusters = 10 }},
	}
	for _, tt := range tests {
		w := table1(t)
		tt.spoil(&w)
		_, err := NewSchedule(w, 1)
		_, want, alternatives := strings.Cut(tt.want, "|")
		if !alternatives {
			want = tt.want
		}
		if !errors.Is(err, ErrWorkload) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// genBurst draws small workloads of every shape.
func genBurst(t *rapid.T) Burst {
	workers := rapid.IntRange(1, 40).Draw(t, "workers")
	clusters := rapid.IntRange(1, workers).Draw(t, "clusters")
	line := rapid.Int64Range(1e6, 128e9).Draw(t, "line")
	return Burst{
		Placement:        Placement{workers, clusters},
		UpdatesPerWorker: rapid.IntRange(1, 30).Draw(t, "updates"),
		Size:             olaf.FrameSize(rapid.IntRange(0, olaf.MaxLanes).Draw(t, "lanes")),
		LineRate:         olaf.Rate(line),
		MeanRate:         olaf.Rate(rapid.Int64Range(1e5, line).Draw(t, "mean")),
		BurstPackets:     rapid.IntRange(1, 50).Draw(t, "burst"),
		BurstDist:        rapid.SampledFrom([]string{Fixed, Geometric}).Draw(t, "dist"),
		GapDist:          rapid.SampledFrom([]string{Fixed, Exponential}).Draw(t, "gap"),
		ClusterSigma:     rapid.Float64Range(0, 10).Draw(t, "sigma"),
		HoldBursts:       rapid.IntRange(1, 5).Draw(t, "hold"),
		ClusterRunProb:   rapid.Float64Range(0, 0.99).Draw(t, "run"),
		ActiveClusters:   rapid.IntRange(0, clusters).Draw(t, "active"),
	}
}

// TestScheduleInvariants checks, for any shape, that every worker sends exactly its updates in sequence, that times
// never decrease, that the line rate is never exceeded, and that a second play gives the same schedule.
func TestScheduleInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genBurst(t)
		s, err := NewSchedule(w, 7)
		if err != nil {
			t.Fatal(err)
		}
		next := make([]uint32, w.Workers)
		all := make([]regmap.Descriptor, w.Total()+1)
		if n := s.Fill(all); n != w.Total() {
			t.Fatalf("%d descriptors of %d", n, w.Total())
		}
		all = all[:w.Total()]
		spacing := w.Size.Bits() * clockHz / int64(w.LineRate)
		for i, d := range all {
			if d.Sequence != next[d.Flow] {
				t.Fatalf("worker %d sends %d after %d", d.Flow, d.Sequence, next[d.Flow])
			}
			next[d.Flow]++
			if i > 0 && int64(d.Time-all[i-1].Time) < spacing {
				t.Fatalf("packet %d follows after %d cycles, the line takes %d", i, d.Time-all[i-1].Time, spacing)
			}
		}
		for k, n := range next {
			if int(n) != w.UpdatesPerWorker {
				t.Fatalf("worker %d sent %d of %d", k, n, w.UpdatesPerWorker)
			}
		}
		s.Reset(7)
		for i := range all {
			var d regmap.Descriptor
			if !s.Next(&d) || d != all[i] {
				t.Fatalf("after a reset packet %d is %+v, was %+v", i, d, all[i])
			}
		}
	})
}

// TestTimesAreExact checks that cycles are the floor of the exact time, which is computed here with rational numbers.
func TestTimesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genBurst(t)
		w.BurstDist, w.GapDist = Fixed, Fixed
		s, err := NewSchedule(w, 1)
		if err != nil {
			t.Fatal(err)
		}
		bits := big.NewRat(w.Size.Bits()*clockHz, 1)
		packet := new(big.Rat).Quo(bits, big.NewRat(int64(w.LineRate), 1))
		burst := new(big.Rat).Quo(bits, big.NewRat(int64(w.MeanRate), 1))
		burst.Mul(burst, big.NewRat(int64(w.BurstPackets), 1))
		for i := range w.Total() {
			exact := new(big.Rat).Mul(burst, big.NewRat(int64(i/w.BurstPackets), 1))
			exact.Add(exact, new(big.Rat).Mul(packet, big.NewRat(int64(i%w.BurstPackets), 1)))
			want := new(big.Int).Quo(exact.Num(), exact.Denom()).Uint64()
			var d regmap.Descriptor
			if s.Next(&d); d.Time != want {
				t.Fatalf("packet %d at cycle %d, want %d", i, d.Time, want)
			}
		}
	})
}

// TestBurstClock checks the clock alone, over gaps of every length and rates whose fractions often add up to whole
// cycles.
func TestBurstClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]int64{100e9, 128e9, 99_999_999_977, 1e6}).Draw(t, "line")
		mean := line / rapid.Int64Range(1, 9).Draw(t, "divisor")
		w := Burst{Size: 256, LineRate: olaf.Rate(line), MeanRate: olaf.Rate(mean), BurstPackets: rapid.IntRange(1, 9).Draw(t, "burst")}
		c := newBurstClock(&w)
		var m, p int64
		for n := range 30 {
			gap := rapid.SampledFrom([]float64{1, 0.5, 0.25, 2, 7, 100}).Draw(t, "gap")
			c.startBurst(gap)
			if n > 0 {
				m += int64(gap * float64(2048*w.BurstPackets))
				p -= int64(gap * float64(2048*w.BurstPackets))
			}
			for range rapid.IntRange(1, 20).Draw(t, "packets") {
				exact := big.NewRat(m, mean)
				exact.Add(exact, big.NewRat(p, line))
				exact.Mul(exact, big.NewRat(clockHz, 1))
				want := new(big.Int).Quo(exact.Num(), exact.Denom()).Uint64()
				if got := c.nextCycle(2048); got != want {
					t.Fatalf("cycle %d, want %d = floor %v", got, want, exact)
				}
				p += 2048
			}
		}
	})
}

func TestTable1Bursts(t *testing.T) {
	all := play(t, table1(t), 1)
	for i, d := range all {
		n, k := uint64(i/135), uint64(i%135)
		// A burst every 135·2048 bit at 60G = 1152 cycles; packets 20.48 ns = 5.12 cycles apart.
		if want := n*1152 + k*512/100; d.Time != want {
			t.Fatalf("packet %d at cycle %d, want %d", i, d.Time, want)
		}
	}
}

func TestMeanRate(t *testing.T) {
	tests := []struct {
		name  string
		shape func(*Burst)
		slack float64
	}{
		{"bursts", func(*Burst) {}, 0.01},
		{"smooth", func(w *Burst) { w.BurstPackets = 1 }, 0.01},
		{"at the line", func(w *Burst) { w.MeanRate = w.LineRate }, 0.01},
		{"geometric", func(w *Burst) { w.BurstDist, w.UpdatesPerWorker = Geometric, 50_000 }, 0.01},
		{"exponential", func(w *Burst) { w.GapDist, w.UpdatesPerWorker = Exponential, 50_000 }, 0.01},
		{"exponential and smooth", func(w *Burst) { w.GapDist, w.BurstPackets = Exponential, 1 }, 0.01},
		{"crooked", func(w *Burst) { w.MeanRate, w.LineRate = 33_333_333_333, 99_999_999_977 }, 0.01},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := table1(t)
			tt.shape(&w)
			all := play(t, w, 3)
			seconds := float64(all[len(all)-1].Time) / float64(clockHz)
			got := float64(len(all)) * float64(w.Size.Bits()) / seconds
			if off := got/float64(w.MeanRate) - 1; math.Abs(off) > tt.slack {
				t.Errorf("mean rate %.4g is off by %+.2f %%", got, 100*off)
			}
		})
	}
}

// TestClusterWeights checks that the number of packets per cluster in a burst varies as the clusters' weights do, and
// stays the same while the weights are held.
func TestClusterWeights(t *testing.T) {
	shares := func(w Burst, bursts int) [][]float64 {
		all := play(t, w, 5)
		out := make([][]float64, bursts)
		for b := range out {
			out[b] = make([]float64, w.Clusters)
			for _, d := range all[b*w.BurstPackets : (b+1)*w.BurstPackets] {
				out[b][w.Cluster(int(d.Flow))] += 1 / float64(w.BurstPackets)
			}
		}
		return out
	}
	w := table1(t)
	w.UpdatesPerWorker, w.BurstPackets = 100_000, 10_000 // long bursts, far from any worker's last update, show the weights
	got := shares(w, 60)
	distance := func(a, b []float64) (d float64) {
		for i := range a {
			d += math.Abs(a[i] - b[i])
		}
		return d
	}
	for b := 0; b < 60; b++ {
		for next := b - b%3; next < b; next++ {
			if d := distance(got[next], got[b]); d > 0.1 {
				t.Errorf("bursts %d and %d share weights but differ by %.2f", next, b, d)
			}
		}
		if b%3 == 0 && b > 0 && distance(got[b-1], got[b]) < 0.1 {
			t.Errorf("burst %d did not draw weights anew", b)
		}
	}
	// The variance of a log-normal weight's logarithm is sigma squared; within one burst the common factor cancels out.
	var sum, n float64
	for b := 0; b < 60; b += 3 {
		var mean float64
		for _, x := range got[b] {
			mean += math.Log(x) / 9
		}
		for _, x := range got[b] {
			sum += (math.Log(x) - mean) * (math.Log(x) - mean)
		}
		n += 8
	}
	if sigma := math.Sqrt(sum / n); math.Abs(sigma-1) > 0.15 {
		t.Errorf("log weights have sigma %.3f, want 1", sigma)
	}
	w.ClusterSigma = 0
	for _, x := range shares(w, 1)[0] {
		if math.Abs(x-1.0/9) > 0.02 {
			t.Errorf("equal clusters: share %.3f", x)
		}
	}
}

func TestActiveClustersAndRuns(t *testing.T) {
	w := table1(t)
	w.Workers, w.Clusters, w.ActiveClusters, w.BurstPackets = 300, 100, 20, 100
	all := play(t, w, 1)
	took := map[olaf.ClusterID]bool{}
	for _, d := range all[:100*100] {
		took[w.Cluster(int(d.Flow))] = true
	}
	if len(took) != 100 { // one is left out of 100 bursts with probability 0.8^100
		t.Errorf("%d of 100 clusters took part in 100 bursts", len(took))
	}
	for b := range 500 { // well before clusters run out
		seen := map[olaf.ClusterID]bool{}
		for _, d := range all[b*100 : (b+1)*100] {
			seen[w.Cluster(int(d.Flow))] = true
		}
		if len(seen) > 20 {
			t.Fatalf("burst %d has %d clusters", b, len(seen))
		}
	}
	w = table1(t)
	w.ClusterSigma, w.ClusterRunProb, w.UpdatesPerWorker = 0, 0.6, 5000
	same, pairs := 0, 0
	all = play(t, w, 1)[:100_000]
	for i := range all {
		if i%w.BurstPackets == 0 {
			continue
		}
		pairs++
		if w.Cluster(int(all[i].Flow)) == w.Cluster(int(all[i-1].Flow)) {
			same++
		}
	}
	if got, want := float64(same)/float64(pairs), 0.6+0.4/9; math.Abs(got-want) > 0.01 {
		t.Errorf("neighbours share a cluster with frequency %.3f, want %.3f", got, want)
	}
}

func TestRewards(t *testing.T) {
	w := table1(t)
	all := play(t, w, 1)
	var sum, square float64
	for _, d := range all {
		x := float64(d.Reward) / 256
		sum += x
		square += x * x
	}
	n := float64(len(all))
	if mean, variance := sum/n, square/n; math.Abs(mean) > 0.03 || math.Abs(variance-1) > 0.05 {
		t.Errorf("rewards have mean %.3f and variance %.3f", mean, variance)
	}
	w.ClusterSigma = 0
	for i, d := range play(t, w, 1) {
		if d.Reward != all[i].Reward {
			t.Fatal("another traffic shape changed the rewards")
		}
	}
}

// TestScheduleIsPinned checks that the stream for one seed is unchanged, because results for a seed are part of the
// product.
func TestScheduleIsPinned(t *testing.T) {
	h := fnv.New64a()
	words := make([]uint32, regmap.DescriptorWords)
	for _, d := range play(t, table1(t), 1) {
		d.Put(words)
		fmt.Fprint(h, words)
	}
	if got, want := fmt.Sprintf("%016x", h.Sum64()), "ee9a2b347b1766e6"; got != want {
		t.Errorf("the default schedule hashes to %s, was %s", got, want)
	}
	if cmp.Equal(play(t, table1(t), 1), play(t, table1(t), 2)) {
		t.Error("the seed changes nothing")
	}
}

func TestPlacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 65536).Draw(t, "workers")
		p := Placement{workers, rapid.IntRange(1, workers).Draw(t, "clusters")}
		c := rapid.IntRange(0, p.Clusters-1).Draw(t, "cluster")
		first, end := p.Members(c)
		if n := end - first; n != p.Workers/p.Clusters && n != p.Workers/p.Clusters+1 {
			t.Fatalf("cluster %d has %d of %d workers", c, n, p.Workers)
		}
		if int(p.Cluster(first)) != c || int(p.Cluster(end-1)) != c {
			t.Fatalf("members %d to %d of %d are in %d and %d", first, end-1, c, p.Cluster(first), p.Cluster(end-1))
		}
		if c+1 < p.Clusters {
			if next, _ := p.Members(c + 1); next != end {
				t.Fatalf("cluster %d ends at %d, the next starts at %d", c, end, next)
			}
		} else if end != p.Workers {
			t.Fatalf("the last cluster ends at %d of %d", end, p.Workers)
		}
	})
}

func TestFenwick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 9), 1, 40).Draw(t, "weights")
		var f fenwick
		f.build(weights)
		for i := range weights {
			if rapid.Bool().Draw(t, "remove") {
				f.remove(i, weights[i])
				weights[i] = 0
			}
		}
		x := uint64(0)
		for i, w := range weights {
			for range w {
				if got := f.find(x); got != i {
					t.Fatalf("%d of %v is at %d, want %d", x, weights, got, i)
				}
				x++
			}
		}
		if x != f.total {
			t.Fatalf("total %d, want %d", f.total, x)
		}
	})
}

func BenchmarkSchedule(b *testing.B) {
	for _, size := range []Placement{{27, 9}, {300, 100}, {65536, 10_000}} {
		b.Run(fmt.Sprintf("workers=%d/clusters=%d", size.Workers, size.Clusters), func(b *testing.B) {
			w := table1(b)
			w.Placement = size
			s, err := NewSchedule(w, 1)
			if err != nil {
				b.Fatal(err)
			}
			var d regmap.Descriptor
			b.ReportAllocs()
			for b.Loop() {
				if !s.Next(&d) {
					s.Reset(1)
				}
			}
		})
	}
}

// TestBurstRate checks the rate inside bursts of either kind for arrivals that are 10 µs apart there, for any gaps, and
// that there is no such rate without bursts.
func TestBurstRate(t *testing.T) {
	for _, c := range []struct {
		dist  string
		burst int
		want  float64
	}{{Fixed, 27, 2048 / 10e-6}, {Geometric, 9, 2048 / 10e-6}, {Fixed, 1, 0}} {
		w := table1(t)
		w.UpdatesPerWorker, w.BurstPackets, w.BurstDist, w.MeanRate = 20, c.burst, c.dist, 8*olaf.Mbps
		schedule, err := NewSchedule(w, 3)
		if err != nil {
			t.Fatal(err)
		}
		var arrivals []olaf.Time
		var d, last regmap.Descriptor
		at := olaf.Time(0)
		for schedule.Next(&d) {
			if d.Time-last.Time > 100 { // 400 ns
				at += olaf.Time(33 * olaf.Millisecond)
			} else {
				at += olaf.Time(10 * olaf.Microsecond)
			}
			arrivals = append(arrivals, at)
			last = d
		}
		schedule.Reset(3)
		if got := schedule.BurstRate(len(arrivals), func(i int) (olaf.Time, olaf.Size) { return arrivals[i], w.Size }); math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
