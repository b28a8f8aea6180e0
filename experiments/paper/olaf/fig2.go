package olaf

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// fig2 is the experiment that reproduces the learning curves of three ways to aggregate (§2.1, Fig. 2).
var fig2 = experiments.Experiment{
	Name:     "olaf/fig2",
	Artefact: "Fig. 2",
	About:    "reward of 8 workers over 200 iterations: asynchronous, periodic aggregation, synchronous",
	Needs:    "15 min",
	Long:     true,
	Run:      runFig2,
	Parts:    trainings(fig2Schemes, 5, 2),
}

// scheme is the training behind one curve of Fig. 2.
type scheme struct {
	Name   string    `json:"name"`
	Config rl.Config `json:"config"`
}

// Fig2 returns the training schemes in Fig. 2. It adds synchronous training with steps eight times as long to the
// paper's three schemes, to show how much of the difference is due to the number of steps.
func Fig2() []scheme {
	async, periodic, sync := rl.Defaults(), rl.Defaults(), rl.Defaults()
	periodic.Mode = rl.Periodic
	sync.Mode = rl.Sync
	long := sync
	long.PPO.LearnRate *= float32(long.Workers)
	return []scheme{{"async", async}, {"periodic", periodic}, {"sync", sync}, {"sync, 8 x step", long}}
}

// fig2Schemes returns the schemes in Fig. 2, shortened if the options ask for it.
func fig2Schemes(o *experiments.Options) []scheme { return shorten(Fig2(), o) }

// shorten reduces the number of iterations in training runs if the options ask for it.
func shorten(schemes []scheme, o *experiments.Options) []scheme {
	if o.Quick {
		for i := range schemes {
			schemes[i].Config.Iterations = 40
		}
	}
	return schemes
}

func runFig2(ctx context.Context, o experiments.Options) (result.Report, error) {
	schemes := fig2Schemes(&o)
	f, done, runs, err := trainFigure(ctx, &o, "olaf/fig2", "Fig. 2", schemes, 2)
	if f == nil {
		return nil, err
	}

	const spans, block = 20, 10
	end := int64(0)
	for _, seeds := range done {
		end = max(end, longest(seeds))
	}
	iterations := result.Panel{Name: "Reward over iterations", XLabel: "iteration", YLabel: "mean reward of 10 iterations"}
	time := result.Panel{Name: "Reward over time", XLabel: "virtual time [s]", YLabel: "mean reward"}
	for i, s := range schemes {
		iterations.Series = append(iterations.Series, overIterations(s.Name, done[i], block))
		time.Series = append(time.Series, overTime(s.Name, done[i], spans, end, 1e9))
	}
	f.Panels = []result.Panel{iterations, time}
	async, long := iterations.Series[0].Last(), iterations.Series[3].Last()
	over := func(a, b int) paper.Measured { return paper.Over(lastBlock(done[a], block), lastBlock(done[b], block)) }
	asyncGain := over(0, 1)
	asyncGain.Others = []paper.Other{{Assumption: "async over sync with 8 x step", Statistic: over(0, 3).Statistic, Judged: true}}
	f.Compare(paper.Ours{
		"olaf/fig2.reward.async_over_periodic_aggregation": asyncGain,
		"olaf/fig2.reward.periodic_aggregation_over_sync":  over(1, 2),
	}.MarkShortened(shortIterations(&o, schemes)))
	f.Say("8 workers, slowest %.1f times as slow as the fastest, %s; ± is the 95 %% half-width over seeds",
		schemes[0].Config.Spread, olaf.Plural(runs, "seed"))
	f.Say("per iteration of all workers, async makes 8 full steps, periodic 2 and sync 1, all of the same size. "+
		"Sync with steps 8 times as large ends at %s, async at %s, so the gap over iterations comes mostly from "+
		"the number of steps, not from freshness", text.FormatRounded(&long, 1), text.FormatRounded(&async, 1))
	f.Say("async also gains time, because no worker waits for the slowest")
	return f, err
}

// shortIterations describes how much --quick shortened training. It returns "" for training at full length.
func shortIterations(o *experiments.Options, schemes []scheme) string {
	if !o.Quick {
		return ""
	}
	return fmt.Sprintf("%d of %d iterations", schemes[0].Config.Iterations, rl.Defaults().Iterations)
}

// trainingsOf returns the training runs of every scheme with every seed. They are ordered by seed, so that an
// interrupted figure has all schemes for the first seeds.
func trainingsOf(schemes []scheme, runs int, seed uint64) (jobs []rl.Config) {
	for i := range runs {
		for _, s := range schemes {
			s.Config.Seed = seed + uint64(i)
			jobs = append(jobs, s.Config)
		}
	}
	return jobs
}

// trainFigure trains every scheme with every seed for a figure. It returns the figure without panels, and the results
// by scheme and then by seed. The figure is nil if nothing was finished. By default there are five seeds, and quick
// seeds with --quick.
func trainFigure(ctx context.Context, o *experiments.Options, name, artefact string, schemes []scheme, quick int) (f *result.Result, done [][]*learned, runs int, err error) {
	runs, seed := o.Seeds(5, quick)
	f = experiments.NewResult(name, artefact, o, struct {
		Schemes []scheme `json:"schemes"`
		Seed    uint64   `json:"seed"`
		Runs    int      `json:"runs"`
	}{schemes, seed, runs})
	if done, err = trainSchemes(ctx, o, schemes, runs, seed); done == nil {
		return nil, nil, 0, err
	}
	f.Partial = err != nil
	return f, done, runs, err
}

// trainSchemes trains every scheme with every seed. The results are ordered by scheme and then by seed. They are nil if
// nothing was finished.
func trainSchemes(ctx context.Context, o *experiments.Options, schemes []scheme, runs int, seed uint64) ([][]*learned, error) {
	flat, err := trainAll(ctx, o, trainingsOf(schemes, runs, seed))
	if len(flat) == 0 || flat[0] == nil {
		return nil, err
	}
	done := make([][]*learned, len(schemes))
	for i, l := range flat {
		done[i%len(schemes)] = append(done[i%len(schemes)], l)
	}
	return done, err
}
