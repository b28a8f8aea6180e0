package olaf

import (
	"context"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// tornTraining is an experiment that trains with updates and models in more and more frames. Like splitUpdates, it
// judges no claim.
var tornTraining = experiments.Experiment{
	Name:     tornName,
	Artefact: "§10",
	About:    "reward of trainings whose models arrive in 1 to 64 frames, and the share of models torn between mixtures",
	Needs:    "6 min",
	Long:     true,
	Run:      runTornTraining,
	Parts:    trainings(tornSchemes, 5, 2),
}

// tornExpected states the expected results. It was written before the first run.
const tornExpected = "expected before the first run: one frame is never torn, and from 4 frames on OLAF's workers begin " +
	"over half of their iterations with a torn model; OLAF ends above FIFO at every number of frames; torn models cost OLAF " +
	"less than a fifth of what it gains in one frame"

// tornFrames lists the numbers of frames per update, tornQueues the queues.
var (
	tornFrames = []int{1, 4, 16, 64}
	tornQueues = []string{"olaf", "fifo"}
)

// tornSchemes returns a training scheme for each queue and number of frames. 8 workers in 2 clusters offer 60 Gbps to
// an output of 20 Gbps, with 8 slots for each place of a frame in an update.
func tornSchemes(o *experiments.Options) (all []scheme) {
	c := rl.Defaults()
	c.Placement = pktgen.Placement{Workers: 8, Clusters: 2}
	c.PPO.Steps, c.PPO.LearnRate, c.Iterations = 128, 3e-4, 150
	c.Network.OutRate = 20 * olaf.Gbps
	if o.Quick {
		c.Iterations = 4
	}
	for _, frames := range tornFrames {
		for _, queue := range tornQueues {
			c.Network.Kind, c.Network.Lanes = queue, 0
			if frames > 1 {
				c.Network.Lanes = (rl.Params + frames - 1) / frames
			}
			all = append(all, scheme{fmt.Sprintf("%s, %d frames", queue, frames), c})
		}
	}
	return all
}

func runTornTraining(ctx context.Context, o experiments.Options) (result.Report, error) {
	schemes := tornSchemes(&o)
	f, done, runs, err := trainFigure(ctx, &o, tornName, "models in several frames", schemes, 2)
	if f == nil {
		return nil, err
	}
	reward := result.Panel{Name: "reward in the last tenth", XLabel: "frames of a model", YLabel: "mean reward"}
	gain := result.Panel{Name: "gain from the first tenth", XLabel: reward.XLabel, YLabel: reward.YLabel}
	torn := result.Panel{Name: "torn models", XLabel: reward.XLabel, YLabel: "% of the models that iterations begin with"}
	for k, queue := range tornQueues {
		r, g, t := result.Series{Name: queue}, result.Series{Name: queue}, result.Series{Name: queue}
		for i, frames := range tornFrames {
			at := i*len(tornQueues) + k
			ends, gains, shares := summarizeTorn(done[at], schemes[at].Config.Tenth())
			for _, s := range []struct {
				series *result.Series
				values []float64
			}{{&r, ends}, {&g, gains}, {&t, shares}} {
				s.series.X, s.series.Y = append(s.series.X, float64(frames)), append(s.series.Y, result.Describe(s.values))
			}
		}
		reward.Series, gain.Series, torn.Series = append(reward.Series, r), append(gain.Series, g), append(torn.Series, t)
	}
	f.Panels = []result.Panel{reward, gain, torn}
	f.Say("8 workers in 2 clusters, %d iterations each, %d of %d seeds; 20 Gbps out, 8 slots a place of a frame",
		schemes[0].Config.Iterations, f.Panels[0].Series[0].Y[0].N, runs)
	f.Say("%s", tornExpected)
	for _, line := range judgeTorn(f) {
		f.Say("%s", line)
	}
	return f, err
}

// tornName is the name of the experiment tornTraining.
const tornName = "olaf/fragments-reward"

// summarizeTorn returns, for every finished seed, the final reward, the gain in reward, and the share of torn models.
func summarizeTorn(done []*learned, tenth int) (ends, gains, shares []float64) {
	for _, l := range done {
		if l == nil {
			continue
		}
		blocks := rl.Blocks(l.Curves, tenth)
		end := blocks[len(blocks)-1]
		ends, gains = append(ends, end), append(gains, end-blocks[0])
		shares = append(shares, 100*float64(l.Torn)/float64(max(1, l.Models)))
	}
	return ends, gains, shares
}

// Outcomes of an expectation about means with intervals.
const (
	cameOut   = "came out"
	missed    = "missed"
	undecided = "can't be told, as the 95 % intervals overlap"
)

// compareMeans returns whether the expectation that a is above factor times b was met. Without a confidence interval,
// as after a single seed, the result is undecided.
func compareMeans(a, b *results.Statistic, factor results.Float) string {
	switch {
	case a.Mean-a.CI95 > factor*(b.Mean+b.CI95):
		return cameOut
	case a.Mean+a.CI95 < factor*(b.Mean-b.CI95):
		return missed
	}
	return undecided
}

// combineOutcomes returns the outcome of an expectation that has several parts.
func combineOutcomes(parts ...string) string {
	for _, worst := range []string{missed, undecided} {
		if slices.Contains(parts, worst) {
			return worst
		}
	}
	return cameOut
}

// judgeTorn compares the measured curves with the expectations in tornExpected.
func judgeTorn(f *result.Result) []string {
	reward, gain, torn := f.Panels[0].Series, f.Panels[1].Series[0].Y, f.Panels[2].Series
	last, half := len(tornFrames)-1, &results.Statistic{Mean: 50}
	var tears, above []string
	for i, frames := range tornFrames {
		switch {
		case frames >= 4:
			tears = append(tears, compareMeans(&torn[0].Y[i], half, 1))
		case torn[0].Y[i].Mean != 0 || torn[1].Y[i].Mean != 0:
			tears = append(tears, missed)
		}
		above = append(above, compareMeans(&reward[0].Y[i], &reward[1].Y[i], 1))
	}
	show := func(s *results.Statistic) string { return text.FormatRounded(s, 1) }
	return []string{
		fmt.Sprintf("%s: OLAF's workers begin %s %% of iterations with a torn model of 4 frames and %s %% of %d, FIFO's %s and %s %%",
			combineOutcomes(tears...), show(&torn[0].Y[1]), show(&torn[0].Y[last]), tornFrames[last], show(&torn[1].Y[1]),
			show(&torn[1].Y[last])),
		fmt.Sprintf("%s: OLAF ends at %s with one frame and %s with %d, FIFO at %s and %s", combineOutcomes(above...),
			show(&reward[0].Y[0]), show(&reward[0].Y[last]), tornFrames[last], show(&reward[1].Y[0]), show(&reward[1].Y[last])),
		fmt.Sprintf("%s: OLAF gains %s with one frame and %s with %d", compareMeans(&gain[last], &gain[0], 0.8), show(&gain[0]),
			show(&gain[last]), tornFrames[last]),
	}
}
