package olaf

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/rl/ppo"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/results/result"
)

// tornTraining trains with updates and models in more and more frames. Like splitUpdates it judges no claim.
var tornTraining = experiments.Experiment{
	Name:     tornName,
	Artefact: "§10",
	About:    "reward of trainings whose models arrive in 1 to 64 frames, and the share of models torn between mixtures",
	Needs:    "6 min",
	Long:     true,
	Run:      runTornTraining,
	Parts:    trainings(tornSchemes, 5, 2),
}

// tornExpected was written before the first run.
const tornExpected = "expected before the first run: one frame is never torn, and from 4 frames on OLAF's workers begin " +
	"over half of their iterations with a torn model; OLAF ends above FIFO at every number of frames; torn models cost OLAF " +
	"less than a fifth of what it gains in one frame"

// tornFrames are the numbers of frames per update, and tornQueues the queues.
var (
	tornFrames = []int{1, 4, 16, 64}
	tornQueues = []string{"olaf", "fifo"}
)

// tornSchemes returns a training for each number of frames through each queue: 8 workers in 2 clusters that offer 60
// Gbps to an output of 20 Gbps, with 8 slots for each place of a frame.
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
				c.Network.Lanes = (ppo.Params + frames - 1) / frames
			}
			all = append(all, scheme{fmt.Sprintf("%s, %d frames", queue, frames), c})
		}
	}
	return all
}

func runTornTraining(ctx context.Context, o experiments.Options) (result.Report, error) {
	schemes := tornSchemes(&o)
	runs, seed := o.Seeds(5, 2)
	f := experiments.NewResult(tornName, "models in several frames", &o, struct {
		Schemes []scheme `json:"schemes"`
		Seed    uint64   `json:"seed"`
		Runs    int      `json:"runs"`
	}{schemes, seed, runs})
	done, err := trainSchemes(ctx, &o, schemes, runs, seed)
	if done == nil {
		return nil, err
	}
	f.Partial = err != nil
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
	for _, e := range judgeTorn(f) {
		f.Say("%s: %s", map[bool]string{true: "came out", false: "missed"}[e.cameOut], e.what)
	}
	return f, err
}

// tornName is the name of tornTraining.
const tornName = "olaf/fragments-reward"

// summarizeTorn returns the reward at the end, its gain, and the share of torn models, for every finished seed.
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

// judgeTorn compares the measured curves with tornExpected.
func judgeTorn(f *result.Result) []fragmentsExpectation {
	reward, gain, torn := f.Panels[0].Series, f.Panels[1].Series[0].Y, f.Panels[2].Series
	last := len(tornFrames) - 1
	tears, above := true, true
	for i, frames := range tornFrames {
		if frames >= 4 {
			tears = tears && torn[0].Y[i].Mean > 50
		} else {
			tears = tears && torn[0].Y[i].Mean == 0 && torn[1].Y[i].Mean == 0
		}
		above = above && reward[0].Y[i].Mean > reward[1].Y[i].Mean
	}
	return []fragmentsExpectation{
		{fmt.Sprintf("OLAF's workers begin %.1f %% of iterations with a torn model of 4 frames and %.1f %% of %d, FIFO's %.1f "+
			"and %.1f %%", torn[0].Y[1].Mean, torn[0].Y[last].Mean, tornFrames[last], torn[1].Y[1].Mean, torn[1].Y[last].Mean), tears},
		{fmt.Sprintf("OLAF ends at %.1f with one frame and %.1f with %d, FIFO at %.1f and %.1f", reward[0].Y[0].Mean,
			reward[0].Y[last].Mean, tornFrames[last], reward[1].Y[0].Mean, reward[1].Y[last].Mean), above},
		{fmt.Sprintf("OLAF gains %.1f with one frame and %.1f with %d", gain[0].Mean, gain[last].Mean, tornFrames[last]),
			gain[last].Mean > 0.8*gain[0].Mean},
	}
}
