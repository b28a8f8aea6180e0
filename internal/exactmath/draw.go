package exactmath

import (
	"math"
	"math/rand/v2"
)

// A ziggurat covers a density function with strips of equal area (Marsaglia and Tsang, 2000).
type ziggurat struct {
	tail    float64 // where the tail begins in the lowest strip
	accept  []uint32
	width   []float32
	density []float32
}

var (
	normal      = newZiggurat(128, 3.442619855899, 9.91256303526217e-3, 1<<31, normalDensity, normalInverse)
	exponential = newZiggurat(256, 7.69711747013104972, 3.9496598225815571993e-3, 1<<32,
		exponentialDensity, exponentialInverse)
)

func normalDensity(x float64) float64      { return Exp(float64(float64(-0.5*x) * x)) }
func normalInverse(y float64) float64      { return math.Sqrt(float64(-2 * Log(y))) }
func exponentialDensity(x float64) float64 { return Exp(-x) }
func exponentialInverse(y float64) float64 { return -Log(y) }

// newZiggurat computes the tables for n strips of the given area. Positions are drawn as integers below scale.
func newZiggurat(n int, tail, area, scale float64, density, inverse func(float64) float64) *ziggurat {
	z := &ziggurat{tail: tail, accept: make([]uint32, n), width: make([]float32, n), density: make([]float32, n)}
	base := area / density(tail)
	z.accept[0] = uint32(float64(tail / base * scale))
	z.width[0], z.width[n-1] = float32(base/scale), float32(tail/scale)
	z.density[0], z.density[n-1] = 1, float32(density(tail))
	at, before := tail, tail
	for i := n - 2; i >= 1; i-- {
		at = inverse(area/at + density(at))
		z.accept[i+1] = uint32(float64(at / before * scale))
		before = at
		z.density[i], z.width[i] = float32(density(at)), float32(at/scale)
	}
	return z
}

// below reports whether a random point lies below the density. The point is in the part of a strip that the density
// only partly covers.
func (z *ziggurat) below(r *rand.Rand, strip uint64, density float64) bool {
	rise := float32(float32(r.Float64()) * (z.density[strip-1] - z.density[strip]))
	return z.density[strip]+rise < float32(density)
}

// NormFloat64 returns a random number from the standard normal distribution. It uses the same algorithm as
// r.NormFloat64.
func NormFloat64(r *rand.Rand) float64 {
	for {
		u := r.Uint64()
		j, strip := int32(u), u>>32&127
		x := float64(float64(j) * float64(normal.width[strip]))
		switch {
		case uint32(max(j, -j)) < normal.accept[strip]:
			return x
		case strip == 0:
			return math.Copysign(normal.tail+normalTail(r), float64(j))
		case normal.below(r, strip, normalDensity(x)):
			return x
		}
	}
}

// normalTail returns a random number from the tail of the normal distribution, relative to the start of the tail.
func normalTail(r *rand.Rand) float64 {
	for {
		x := float64(-Log(r.Float64()) * (1.0 / 3.442619855899))
		y := -Log(r.Float64())
		if y+y >= float64(x*x) {
			return x
		}
	}
}

// ExpFloat64 returns a random number from the exponential distribution with mean 1. It uses the same algorithm as
// r.ExpFloat64.
func ExpFloat64(r *rand.Rand) float64 {
	for {
		u := r.Uint64()
		j, strip := uint32(u), u>>32&255
		x := float64(float64(j) * float64(exponential.width[strip]))
		switch {
		case j < exponential.accept[strip]:
			return x
		case strip == 0:
			return exponential.tail - Log(r.Float64())
		case exponential.below(r, strip, Exp(-x)):
			return x
		}
	}
}
