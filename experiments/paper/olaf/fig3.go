package olaf

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// fig3 is the experiment that shows that training with more workers needs fewer iterations (§2.1, Fig. 3).
var fig3 = experiments.Experiment{
	Name:     "olaf/fig3",
	Artefact: "Fig. 3",
	About:    "reward over iterations and iterations to reward 0 with 1 to 16 asynchronous workers",
	Needs:    "20 min",
	Long:     true,
	Run:      runFig3,
	Parts:    trainings(fig3Schemes, 5, 2),
}

// fig3Reward is the reward half-way between crashing and landing. The figure shows when training exceeds this reward
// for the first time.
const fig3Reward = 0

// Fig3 returns asynchronous training schemes that differ in the number of workers only.
func Fig3() []scheme {
	var schemes []scheme
	for _, n := range []int{1, 2, 4, 8, 16} {
		c := rl.Defaults()
		c.Workers = n
		schemes = append(schemes, scheme{fmt.Sprintf("N=%d", n), c})
	}
	return schemes
}

// fig3Schemes returns the schemes in Fig. 3, shortened if the options ask for it.
func fig3Schemes(o *experiments.Options) []scheme { return shorten(Fig3(), o) }

func runFig3(ctx context.Context, o experiments.Options) (result.Report, error) {
	schemes := fig3Schemes(&o)
	f, done, runs, err := trainFigure(ctx, &o, "olaf/fig3", "Fig. 3", schemes, 2)
	if f == nil {
		return nil, err
	}

	const block = 10
	curves := result.Panel{Name: "Reward over iterations", XLabel: "iteration", YLabel: "mean reward of 10 iterations"}
	reach := result.Series{Name: "iterations"}
	never := result.Series{Name: "seeds"}
	bySeed := make([][]results.Float, len(schemes)) // iterations needed, by number of workers
	for i, s := range schemes {
		curves.Series = append(curves.Series, overIterations(s.Name, done[i], block))
		var needed []float64
		missed := 0.0
		for _, l := range done[i] {
			if l == nil {
				bySeed[i] = append(bySeed[i], results.Missing())
				continue
			}
			at, ok := crossing(rl.Blocks(l.Curves, block), fig3Reward)
			if !ok {
				missed++
			}
			needed = append(needed, float64(at*block))
			bySeed[i] = append(bySeed[i], results.Float(at*block))
		}
		x := float64(s.Config.Workers)
		reach.X, reach.Y = append(reach.X, x), append(reach.Y, result.Describe(needed))
		never.X, never.Y = append(never.X, x), append(never.Y, result.Describe([]float64{missed}))
	}
	f.Panels = []result.Panel{curves,
		{Name: "Iterations to reward 0", Group: "workers", XLabel: "workers",
			YLabel: "iterations until 10 have a mean above 0", Series: []result.Series{reach}},
		{Name: "Seeds that never did", Group: "workers", XLabel: "workers", YLabel: "seeds", Series: []result.Series{never}}}
	f.Compare(paper.Ours{"olaf/fig3.iterations.fewer_with_more_workers": paper.Falls(bySeed)}.MarkShortened(shortIterations(&o, schemes)))
	f.Say("if a seed never has ten iterations with a mean reward above %d, all its iterations count", fig3Reward)
	f.Say("%s; every worker adds full steps of the same size, so N workers also take N times as many steps per "+
		"iteration, which is part of the gain", olaf.Plural(runs, "seed"))
	return f, err
}

// crossing returns the number of blocks until the mean first exceeds reward. If it never does, crossing returns the
// number of all blocks and false.
func crossing(blocks []float64, reward float64) (n int, ok bool) {
	for i, v := range blocks {
		if v > reward {
			return i + 1, true
		}
	}
	return len(blocks), false
}
