package train

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/pktgen/trace"
)

// Curve is the live reward curve of a training run. Each point is the mean reward over one twentieth of the updates.
type Curve struct {
	mu     sync.Mutex
	done   int
	Total  int
	sums   [curvePoints]float64
	counts [curvePoints]int
}

const curvePoints = 20

// OnUpdate adds the reward of an update to the curve.
func (c *Curve) OnUpdate(u *trace.Update, _ *rl.Weights) error {
	c.addReward(u.Reward)
	return nil
}

func (c *Curve) addReward(reward float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := min(c.done*curvePoints/max(c.Total, 1), curvePoints-1)
	c.sums[at] += reward
	c.counts[at]++
	c.done++
}

// Look returns the number of updates so far and in total, for a progress bar.
func (c *Curve) Look() (done, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done, c.Total
}

// latestReward returns the mean reward at the newest point, or NaN if there is no point yet.
func (c *Curve) latestReward() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.counts) - 1; i >= 0; i-- {
		if c.counts[i] > 0 {
			return c.sums[i] / float64(c.counts[i])
		}
	}
	return math.NaN()
}

// Note returns the curve as a line of bar characters, from a crash (low) to a landing (high).
func (c *Curve) Note() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	const bars, low, high = "▁▂▃▄▅▆▇█", -200.0, 250.0
	var line strings.Builder
	last := math.NaN()
	for i, n := range c.counts {
		if n == 0 {
			continue
		}
		last = c.sums[i] / float64(n)
		level := int((last - low) / (high - low) * 8)
		line.WriteRune([]rune(bars)[min(max(level, 0), 7)])
	}
	if math.IsNaN(last) {
		return ""
	}
	return fmt.Sprintf("reward %.0f %s", last, line.String())
}
