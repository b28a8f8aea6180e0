package rl

import (
	"context"
	"errors"
	"hash/fnv"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
)

// small returns a training configuration that takes a fraction of a second.
func small() Config {
	c := Defaults()
	c.Placement = pktgen.Placement{Workers: 6, Clusters: 1}
	c.Iterations = 4
	c.PPO.Steps, c.PPO.Epochs = 100, 2
	return c
}

// rows collects the generated updates and checks each gradient against its digest.
type rows struct {
	t   testing.TB
	all []trace.Update
}

func (r *rows) OnUpdate(u *trace.Update, g *Weights) error {
	if d := trace.GradientDigest(g[:]); d != u.Digest {
		r.t.Errorf("update %d has digest %x, its gradient %x", len(r.all), u.Digest, d)
	}
	r.all = append(r.all, *u)
	return nil
}

func run(t testing.TB, c Config) (*Outcome, []trace.Update) {
	t.Helper()
	r := &rows{t: t}
	out, err := Train(context.Background(), c, r)
	if err != nil {
		t.Fatal(err)
	}
	return out, r.all
}

func digest(out *Outcome, all []trace.Update) uint64 {
	h := fnv.New64a()
	for i := range out.Weights {
		d := trace.GradientDigest(out.Weights[i][:])
		h.Write([]byte{byte(d), byte(d >> 16), byte(d >> 32), byte(d >> 48)})
	}
	for _, u := range all {
		for _, v := range []uint64{uint64(u.GenNS), u.Digest, uint64(u.Worker), u.BaseVersion} {
			h.Write([]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), byte(v >> 40)})
		}
	}
	return h.Sum64()
}

// configurations returns the kinds of training that must each be deterministic and complete.
func configurations() map[string]Config {
	through := func(kind string, set func(*Config)) Config {
		c := small()
		c.Clusters = 3
		c.Network.Kind, c.Network.Slots, c.Network.OutRate = kind, 2, 20*olaf.Gbps
		set(&c)
		return c
	}
	periodic, sync, literal, band := small(), small(), small(), small()
	periodic.Mode, periodic.Threshold = Periodic, 3
	sync.Mode = Sync
	literal.Gradient, literal.Gate = Literal, MaxGate
	band.Gate = BandGate
	return map[string]Config{
		"async": small(), "periodic": periodic, "sync": sync, "literal": literal, "band": band,
		"fifo": through("fifo", func(*Config) {}), "olaf": through("olaf", func(c *Config) { c.WeighByCount = true }),
	}
}

func TestSameSeedSameBytesOnAnyNumberOfProcessors(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for name, c := range configurations() {
		t.Run(name, func(t *testing.T) {
			var first uint64
			for i, processors := range []int{1, 2} {
				before := runtime.GOMAXPROCS(processors)
				out, all := run(t, c)
				runtime.GOMAXPROCS(before)
				d := digest(out, all)
				if i == 0 {
					first = d
				} else if d != first {
					t.Errorf("digest %x on one processor and %x on two", first, d)
				}
				for w, curve := range out.Curves {
					if len(curve) != c.Iterations {
						t.Errorf("worker %d made %d of %d iterations", w, len(curve), c.Iterations)
					}
				}
			}
		})
	}
}

func TestEveryUpdateIsAccountedFor(t *testing.T) {
	for _, kind := range engine.DisciplineNames() {
		c := configurations()["olaf"]
		c.Network.Kind = kind
		out, all := run(t, c)
		n := out.Network
		if n.In() != uint64(len(all)) {
			t.Errorf("%s: %d updates generated, %d arrived", kind, len(all), n.In())
		}
		if n.Class[engine.Appended] != n.Released {
			t.Errorf("%s: %d appended, %d left", kind, n.Class[engine.Appended], n.Released)
		}
		var received, inside uint64
		for _, s := range out.Servers {
			received += s.Received
			inside += s.Inside
		}
		if received != n.Released || inside != n.SumReleased {
			t.Errorf("%s: servers got %d frames with %d updates, the queue sent %d with %d", kind, received, inside, n.Released,
				n.SumReleased)
		}
		if n.In() == n.Class[engine.Appended] {
			t.Errorf("%s: the bottleneck never bit", kind)
		}
	}
}

// TestRewardFilterDecidesByReward checks that the reward filter replaces and drops by reward, less with a looser
// threshold, that every update still has one end, and that a threshold beyond all rewards trains like no filter.
func TestRewardFilterDecidesByReward(t *testing.T) {
	through := func(filter bool, threshold float64) *Outcome {
		c := configurations()["olaf"]
		c.Network.RewardFilter, c.Network.RewardThreshold = filter, threshold
		out, all := run(t, c)
		n := &out.Network
		if n.In() != uint64(len(all)) || n.SumReleased != n.SumAccepted-n.SumDiscarded {
			t.Errorf("threshold %v: of %d updates %d arrived, %d left, %d of %d accepted were discarded", threshold, len(all), n.In(),
				n.SumReleased, n.SumDiscarded, n.SumAccepted)
		}
		return out
	}
	byReward := func(o *Outcome) uint64 {
		return o.Network.Class[engine.ReplacedReward] + o.Network.Class[engine.DroppedReward]
	}
	tight, loose, off := through(true, 0), through(true, 1e6), through(false, 0)
	if byReward(tight) == 0 || byReward(loose) != 0 {
		t.Errorf("%d decisions by reward with threshold 0, want some; %d with a threshold beyond all rewards, want none",
			byReward(tight), byReward(loose))
	}
	if !reflect.DeepEqual(loose, off) {
		t.Error("a threshold beyond all rewards changes the training")
	}
}

// TestFirstStartUsesFastestWorker checks that with the first start a model begins from its fastest worker's own
// weights, whatever the others drew.
func TestFirstStartUsesFastestWorker(t *testing.T) {
	c := small()
	c.Workers, c.Clusters = 6, 3
	common := *c.Initial(1)
	c.Start = CommonStart
	if *c.Initial(1) != common {
		t.Error("the common start is not the default")
	}
	c.Start = FirstStart
	first := *c.Initial(1)
	c.Workers, c.Clusters = 2, 1
	if first == common || first == *c.Initial(0) {
		t.Error("clusters whose fastest workers differ begin from the same weights")
	}
	c.Workers = 6
	if alone := *c.Initial(0); alone != *func() *Weights { c.Clusters = 6; return c.Initial(0) }() {
		t.Error("slower workers of a cluster change its start")
	}
}

// TestAgesFollowFromCurves checks that the curves of a training run and its network determine its ages, because nothing
// else decides when an update leaves. The age of an update that finds the link idle begins at its transmission time;
// behind a slower link, all ages grow.
func TestAgesFollowFromCurves(t *testing.T) {
	c := configurations()["olaf"]
	c.Workers, c.Clusters = 1, 1
	c.Network.OutRate, c.Network.Profile = 10*olaf.Gbps, engine.Ideal
	wire := float64(olaf.FrameSize(Params).Bits()) / 10 // ns
	curves := [][]Point{{{AtNS: 0}, {AtNS: 100_000}, {AtNS: 200_000}}}
	// The first arrival starts the sawtooth; until the last update was sent it falls once.
	first, second, end := wire, 100_000+wire, 200_000.
	want := ((second*second-first*first)/2 + ((end-100_000)*(end-100_000)-wire*wire)/2) / (end - first)
	got, err := MeanAge(&c, curves)
	if err != nil || math.Abs(got-want) > 2 {
		t.Errorf("a mean age of %v ns, error %v; want %v", got, err, want)
	}
	c = configurations()["olaf"]
	out, _ := run(t, c)
	fast, _ := MeanAge(&c, out.Curves)
	c.Network.OutRate /= 4
	if slow, err := MeanAge(&c, out.Curves); err != nil || !(slow > fast) {
		t.Errorf("the same updates have an age of %v at a quarter of the rate, %v before; error %v", slow, fast, err)
	}
	c.Control = &tc.Control{Threshold: olaf.Second}
	if _, err := MeanAge(&c, out.Curves); !errors.Is(err, ErrConfig) {
		t.Errorf("with transmission control: error %v", err)
	}
}

// TestControlWithholdsUpdates checks that workers withhold updates while more clusters are active than the queue has
// slots, and that training without control is unchanged.
func TestControlWithholdsUpdates(t *testing.T) {
	through := func(control *tc.Control) *Outcome {
		c := configurations()["olaf"]
		c.Control = control
		out, all := run(t, c)
		if out.Network.In()+out.Withheld != uint64(len(all)) {
			t.Errorf("of %d updates %d were sent and %d withheld", len(all), out.Network.In(), out.Withheld)
		}
		return out
	}
	if out := through(&tc.Control{Threshold: olaf.Second}); out.Withheld == 0 {
		t.Error("three clusters behind two slots withheld nothing")
	}
	if off := through(nil); !reflect.DeepEqual(off, through(&tc.Control{Law: tc.NoLaw})) {
		t.Error("the law none trains otherwise than no control")
	}
}

// TestPackets checks that an update in several packets is worth as much as in one if nothing is lost, and that no place
// in an update starves if a queue is full.
func TestPackets(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const full = 60 * olaf.Gbps
	through := func(kind string, rate olaf.Rate, lanes int) *Outcome {
		c := configurations()[kind]
		c.Iterations = 6
		c.Network.Rate, c.Network.Lanes = rate, lanes
		trained, _ := run(t, c)
		return trained
	}
	whole, cut := through("fifo", olaf.Mbps, 0), through("fifo", olaf.Mbps, 552)
	if !reflect.DeepEqual(whole.Weights, cut.Weights) || cut.Network.In() != 4*whole.Network.In() {
		t.Errorf("%d packets of %d updates, or other weights", cut.Network.In(), whole.Network.In())
	}
	if one := through("olaf", full, Params); !reflect.DeepEqual(one.Weights, through("olaf", full, 0).Weights) {
		t.Error("an update in one packet is another one than in one frame")
	}
	for _, kind := range engine.DisciplineNames() {
		out := through(kind, full, 552)
		sent, least, most := uint64(6*6), slices.Min(out.Places), slices.Max(out.Places)
		if len(out.Places) != 4 || most > sent || 2*least < most || kind == "fifo" && most == sent {
			t.Errorf("%s: of %d updates arrived, by place, %d", kind, sent, out.Places)
		}
	}
}

func TestRowsMakeAValidTrace(t *testing.T) {
	c := small()
	_, all := run(t, c)
	w, err := trace.NewWriter(discard{}, trace.Header{Clock: trace.Virtual, Workers: c.Workers, Clusters: c.Clusters,
		Lanes: Params})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if err := w.Write(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) != c.Workers*c.Iterations {
		t.Errorf("%d updates, want %d", len(all), c.Workers*c.Iterations)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func TestVersionsOfEveryMode(t *testing.T) {
	for name, want := range map[string]uint64{"async": 24, "periodic": 8, "sync": 4} {
		out, _ := run(t, configurations()[name])
		if got := out.Servers[0].Versions; got != want {
			t.Errorf("%s: %d versions of the weights from 24 updates, want %d", name, got, want)
		}
	}
}

func TestSlowWorkersAreSlower(t *testing.T) {
	c := small()
	c.Spread, c.StepsSpread = 4, 0
	out, _ := run(t, c)
	fast, slow := out.Curves[0][c.Iterations-1].AtNS, out.Curves[c.Workers-1][c.Iterations-1].AtNS
	if ratio := float64(slow) / float64(fast); ratio < 2 || ratio > 8 {
		t.Errorf("the slowest took %.1f times as long as the fastest, want about 4", ratio)
	}
}

func TestUntilEndsInVirtualTime(t *testing.T) {
	c := small()
	whole, _ := run(t, c)
	c.Until = olaf.Duration(whole.EndNS / 2 * int64(olaf.Nanosecond))
	out, all := run(t, c)
	if len(all) == 0 || len(all) >= c.Workers*c.Iterations || out.EndNS > whole.EndNS/2 {
		t.Errorf("%d updates until %d of %d ns", len(all), out.EndNS, whole.EndNS)
	}
}

func TestGates(t *testing.T) {
	rewards := []float64{-100, -50, -60, -20, -90}
	for gate, want := range map[string][]bool{
		NoGate:   {true, true, true, true, true},
		MaxGate:  {true, true, false, true, false},
		EMAGate:  {true, true, true, true, false},
		BandGate: {true, true, true, true, true},
	} {
		c := Defaults()
		c.Gate = gate
		s := newServer(&c, c.Initial(0)[:], 8)
		for i, r := range rewards {
			if got := s.pass(r); got != want[i] {
				t.Errorf("%s: reward %v passed: %v", gate, r, got)
			}
		}
	}
	c := Defaults()
	c.Gate = EMAGate
	s := newServer(&c, c.Initial(0)[:], 8)
	s.pass(0)
	if s.pass(-30) {
		t.Error("ema: a reward below the running mean passed")
	}
	c.Gate = BandGate
	if !s.pass(-30) || s.pass(-80) {
		t.Error("band: the band of 50 below the running mean is not respected")
	}
}

func TestServerFollowsTheFormula(t *testing.T) {
	c := Defaults()
	g := func(v float32) []float32 {
		w := make([]float32, Params)
		w[0] = v
		return w
	}
	s := newServer(&c, make([]float32, Params), 8)
	s.receive(g(100), 0, 1)
	s.receive(g(200), 0, 1)
	// g_a is 100, then (100+200)/2; w is γ·100, then γ·250.
	if got := s.weights[0]; got < 0.2499 || got > 0.2501 {
		t.Errorf("w = %v, want 0.25", got)
	}
	c.WeighByCount, c.Average = true, false
	s = newServer(&c, make([]float32, Params), 8)
	s.receive(g(100), 0, 3)
	if got := s.weights[0]; got < 0.2999 || got > 0.3001 {
		t.Errorf("weighted by count: w = %v, want 0.3", got)
	}
	c.Mode, c.Threshold = Periodic, 2
	s = newServer(&c, make([]float32, Params), 8)
	if s.receive(g(100), 0, 1) || !s.receive(g(300), 0, 1) {
		t.Error("periodic: the second of two updates completes the step, the first does not")
	}
	if got := s.weights[0]; got < 0.1999 || got > 0.2001 {
		t.Errorf("periodic: w = %v, want the mean's 0.2", got)
	}
}

func TestInterruptReturnsFinishedPart(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &stopper{after: 10, stop: cancel}
	out, err := Train(ctx, small(), r)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	points := 0
	for _, curve := range out.Curves {
		points += len(curve)
	}
	if points != 10 || r.seen != 10 {
		t.Errorf("%d points and %d updates, want 10", points, r.seen)
	}
}

type stopper struct {
	seen, after int
	stop        func()
}

func (s *stopper) OnUpdate(*trace.Update, *Weights) error {
	if s.seen++; s.seen == s.after {
		s.stop()
	}
	return nil
}

func TestBadTrainingsAreRefused(t *testing.T) {
	for _, c := range []struct {
		set func(*Config)
		say string
	}{
		{func(c *Config) { c.Mode = "lazy" }, `unknown mode "lazy"; there are async, periodic, sync`},
		{func(c *Config) { c.Gate = "open" }, "unknown gate"},
		{func(c *Config) { c.Network.Kind = "carrier pigeon" }, "unknown network"},
		{func(c *Config) { c.Workers = 0 }, "0 workers"},
		{func(c *Config) { c.Clusters = 9 }, "9 clusters for 8 workers"},
		{func(c *Config) { c.Network.Frame = 1500 }, "has 12 units a layer"},
		{func(c *Config) { c.Network.Frame = 20000 }, "9036B"},
		{func(c *Config) { c.Network.Kind = "fifo"; c.Network.Rate = 200 * olaf.Gbps }, "the link carries up to 128Gbps"},
		{func(c *Config) { c.Network.Kind = "olaf"; c.Mode = Sync }, "only async"},
		{func(c *Config) { c.Network.Kind = "olaf"; c.Network.Slots = 0 }, "slots"},
		{func(c *Config) { c.PPO.LearnRate = -1 }, "learn rate"},
		{func(c *Config) { c.Cost.StepNS = math.MaxInt64 }, "takes the slowest worker"},
		{func(c *Config) { c.PPO.Steps = 1 << 40 }, "at most 1e+06 s are told"},
		{func(c *Config) { c.Network.Lanes = 2206 }, "packets of 2206 values; an update has 2205"},
		{func(c *Config) { c.Network.Lanes, c.Network.Frame = 552, 9036 }, "in one frame or in several packets"},
		{func(c *Config) { c.Start = "late" }, `unknown start "late"`},
		{func(c *Config) { c.Control = &tc.Control{Threshold: 1} }, "transmission control through network ideal"},
		{func(c *Config) { c.Network.Kind, c.Control = "olaf", &tc.Control{Law: tc.FullLaw} }, "its threshold is 0ps"},
		{func(c *Config) { c.Network.Kind, c.Control = "olaf", &tc.Control{Law: "psychic", Threshold: 1} }, `its law "psychic" is not one of`},
		{func(c *Config) { c.Network.RewardFilter = true }, "network ideal has no reward filter, unlike olaf"},
		{func(c *Config) { c.Network.Kind, c.Network.RewardFilter = "fifo", true }, "network fifo has no reward filter"},
		{func(c *Config) { c.Network.Kind, c.Network.RewardThreshold = "olaf", 5 }, "does nothing without the reward filter"},
		{func(c *Config) {
			c.Network.Kind, c.Network.RewardFilter, c.Network.RewardThreshold = "olaf", true, math.NaN()
		}, "reward threshold NaN; use 0 to"},
		{func(c *Config) {
			c.Network.Kind, c.Network.RewardFilter, c.Network.RewardThreshold = "olaf", true, -1
		}, "reward threshold -1; use 0 to"},
	} {
		config := Defaults()
		c.set(&config)
		if _, err := Train(context.Background(), config, nil); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("error %v, want %q", err, c.say)
		}
	}
}

// TestEightWorkersLearn checks that training ends far from landing but clearly away from where it began; it takes a few
// seconds of CPU.
func TestEightWorkersLearn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	c := Defaults()
	c.Iterations = 30
	c.PPO.LearnRate = 3e-4
	out, _ := run(t, c)
	blocks := Blocks(out.Curves, 10)
	t.Logf("reward by ten iterations: %.0f", blocks)
	if blocks[2] < blocks[0]+20 {
		t.Errorf("reward went from %.0f to %.0f", blocks[0], blocks[2])
	}
}

func BenchmarkTrainSmall(b *testing.B) {
	for b.Loop() {
		if _, err := Train(context.Background(), small(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDivergedTrainingIsInvalid checks that the error names the worker if training uses a step that no float32 weight
// survives.
func TestDivergedTrainingIsInvalid(t *testing.T) {
	c := small()
	c.StepSize, c.PPO.LearnRate = 1e38, 1e30
	_, err := Train(context.Background(), c, nil)
	if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "no numbers from iteration") {
		t.Errorf("got %v, want an error that names the worker and the iteration", err)
	}
}

// TestGrownWeightsAreDiverged checks with learning rates that leave finite weights that the weights of a training that
// learns pass, and that weights far beyond their start are counted as diverged.
func TestGrownWeightsAreDiverged(t *testing.T) {
	for _, rate := range []float32{3e-4, 3e-3, 1, 10, 1e3} {
		c := small()
		c.PPO.LearnRate, c.Iterations = rate, 3
		out, err := Train(context.Background(), c, nil)
		diverged := rate >= 1
		switch {
		case errors.Is(err, ErrDiverged) != diverged || (out.Diverged > 0) != diverged:
			t.Errorf("learn rate %g: %d clusters diverged: %v", rate, out.Diverged, err)
		case diverged && !strings.Contains(err.Error(), "times that of its start, more than 10; use a smaller learn rate"):
			t.Errorf("learn rate %g: %v", rate, err)
		}
	}
	c := small()
	within, beyond := *c.Initial(0), *c.Initial(0)
	for i := range within {
		within[i] *= 0.99 * maxGrowth
		beyond[i] *= 1.01 * maxGrowth
	}
	if err := c.CheckWeights(0, &within); err != nil {
		t.Errorf("just within the limit: %v", err)
	}
	if err := c.CheckWeights(0, &beyond); !errors.Is(err, ErrDiverged) {
		t.Errorf("just beyond the limit: %v", err)
	}
}

// TestInfiniteRatesAreRefused checks that infinite values for the learner's positive numbers are rejected.
func TestInfiniteRatesAreRefused(t *testing.T) {
	for name, set := range map[string]func(*Config){
		"learn rate":   func(c *Config) { c.PPO.LearnRate = float32(math.Inf(1)) },
		"clip":         func(c *Config) { c.PPO.Clip = float32(math.Inf(1)) },
		"max norm":     func(c *Config) { c.PPO.MaxNorm = float32(math.Inf(1)) },
		"reward scale": func(c *Config) { c.PPO.RewardScale = float32(math.Inf(1)) },
		"step size":    func(c *Config) { c.StepSize = float32(math.Inf(1)) },
	} {
		c := small()
		set(&c)
		if err := c.Check(); !errors.Is(err, ErrConfig) {
			t.Errorf("an infinite %s: got %v, want it refused", name, err)
		}
	}
}
