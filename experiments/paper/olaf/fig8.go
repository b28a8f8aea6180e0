package olaf

import (
	"context"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// fig8 is the experiment that reproduces training through a congested network (§8.2, Fig. 8).
var fig8 = experiments.Experiment{
	Name:     "olaf/fig8",
	Artefact: "Fig. 8",
	About:    "reward over time through an ideal network, Olaf and FIFO at 40 and 20 Gbps",
	Needs:    "30 min",
	Long:     true,
	Run:      runFig8,
	Parts:    trainings(fig8Schemes, 5, 1),
}

// fig8Periods is the length of a training run as a multiple of a worker's mean period.
const fig8Periods = 100

// Fig8 returns the training schemes of Fig. 8. They have 24 workers in 12 clusters, with one model each, which offer 60
// Gbps to a queue with 8 slots. In addition to the figure's networks there is Olaf with a server that multiplies the
// step for a merged update by the number of updates in it.
func Fig8() []scheme {
	base := rl.Defaults()
	base.Placement = pktgen.Placement{Workers: 24, Clusters: 12}
	base.PPO.Steps, base.PPO.LearnRate = 384, 3e-4
	base.Iterations = 4 * fig8Periods // only a limit; time ends the training
	frame := olaf.FrameSize(rl.Params)
	period := olaf.Duration(float64(base.Workers) * float64(frame.Bits()) / float64(base.Network.Rate) * float64(olaf.Second))
	base.Until = fig8Periods * period
	through := func(name, kind string, rate olaf.Rate, weigh bool) scheme {
		c := base
		c.Network.Kind, c.Network.OutRate, c.WeighByCount = kind, rate, weigh
		return scheme{name, c}
	}
	ideal := through("ideal", "fifo", engine.Line.Rate(), false)
	ideal.Config.Network.Slots = 1024 // never full: the same periods as the others, without loss
	return []scheme{
		ideal,
		through("olaf 40G", "olaf", 40*olaf.Gbps, false),
		through("fifo 40G", "fifo", 40*olaf.Gbps, false),
		through("olaf 20G", "olaf", 20*olaf.Gbps, false),
		through("fifo 20G", "fifo", 20*olaf.Gbps, false),
		through("olaf 20G weighted", "olaf", 20*olaf.Gbps, true),
	}
}

// fig8Schemes returns the schemes in Fig. 8, shortened if the options ask for it.
func fig8Schemes(o *experiments.Options) []scheme {
	schemes := Fig8()
	if o.Quick {
		for i := range schemes {
			schemes[i].Config.Until /= 5
			schemes[i].Config.Iterations /= 5
		}
	}
	return schemes
}

func runFig8(ctx context.Context, o experiments.Options) (result.Report, error) {
	f, err := trainFig8(ctx, &o, "olaf/fig8", "Fig. 8", fig8Schemes(&o))
	if f == nil {
		return nil, err
	}
	ours := paper.Ours{}
	for _, pair := range []struct{ id, rate, olaf, fifo string }{{"40g", "40G", "olaf 40G", "fifo 40G"}, {"20g", "20G", "olaf 20G", "fifo 20G"}} {
		ours["olaf/fig8.reward_over_fifo."+pair.id] = paper.Of(f.over(pair.rate, pair.olaf, pair.fifo))
	}
	ours["olaf/fig8.olaf.same_at_every_rate"] = paper.Of(gains(f.schemes, f.done, "olaf 40G", "olaf 20G", fig8Spans, f.untilNS))
	proxy, failed := f.correlateAges()
	if failed != nil {
		return nil, failed
	}
	ours["olaf/fig8.age.proxy_of_time_to_reward"] = paper.Of(proxy)
	if o.Quick {
		ours.MarkShortened("a fifth of the time")
	}
	f.Compare(ours)
	f.Say("the paper does not state the base of its percentages; rewards here are below zero for most of the " +
		"run, where their ratio means nothing, so our percentages are relative to the reward gained since the " +
		"first tenth of the ideal network's run")
	f.Say("merging k gradients in the queue turns k steps into one, so Olaf learns more slowly than the ideal " +
		"network even without loss; with “weighted” the server multiplies the step by the count, which the paper " +
		"does not do")
	return f.Result, err
}

// fig8Trainings is a figure that compares training runs through congested networks with those through an ideal network.
type fig8Trainings struct {
	*result.Result
	schemes []scheme
	done    [][]*learned // by scheme, then seed
	final   map[string]results.Statistic
	untilNS int64
}

// fig8Spans is the number of time spans over which the rewards are averaged.
const fig8Spans = 10

// trainFig8 trains the schemes, draws their rewards and describes what happened to their updates. It returns nil if no
// training run was finished.
func trainFig8(ctx context.Context, o *experiments.Options, name, artefact string, schemes []scheme) (*fig8Trainings, error) {
	f := &fig8Trainings{schemes: schemes, final: map[string]results.Statistic{}, untilNS: int64(schemes[0].Config.Until.NS())}
	var err error
	if f.Result, f.done, _, err = trainFigure(ctx, o, name, artefact, schemes, 1); f.Result == nil {
		return nil, err
	}

	periodNS := float64(f.untilNS) / fig8Periods
	if o.Quick {
		periodNS *= 5
	}
	reward := result.Panel{Name: "Reward over time", XLabel: "mean periods", YLabel: "mean reward"}
	for i, s := range schemes {
		curve := overTime(s.Name, f.done[i], fig8Spans, f.untilNS, periodNS)
		reward.Series = append(reward.Series, curve)
		f.final[s.Name] = curve.Last()
		var lost, merged []float64
		for _, l := range f.done[i] {
			if l != nil && l.Network.In() > 0 {
				in, a, m := float64(l.Network.In()), float64(l.Network.Class[engine.Appended]), float64(l.Network.Class[engine.Aggregated])
				lost, merged = append(lost, 100*(in-a-m)/in), append(merged, 100*m/in)
			}
		}
		l, m := result.Describe(lost), result.Describe(merged)
		f.Say("%s: lost %s %%, merged %s %% of the updates", s.Name, text.FormatRounded(&l, 1), text.FormatRounded(&m, 1))
	}
	f.Panels = []result.Panel{reward}
	return f, err
}

// finalReward returns the mean reward in the last tenth of a training run.
func (f *fig8Trainings) finalReward(l *learned) float64 {
	return rl.Periods(l.Curves, fig8Spans, f.untilNS)[fig8Spans-1]
}

// over adds a statement about the difference between the final rewards of two schemes at an output rate, and returns
// the gain of the first scheme over the second.
func (f *fig8Trainings) over(rate, olaf, fifo string) results.Statistic {
	ol, fi := f.final[olaf], f.final[fifo]
	gain := gains(f.schemes, f.done, olaf, fifo, fig8Spans, f.untilNS)
	f.Say("at %s Olaf ends at %s and FIFO at %s: a difference of %.0f in reward; relative to the untrained "+
		"policy Olaf gains %s %% more than FIFO", rate,
		text.FormatRounded(&ol, 1), text.FormatRounded(&fi, 1), float64(ol.Mean-fi.Mean), text.FormatRounded(&gain, 1))
	return gain
}

// gains returns, seed by seed, how much more reward in per cent one scheme gained than another. The gain is counted
// from the first tenth of the ideal network's run to the end.
func gains(schemes []scheme, done [][]*learned, better, than string, spans int, untilNS int64) results.Statistic {
	curves := map[string][]*learned{}
	for i, s := range schemes {
		curves[s.Name] = done[i]
	}
	var values []float64
	for seed, l := range curves["ideal"] {
		a, b := curves[better][seed], curves[than][seed]
		if l == nil || a == nil || b == nil {
			continue
		}
		end := func(l *learned) float64 { return rl.Periods(l.Curves, spans, untilNS)[spans-1] }
		if start := rl.Periods(l.Curves, spans, untilNS)[0]; end(b) > start {
			values = append(values, 100*((end(a)-start)/(end(b)-start)-1))
		}
	}
	return result.Describe(values)
}
