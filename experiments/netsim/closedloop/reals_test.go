package closedloop

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// TestExactlyOnceOfReals checks with real numbers, whose float sums depend on the order, that all workers end a round
// with the same bits, within the rounding error of one contribution of every worker, with any losses.
func TestExactlyOnceOfReals(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 20
	}
	for _, protocol := range []struct {
		name  string
		parts system.Parts
	}{
		{"isw-x", iswitchParts(endpoint.ISwitch{Profile: iswitch.Exactly}, 8)},
		{"server", psParts(true)},
		{"ring", ringParts()},
	} {
		var all exactness
		for _, shape := range []struct{ workers, perRack int }{{4, 0}, {6, 3}, {5, 2}} {
			for _, loss := range []float64{0, 0.0001, 0.001, 0.01, 0.05} {
				if protocol.name != "isw-x" && (loss > 0 || shape.perRack > 0) {
					continue // these do not retransmit
				}
				t.Run(fmt.Sprintf("%s/%d by %d/%g", protocol.name, shape.workers, shape.perRack, loss), func(t *testing.T) {
					for seed := range seeds {
						n := lab(shape.workers)
						n.PerRack, n.Link.Loss = shape.perRack, loss
						all.add(realsOnce(t, n, protocol.parts, uint64(seed)))
					}
				})
			}
		}
		t.Logf("%s: %s", protocol.name, &all)
	}
}

// realsOnce runs one job with different gradients on each host, and checks every sum.
func realsOnce(t *testing.T, n Network, parts system.Parts, seed uint64) *Result {
	t.Helper()
	const rounds = 5
	layout := endpoint.Layout{Values: 23, PerPacket: 4}
	gradient := func(w int, vector uint32) []float32 {
		v := make([]float32, layout.Values)
		for i := range v {
			v[i] = real32(splitmix.MixBits(seed<<40 ^ uint64(vector)<<24 ^ uint64(w)<<12 ^ uint64(i)))
		}
		return v
	}
	first := map[uint32][]uint32{} // the first host's sum of a round
	sums := map[uint32]int{}
	j := Job{
		Layout: layout, Updates: rounds, Compute: 200 * olaf.Microsecond, Jitter: 0.5, Limit: 1000 * olaf.Second,
		Values: func(_ olaf.Time, w int, vector uint32) (words []uint32) {
			for _, x := range gradient(w, vector) {
				words = append(words, math.Float32bits(x))
			}
			return words
		},
		Applied: func(_ olaf.Time, host int, a *endpoint.Aggregate) {
			if sums[a.Number]++; first[a.Number] == nil {
				first[a.Number] = slices.Clone(a.Values)
				var all [][]float32
				for w := range n.Workers {
					all = append(all, gradient(w, a.Number))
				}
				if err := withinRounding(a.Values, all); err != nil {
					t.Fatalf("seed %d: round %d: %v", seed, a.Number, err)
				}
				return
			}
			if !slices.Equal(a.Values, first[a.Number]) {
				t.Fatalf("seed %d: host %d, round %d: another sum than others have: %x, %x", seed, host, a.Number, a.Values,
					first[a.Number])
			}
		},
	}
	parts.Build.LaneMemory = 4
	r := run(t, n, j, parts, true, seed)
	for round := range uint32(rounds) {
		if sums[round] < n.Workers {
			t.Fatalf("seed %d: %d hosts of %d ended round %d; hung %v", seed, sums[round], n.Workers, round, r.Hung)
		}
	}
	return r
}

// real32 returns a float32 of either sign from 2^-12 to 2^12, so that sums lose digits and rarely cancel.
func real32(draw uint64) float32 {
	mantissa := 1 + float64(draw>>11&(1<<40-1))/(1<<40)
	x := math.Ldexp(mantissa, int(draw%24)-12)
	if draw>>63 == 1 {
		x = -x
	}
	return float32(x)
}

// withinRounding checks that words are within the error of n-1 additions in any order: each rounds by half a unit in
// the last place of a partial sum, which is at most the sum of all magnitudes.
func withinRounding(words []uint32, parts [][]float32) error {
	const half = 1.0 / (1 << 24)
	for i, word := range words {
		var sum, magnitude float64
		for _, p := range parts {
			sum += float64(p[i])
			magnitude += math.Abs(float64(p[i]))
		}
		n := float64(len(parts) - 1)
		bound := n * half / (1 - n*half) * magnitude
		if got := float64(math.Float32frombits(word)); !(math.Abs(got-sum) <= bound) {
			return fmt.Errorf("value %d is %g, the sum is %g ± %g", i, got, sum, bound)
		}
	}
	return nil
}

// TestWrongContributionExceedsRounding checks that a missing or repeated contribution exceeds the rounding error.
func TestWrongContributionExceedsRounding(t *testing.T) {
	parts := [][]float32{{real32(1)}, {real32(2 << 50)}, {real32(3 << 40)}}
	sum := parts[0][0] + parts[1][0] + parts[2][0]
	if err := withinRounding([]uint32{math.Float32bits(sum)}, parts); err != nil {
		t.Error(err)
	}
	for _, wrong := range []float32{sum + parts[0][0], sum - parts[1][0], float32(math.NaN())} {
		if withinRounding([]uint32{math.Float32bits(wrong)}, parts) == nil {
			t.Errorf("%g was taken for %g", wrong, sum)
		}
	}
}
