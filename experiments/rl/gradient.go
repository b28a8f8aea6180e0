package rl

import "math"

// sample is one step of experience with the data that the update needs.
type sample struct {
	action    uint8
	logProb   float32 // under the policy that acted
	advantage float32
	target    float32 // target for the value, in scaled reward
}

// backward adds the ascent gradient of the clipped objective at one sample to g. advantage is normalised, and scale is
// one divided by the minibatch size. p must contain the sample's forward pass.
func (p *pass) backward(l, g *layers, s *sample, advantage, scale float32, c *LearnerConfig) {
	p.outputGradients(s, advantage, scale, c)
	p.d2 = [Hidden]float32{}
	for o, d := range p.dOutputs {
		g.b3[o] += d
		accumulate((*[Hidden]float32)(g.w3[o*Hidden:]), &p.h2, &p.d2, (*[Hidden]float32)(l.w3[o*Hidden:]), d)
	}
	p.d1 = [Hidden]float32{}
	for o := range p.d2 {
		h := p.h2[o]
		d := p.d2[o] * (1 - float32(h*h))
		g.b2[o] += d
		accumulate((*[Hidden]float32)(g.w2[o*Hidden:]), &p.h1, &p.d1, (*[Hidden]float32)(l.w2[o*Hidden:]), d)
	}
	for o := range p.d1 {
		h := p.h1[o]
		d := p.d1[o] * (1 - float32(h*h))
		g.b1[o] += d
		row := (*[inputs]float32)(g.w1[o*inputs:])
		for i := range row {
			row[i] += float32(d * p.in[i])
		}
	}
}

// accumulate computes one row of a layer's backward pass: the weights' gradient, and the flow to the layer below.
func accumulate(gradient, below, flow, weights *[Hidden]float32, d float32) {
	for i := 0; i < Hidden; i += 4 {
		gradient[i] += float32(d * below[i])
		gradient[i+1] += float32(d * below[i+1])
		gradient[i+2] += float32(d * below[i+2])
		gradient[i+3] += float32(d * below[i+3])
		flow[i] += float32(d * weights[i])
		flow[i+1] += float32(d * weights[i+1])
		flow[i+2] += float32(d * weights[i+2])
		flow[i+3] += float32(d * weights[i+3])
	}
}

// outputGradients computes the derivative of clipped surrogate + entropy bonus − value loss with respect to logits
// and value.
func (p *pass) outputGradients(s *sample, advantage, scale float32, c *LearnerConfig) {
	ratio := float32(exp(float64(p.logProb[s.action] - s.logProb)))
	var push float32 // d(surrogate)/d(log probability of the action)
	if clipped := advantage > 0 && ratio > 1+c.Clip || advantage < 0 && ratio < 1-c.Clip; !clipped {
		push = float32(ratio * advantage)
	}
	var entropy float32
	for i, v := range p.prob {
		entropy -= float32(v * p.logProb[i])
	}
	for i, v := range p.prob {
		d := -float32(push * v)
		if i == int(s.action) {
			d += push
		}
		d -= float32(c.Entropy * float32(v*(p.logProb[i]+entropy)))
		p.dOutputs[i] = d * scale
	}
	p.dOutputs[actions] = float32(c.ValueWeight*(s.target-p.value)) * scale
}

// limitNorm scales g down to the norm longest if its norm exceeds longest.
func limitNorm(g *Weights, longest float32) {
	if n := gradientNorm(g); n > longest {
		for i := range g {
			g[i] *= longest / n
		}
	}
}

// adam is the state of the Adam optimiser (Kingma and Ba, 2015). It maximises the objective.
type adam struct {
	first, second Weights
	pow1, pow2    float64
}

func (a *adam) step(w, g *Weights, rate float32) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-5
	if a.pow1 == 0 {
		a.pow1, a.pow2 = 1, 1
	}
	a.pow1 *= beta1
	a.pow2 *= beta2
	scale1, scale2 := float32(1/(1-a.pow1)), float32(1/(1-a.pow2))
	for i, v := range g {
		m := float32(beta1*a.first[i]) + float32((1-beta1)*v)
		s := float32(beta2*a.second[i]) + float32((1-beta2)*float32(v*v))
		a.first[i], a.second[i] = m, s
		w[i] += float32(rate * (float32(m*scale1) / (float32(math.Sqrt(float64(float32(s*scale2)))) + epsilon)))
	}
}
