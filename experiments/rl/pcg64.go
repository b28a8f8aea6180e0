package rl

import "math/bits"

// The constants of numpy's SeedSequence.
const (
	poolWords = 4
	initA     = 0x43b0d7e5
	multA     = 0x931e8875
	initB     = 0x8b51f9dd
	multB     = 0x58f38ded
	mixLeft   = 0xca01f9dd
	mixRight  = 0x4973f715
	shift     = 16
)

// The 128-bit multiplier of the underlying linear congruential generator.
const (
	multHigh = 0x2360ed051fc65da4
	multLow  = 0x4385df649fccf645
)

// random draws the same random numbers as numpy's default generator, numpy.random.Generator(PCG64(seed)), so that an
// environment with the same seed starts exactly like the original in Python. SeedSequence spreads an integer seed over
// 256 bits of state (numpy NEP 19 and numpy's documentation of SeedSequence). The generator is O'Neill's PCG XSL-RR
// 128/64. math/rand/v2 does not offer it; its PCG is the DXSM variant.
type random struct{ state, increment wide }

// wide is an unsigned 128-bit integer.
type wide struct{ high, low uint64 }

func (a wide) add(b wide) wide {
	low, carry := bits.Add64(a.low, b.low, 0)
	high, _ := bits.Add64(a.high, b.high, carry)
	return wide{high, low}
}

func (a wide) mul(b wide) wide {
	high, low := bits.Mul64(a.low, b.low)
	return wide{high + a.high*b.low + a.low*b.high, low}
}

// newRandom returns a source that is seeded like numpy.random.PCG64(numpy.random.SeedSequence(seed)).
func newRandom(seed uint64) *random {
	state := expandSeed(seed)
	s := &random{increment: wide{state[2]<<1 | state[3]>>63, state[3]<<1 | 1}}
	s.advance()
	s.state = s.state.add(wide{state[0], state[1]})
	s.advance()
	return s
}

func (s *random) advance() {
	s.state = s.state.mul(wide{multHigh, multLow}).add(s.increment)
}

// Uint64 returns the next 64 random bits.
func (s *random) Uint64() uint64 {
	s.advance()
	return bits.RotateLeft64(s.state.high^s.state.low, -int(s.state.high>>58))
}

// Float64 returns a uniformly distributed number in [0, 1) with 53 random bits.
func (s *random) Float64() float64 { return float64(s.Uint64()>>11) * (1.0 / (1 << 53)) }

// Uniform returns a uniformly distributed number in [low, high).
func (s *random) Uniform(low, high float64) float64 { return low + (high-low)*s.Float64() }

// hasher computes SeedSequence's hash of words. Its value is the constant that changes with every word.
type hasher struct{ constant, multiplier uint32 }

func (h *hasher) hash(word uint32) uint32 {
	word ^= h.constant
	h.constant *= h.multiplier
	word *= h.constant
	return word ^ word>>shift
}

func mixWords(a, b uint32) uint32 {
	word := mixLeft*a - mixRight*b
	return word ^ word>>shift
}

// expandSeed returns the result of SeedSequence(seed).generate_state(4, uint64). A 64-bit seed has at most two words of
// entropy, which fit into the pool of four words.
func expandSeed(seed uint64) (state [4]uint64) {
	entropy := [poolWords]uint32{uint32(seed), uint32(seed >> 32)}
	var pool [poolWords]uint32
	in := hasher{initA, multA}
	for i := range pool {
		pool[i] = in.hash(entropy[i])
	}
	for from := range pool {
		for to := range pool {
			if from != to {
				pool[to] = mixWords(pool[to], in.hash(pool[from]))
			}
		}
	}
	out := hasher{initB, multB}
	for i := range state {
		low := out.hash(pool[(2*i)%poolWords])
		high := out.hash(pool[(2*i+1)%poolWords])
		state[i] = uint64(high)<<32 | uint64(low)
	}
	return state
}
