package aomcheck

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/olafctl/olaf"
)

// Path is one sample path: the updates that reach the engine, with their arrival times. Times are integers in the
// path's own step, so that every rational arrival time is exact.
type Path struct {
	// PerTick is the number of steps in one tick of the problem.
	PerTick int64
	// Arrivals has one entry per cluster and update, in steps. Sent has one decision per cluster and update; nil if the
	// control decides along the path.
	Arrivals [][]int64
	Sent     [][]bool
}

// finest returns the largest number of steps per tick for which the times on a path of p, and their sums, fit into 64
// bits.
func (p *Problem) finest() int64 {
	span := int64(1)
	for _, c := range p.Clusters {
		span = max(span, int64(c.lastArrival()/p.tick()))
	}
	return max((1<<60)/span, 1)
}

// pathOf returns the sample path that a solver's values describe. It fails if a value is outside its range.
func (m *model) pathOf(values map[string]any) (*Path, error) {
	rationals, perTick, err := m.rationals(values)
	if err != nil {
		return nil, err
	}
	in := func(id string, lo, hi olaf.Duration) (int64, error) {
		r, ok := rationals[id]
		if !ok {
			return m.ticks(lo) * perTick, nil
		}
		n := new(big.Int).Mul(r.Num(), big.NewInt(perTick/r.Denom().Int64()))
		if !n.IsInt64() || n.Int64() < m.ticks(lo)*perTick || n.Int64() > m.ticks(hi)*perTick {
			return 0, fmt.Errorf("%s = %s is out of its range", id, r.RatString())
		}
		return n.Int64(), nil
	}
	path := &Path{PerTick: perTick}
	for u, st := range m.streams {
		phase, err := in(fmt.Sprintf("phase.%d", u), st.c.PhaseLow, st.c.PhaseHigh)
		if err != nil {
			return nil, err
		}
		times, sent := make([]int64, len(st.arrival)), make([]bool, len(st.arrival))
		for k := range times {
			jitter, err := in(name("jitter", u, k), 0, st.c.Jitter)
			if err != nil {
				return nil, err
			}
			times[k] = phase + m.ticks(st.c.nominalArrival(k))*perTick + jitter
			sent[k] = m.sentIn(values, u, k)
		}
		path.Arrivals, path.Sent = append(path.Arrivals, times), append(path.Sent, sent)
	}
	return path, nil
}

// rationals returns a solver's times in ticks, and the smallest number of steps per tick that makes all of them
// integers.
func (m *model) rationals(values map[string]any) (times map[string]*big.Rat, perTick int64, err error) {
	perTick, finest := 1, m.p.finest()
	times = make(map[string]*big.Rat)
	for id, v := range values {
		r, ok := v.(*big.Rat)
		if !ok {
			continue
		}
		times[id] = m.s.Ticks(r)
		d := times[id].Denom()
		if !d.IsInt64() || d.Int64() > finest || perTick/gcd(perTick, d.Int64()) > finest/d.Int64() {
			return nil, 0, fmt.Errorf("the arrival times need steps finer than 1/%d of %v", finest, m.p.tick())
		}
		perTick = perTick / gcd(perTick, d.Int64()) * d.Int64()
	}
	return times, perTick, nil
}

func (m *model) sentIn(values map[string]any, u, k int) bool {
	if v, ok := values[name("sent", u, k)].(bool); ok {
		return v
	}
	return m.streams[u].sent[k] == "true"
}

// RandomPath draws a path that p allows, in steps of a thousandth of a tick. Each phase and jitter is uniform in its
// range or, with probability one third each, at its lower or upper end, because extremes occur there. Replay makes the
// send decisions. RandomPath returns nil if the draw breaks an assumption of p (order or separation); the caller then
// draws again.
func (p *Problem) RandomPath(rng *rand.Rand) *Path { return p.randomPath(rng, min(1000, p.finest())) }

func (p *Problem) randomPath(rng *rand.Rand, perTick int64) *Path {
	tick := p.tick()
	draw := func(lo, hi olaf.Duration, open bool) int64 {
		a, b := int64(lo/tick)*perTick, int64(hi/tick)*perTick
		if open {
			b--
		}
		switch r := rng.IntN(6); {
		case b <= a || r < 2:
			return a
		case r < 4:
			return b
		}
		return a + rng.Int64N(b-a+1)
	}
	path := &Path{PerTick: perTick}
	for _, c := range p.Clusters {
		phase := draw(c.PhaseLow, c.PhaseHigh, c.EveryPhase)
		times := make([]int64, c.Updates)
		for k := range times {
			times[k] = phase + int64(c.nominalArrival(k)/tick)*perTick + draw(0, c.Jitter, false)
		}
		path.Arrivals = append(path.Arrivals, times)
	}
	if !p.allows(path) {
		return nil
	}
	return path
}

// allows reports whether path satisfies the assumptions that relate arrivals to each other: the order within a cluster,
// and the separation between clusters.
func (p *Problem) allows(path *Path) bool {
	for _, times := range path.Arrivals {
		for k := 1; k < len(times); k++ {
			if times[k] <= times[k-1] {
				return false
			}
		}
	}
	gap := int64(p.Separation/p.tick()) * path.PerTick
	for u, a := range path.Arrivals {
		for _, b := range path.Arrivals[u+1:] {
			if gap > 0 && nearest(a, b) < gap {
				return false
			}
		}
	}
	return true
}

// nearest returns the smallest distance between an element of a and an element of b. Both slices are in ascending
// order.
func nearest(a, b []int64) int64 {
	best := int64(1) << 62
	for _, t := range a {
		i, _ := slices.BinarySearch(b, t)
		if i < len(b) {
			best = min(best, b[i]-t)
		}
		if i > 0 {
			best = min(best, t-b[i-1])
		}
	}
	return best
}
