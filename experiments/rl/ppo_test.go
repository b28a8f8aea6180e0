package rl

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/olafctl/olaf"
)

func TestNetworkFitsOneFrame(t *testing.T) {
	if Params != 2205 || paramsOf(Hidden) != Params {
		t.Errorf("%d parameters, ParamsOf says %d, want 2205", Params, paramsOf(Hidden))
	}
	if got := widestFor(olaf.MaxLanes); got != Hidden {
		t.Errorf("the widest network for %d lanes has %d units a layer, want %d", olaf.MaxLanes, got, Hidden)
	}
	if got := widestFor(3); got != 0 {
		t.Errorf("WidestFor(3) = %d, want 0", got)
	}
}

func TestElementaryFunctions(t *testing.T) {
	for x := -8.0; x <= 8; x += 0.01 {
		if d := math.Abs(float64(tanh(float32(x))) - math.Tanh(x)); d > 2e-4 {
			t.Fatalf("tanh(%v) is off by %g", x, d)
		}
		if d := math.Abs(exp(x)/math.Exp(x) - 1); d > 1e-7 {
			t.Fatalf("exp(%v) is off by %g", x, d)
		}
	}
	if exp(-1000) != 0 || math.IsInf(exp(1000), 0) {
		t.Error("exp does not hold at its ends")
	}
}

// objective computes the quantity whose gradient backward computes, directly from its definition.
func objective(w *Weights, in *Observation, s *sample, advantage float64, c *LearnerConfig) float64 {
	var p pass
	l := w.layers()
	p.forward(&l, in)
	ratio := math.Exp(float64(p.logProb[s.action] - s.logProb))
	clipped := min(max(ratio, 1-float64(c.Clip)), 1+float64(c.Clip))
	var entropy float64
	for i, v := range p.prob {
		entropy -= float64(v) * float64(p.logProb[i])
	}
	miss := float64(s.target - p.value)
	return min(ratio*advantage, clipped*advantage) + float64(c.Entropy)*entropy - float64(c.ValueWeight)*miss*miss/2
}

func TestGradientAgreesWithDifferences(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	w := Initial(random)
	for i := range w {
		w[i] += float32(random.NormFloat64() * 0.05) // a policy that is not flat
	}
	c := learnerDefaults()
	c.Entropy = 0.1
	for trial := range 4 {
		var in Observation
		for i := range in {
			in[i] = float32(random.NormFloat64())
		}
		var p pass
		l := w.layers()
		p.forward(&l, &in)
		action := uint8(trial)
		s := sample{action: action, logProb: p.logProb[action] - 0.05, target: 0.7}
		advantage := float32(1 - 2*(trial%2))
		var g Weights
		gl := g.layers()
		p.backward(&l, &gl, &s, advantage, 1, &c)
		for _, i := range []int{0, 7, 319, 330, 360, 900, 1959, 1965, 2000, 2100, 2199, 2200, 2204} {
			const h = 1e-2
			up, down := *w, *w
			up[i] += h
			down[i] -= h
			slope := (objective(&up, &in, &s, float64(advantage), &c) - objective(&down, &in, &s, float64(advantage), &c)) / (2 * h)
			if math.Abs(slope-float64(g[i])) > 2e-3+0.02*math.Abs(slope) {
				t.Errorf("trial %d, weight %d: gradient %.5f, difference quotient %.5f", trial, i, g[i], slope)
			}
		}
	}
}

func TestClippedSampleDoesNotPush(t *testing.T) {
	w := Initial(rand.New(rand.NewPCG(1, 2)))
	c := learnerDefaults()
	c.Entropy, c.ValueWeight = 0, 0
	var p pass
	l := w.layers()
	p.forward(&l, &Observation{1, 1})
	var g Weights
	gl := g.layers()
	p.backward(&l, &gl, &sample{action: 1, logProb: p.logProb[1] - 1}, 1, 1, &c)
	if gradientNorm(&g) != 0 {
		t.Errorf("a sample beyond the clip moved the weights by %g", gradientNorm(&g))
	}
}

func TestTruncatedEpisodeBootstraps(t *testing.T) {
	c := learnerDefaults()
	l, err := newLearner(c, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.samples = make([]sample, 1)
	l.rewards, l.values = []float32{1}, []float32{2}
	l.advantages(0, 10)
	if got, want := l.samples[0].target, 1+c.Gamma*10; math.Abs(float64(got-want)) > 1e-5 {
		t.Errorf("value target %v, want %v", got, want)
	}
}

// TestLearnerImproves checks that a single worker learns quickly: after 40 iterations it is far from landing but well
// away from where it began.
func TestLearnerImproves(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	c := learnerDefaults()
	c.LearnRate = 1e-3
	l, err := newLearner(c, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := *Initial(rand.New(rand.NewPCG(1, 0)))
	var early, late float64
	const iterations, block = 60, 10
	for i := range iterations {
		it := l.Improve(&w)
		w = l.local
		if i < block {
			early += it.Reward / block
		}
		if i >= iterations-block {
			late += it.Reward / block
		}
	}
	t.Logf("reward %.0f, then %.0f", early, late)
	if late < early+60 {
		t.Errorf("reward went from %.0f to %.0f in %d iterations", early, late, iterations)
	}
}

func TestBadHyperParametersAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*LearnerConfig){
		"steps":      func(c *LearnerConfig) { c.Steps = 0 },
		"minibatch":  func(c *LearnerConfig) { c.Minibatch = 1 },
		"learn rate": func(c *LearnerConfig) { c.LearnRate = float32(math.NaN()) },
		"gamma":      func(c *LearnerConfig) { c.Gamma = 1.5 },
	} {
		c := learnerDefaults()
		spoil(&c)
		if _, err := newLearner(c, 1, 0); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkGradientSample(b *testing.B) {
	l, _ := newLearner(learnerDefaults(), 1, 0)
	var g Weights
	l.Gradient(Initial(rand.New(rand.NewPCG(1, 0))), &g)
	ws, gl := l.local.layers(), l.grad.layers()
	batch := l.order[:64]
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(batch) {
		l.gradient(&ws, &gl, batch)
	}
}

func BenchmarkForward(b *testing.B) {
	w := Initial(rand.New(rand.NewPCG(1, 0)))
	l := w.layers()
	var p pass
	b.ReportAllocs()
	for b.Loop() {
		p.forward(&l, &Observation{0.1, 0.2, 0.3, 0.4})
	}
}

// BenchmarkRolloutStep measures one step of the environment with inference and sampling.
func BenchmarkRolloutStep(b *testing.B) {
	c := learnerDefaults()
	c.Steps = 1
	l, _ := newLearner(c, 1, 0)
	l.local = *Initial(rand.New(rand.NewPCG(1, 0)))
	b.ReportAllocs()
	for n := 0; n < b.N; {
		n += l.collect().Steps
	}
}
