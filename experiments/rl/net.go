package rl

import (
	"math"
	"math/rand/v2"
)

const (
	// Hidden is the width of both hidden layers. It is the largest width whose weights fit into one frame.
	Hidden  = 40
	inputs  = observationSize
	actions = Actions
	outputs = actions + 1 // the logits, then the value
	// Params is the number of weights in the network. They use 2,205 of the 2,243 lanes in a frame of 9,036 bytes.
	Params = Hidden*inputs + Hidden + Hidden*Hidden + Hidden + outputs*Hidden + outputs
)

// paramsOf returns the number of weights that the network has if both hidden layers have the given width.
func paramsOf(hidden int) int { return hidden*hidden + (inputs+2+outputs)*hidden + outputs }

// widestFor returns the largest width of the hidden layers for which the weights fit into the given number of lanes, or
// 0 if there is none.
func widestFor(lanes int) int {
	hidden := 0
	for paramsOf(hidden+1) <= lanes {
		hidden++
	}
	return hidden
}

// Weights contains all parameters of the network in the order of the frame's lanes. Gradients have the same layout.
type Weights [Params]float32

// layers is a view of Weights as matrices. They are row-major, with one row per output.
type layers struct {
	w1 *[Hidden * inputs]float32
	b1 *[Hidden]float32
	w2 *[Hidden * Hidden]float32
	b2 *[Hidden]float32
	w3 *[outputs * Hidden]float32
	b3 *[outputs]float32
}

func (w *Weights) layers() layers {
	rest := w[:]
	take := func(n int) []float32 {
		head := rest[:n]
		rest = rest[n:]
		return head
	}
	return layers{
		w1: (*[Hidden * inputs]float32)(take(Hidden * inputs)),
		b1: (*[Hidden]float32)(take(Hidden)),
		w2: (*[Hidden * Hidden]float32)(take(Hidden * Hidden)),
		b2: (*[Hidden]float32)(take(Hidden)),
		w3: (*[outputs * Hidden]float32)(take(outputs * Hidden)),
		b3: (*[outputs]float32)(take(outputs)),
	}
}

// Initial draws initial weights. Rows are Gaussian with standard deviation gain/sqrt(inputs), the policy is nearly
// flat, and biases are 0.
func Initial(random *rand.Rand) *Weights {
	var w Weights
	l := w.layers()
	fill := func(row []float32, gain float64, fanIn int) {
		for i := range row {
			row[i] = float32(random.NormFloat64() * gain / math.Sqrt(float64(fanIn)))
		}
	}
	fill(l.w1[:], 1.2, inputs)
	fill(l.w2[:], 1.2, Hidden)
	fill(l.w3[:actions*Hidden], 0.01, Hidden)
	fill(l.w3[actions*Hidden:], 1, Hidden)
	return &w
}

// pass contains the results of a forward pass that the backward pass needs.
type pass struct {
	in       Observation
	h1, h2   [Hidden]float32
	prob     [actions]float32
	logProb  [actions]float32
	value    float32
	d1, d2   [Hidden]float32 // scratch for the backward pass
	dOutputs [outputs]float32
}

// forward evaluates the network for the observation in.
func (p *pass) forward(l *layers, in *Observation) {
	p.in = *in
	for o := range p.h1 {
		row := (*[inputs]float32)(l.w1[o*inputs:])
		a := float32(row[0]*in[0]) + float32(row[1]*in[1])
		b := float32(row[2]*in[2]) + float32(row[3]*in[3])
		c := float32(row[4]*in[4]) + float32(row[5]*in[5])
		d := float32(row[6]*in[6]) + float32(row[7]*in[7])
		p.h1[o] = tanh(l.b1[o] + ((a + b) + (c + d)))
	}
	for o := range p.h2 {
		p.h2[o] = tanh(l.b2[o] + dot((*[Hidden]float32)(l.w2[o*Hidden:]), &p.h1))
	}
	var logits [actions]float32
	for o := range logits {
		logits[o] = l.b3[o] + dot((*[Hidden]float32)(l.w3[o*Hidden:]), &p.h2)
	}
	p.value = l.b3[actions] + dot((*[Hidden]float32)(l.w3[actions*Hidden:]), &p.h2)
	p.softmax(&logits)
}

func (p *pass) softmax(logits *[actions]float32) {
	top := max(logits[0], logits[1], logits[2], logits[3])
	var e [actions]float64
	sum := 0.0
	for i, v := range logits {
		e[i] = exp(float64(v - top))
		sum += e[i]
	}
	// Log1p, unlike Log, is compiled from Go for every architecture that we build for.
	logSum := float32(math.Log1p(sum - 1))
	for i, v := range logits {
		p.prob[i] = float32(e[i] / sum)
		p.logProb[i] = v - top - logSum
	}
}

// dot returns the dot product of w and x. It uses four independent sums, so that the processor can overlap the
// additions.
func dot(w, x *[Hidden]float32) float32 {
	var a, b, c, d float32
	for i := 0; i < Hidden; i += 4 {
		a += float32(w[i] * x[i])
		b += float32(w[i+1] * x[i+1])
		c += float32(w[i+2] * x[i+2])
		d += float32(w[i+3] * x[i+3])
	}
	return (a + b) + (c + d)
}

// tanh returns the hyperbolic tangent of x. It is the seventh convergent of Lambert's continued fraction, accurate to
// 1e-4 and limited to ±1.
func tanh(x float32) float32 {
	const limit = 4.97
	if x > limit {
		return 1
	}
	if x < -limit {
		return -1
	}
	s := float32(x * x)
	numerator := float32((float32((float32((s+378)*s)+17325)*s) + 135135) * x)
	denominator := float32((float32((float32(28*s)+3150)*s)+62370)*s) + 135135
	return numerator / denominator
}

// exp returns e^x with the precision of a float32. It computes 2^k times a polynomial on [-ln2/2, ln2/2].
func exp(x float64) float64 {
	if x < -87 {
		return 0
	}
	x = min(x, 88)
	k := math.Floor(float64(x*math.Log2E) + 0.5)
	r := x - float64(k*math.Ln2)
	p := 1.0
	for n := 8.0; n >= 1; n-- {
		p = 1 + float64(p*r)/n
	}
	return math.Float64frombits(math.Float64bits(p) + uint64(int64(k))<<52)
}

// Policy chooses actions by evaluating a network. It is not safe for concurrent use.
type Policy struct {
	weights layers
	pass    pass
}

// Load makes the policy use w. It does not copy w.
func (p *Policy) Load(w *Weights) { p.weights = w.layers() }

// Sample draws an action. logProb is the logarithm of its probability, and value is the network's estimate of the
// scaled return.
func (p *Policy) Sample(s *Observation, random *rand.Rand) (action Action, logProb, value float32) {
	p.pass.forward(&p.weights, s)
	u := random.Float32()
	last := Action(actions - 1)
	for action < last && u >= p.pass.prob[action] {
		u -= p.pass.prob[action]
		action++
	}
	return action, p.pass.logProb[action], p.pass.value
}

// Greedy returns the most likely action.
func (p *Policy) Greedy(s Observation) Action {
	p.pass.forward(&p.weights, &s)
	best := 0
	for i, v := range p.pass.prob {
		if v > p.pass.prob[best] {
			best = i
		}
	}
	return Action(best)
}
