package rl

// Flights is the number of episodes over which a trained policy is evaluated, without exploration.
const Flights = 20

// Tenth returns the number of iterations in one part of a learning curve. It is a tenth of all iterations, but at least
// one.
func (c *Config) Tenth() int { return max(1, c.Iterations/10) }

// Blocks returns the mean reward over all workers in successive blocks of iterations. A block is included if at least
// one worker has reached it.
func Blocks(curves [][]Point, iterations int) []float64 {
	var sums []float64
	var counts []int
	for _, curve := range curves {
		for i, p := range curve {
			b := i / iterations
			for len(sums) <= b {
				sums, counts = append(sums, 0), append(counts, 0)
			}
			sums[b] += p.Reward
			counts[b]++
		}
	}
	for b := range sums {
		sums[b] /= float64(counts[b])
	}
	return sums
}

// Periods returns the mean reward over all workers in n equal spans of time from 0 to endNS. For a span without
// updates, it repeats the mean of the previous span.
func Periods(curves [][]Point, n int, endNS int64) []float64 {
	sums, counts := make([]float64, n), make([]int, n)
	for _, curve := range curves {
		for _, p := range curve {
			if p.AtNS > endNS || endNS <= 0 {
				continue
			}
			b := min(int(float64(p.AtNS)/float64(endNS)*float64(n)), n-1)
			sums[b] += p.Reward
			counts[b]++
		}
	}
	for b := range sums {
		switch {
		case counts[b] > 0:
			sums[b] /= float64(counts[b])
		case b > 0:
			sums[b] = sums[b-1]
		}
	}
	return sums
}
