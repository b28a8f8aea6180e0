package versus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// learner is a system through which workers train, drawn as one curve.
type learner struct {
	name, system, mode string
	options            system.Options
	// step multiplies the learning rate; 0 leaves it unchanged.
	step float32
}

// Factors for the controls. A synchronous system makes one step per round of one gradient per worker. OLAF makes
// olafSteps (the run prints the measured number). If each of a round's eight gradients counted alone, they would make
// eight steps.
const (
	olafSteps = 3.6
	allSteps  = 8
)

// learners lists the compared systems. The open-loop systems come first, with the bottleneck for which OLAF was
// published. The closed-loop systems follow, on 10 Gbps. The last two are controls: the same synchronous system with
// longer steps. They separate the effect of the number of steps from the effect of the order of updates.
var learners = []learner{
	{"fifo", "fifo", "", system.Options{}, 0},
	{"olaf", "olaf", "", system.Options{}, 0},
	{"iswitch async", "iswitch", "async", system.Options{H: 4, Bound: 3}, 0},
	{"iswitch sync", "iswitch", "sync", system.Options{}, 0},
	{"switchml", "switchml", "sync", system.Options{}, 0},
	{"atp", "atp", "sync", system.Options{}, 0},
	{fmt.Sprintf("iswitch sync, step × %g", olafSteps), "iswitch", "sync", system.Options{}, olafSteps},
	{fmt.Sprintf("iswitch sync, step × %d", allSteps), "iswitch", "sync", system.Options{}, allSteps},
}

// trained contains the part of a training result that the figure uses.
type trained struct {
	Curves [][]rl.Point `json:"curves"`
	EndNS  int64        `json:"end_ns"`
	// Steps counts the steps of the weights.
	Steps uint64 `json:"steps"`
}

// training contains all parameters of one training run in the comparison.
type training struct {
	Learner string    `json:"learner"`
	Config  rl.Config `json:"config"`
	Rate    olaf.Rate `json:"rate"`
}

// rewardConfig contains the parameters of the comparison of rewards.
type rewardConfig struct {
	Training rl.Config  `json:"training"`
	Learners []string   `json:"learners"`
	Rate     olaf.Rate  `json:"rate"`
	Seeds    []uint64   `json:"seeds"`
	Ends     [][]uint64 `json:"virtual_ns"` // by learner and seed
}

// rewardSeeds is the number of seeds that the comparison of rewards needs before it judges the order of systems.
const rewardSeeds = 5

// rewardOf returns the configuration that the options select.
func rewardOf(o *experiments.Options) *rewardConfig {
	c := &rewardConfig{Training: rl.Defaults(), Rate: 10 * olaf.Gbps, Seeds: o.ListSeeds(rewardSeeds, 2)}
	if o.Quick {
		c.Training.Iterations = 30
	}
	return c
}

// training returns the parameters of a learner's training run with one seed.
func (c *rewardConfig) training(l *learner, seed uint64) training {
	t := training{l.name, c.Training, c.Rate}
	t.Config.Seed = seed
	if l.step > 0 {
		t.Config.PPO.LearnRate *= l.step
	}
	return t
}

// rewardParts divides the comparison into parts, one per training run.
func rewardParts(set system.Set) *experiments.Parts {
	return experiments.NewParts("versus/training", func(o *experiments.Options, add func(string, training)) error {
		c := rewardOf(o)
		for i := range learners {
			for _, seed := range c.Seeds {
				add(fmt.Sprintf("%s, seed %d", learners[i].name, seed), c.training(&learners[i], seed))
			}
		}
		return nil
	}, func(ctx context.Context, t training) (*trained, error) { return t.carryOut(ctx, set) })
}

// carryOut carries out one training run.
func (t *training) carryOut(ctx context.Context, set system.Set) (*trained, error) {
	at := slices.IndexFunc(learners, func(l learner) bool { return l.name == t.Learner })
	if at < 0 {
		return nil, fmt.Errorf("there is no learner called %q", t.Learner)
	}
	return learners[at].train(ctx, set, t.Config, t.Rate)
}

func runReward(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	c := rewardOf(&o)
	f := experiments.NewResult("versus/reward", "Reward", &o, c)
	all := make([][]trained, len(learners))
	longest := int64(0)
	for i := range learners {
		c.Learners, c.Ends = append(c.Learners, learners[i].name), append(c.Ends, nil)
		for k, seed := range c.Seeds {
			t, done := c.training(&learners[i], seed), new(trained)
			found, err := o.FindDone(&t, done)
			if err == nil && !found {
				done, err = t.carryOut(ctx, set)
			}
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], *done)
			c.Ends[i] = append(c.Ends[i], uint64(done.EndNS))
			longest = max(longest, done.EndNS)
			o.ReportProgress(i*len(c.Seeds)+k+1, len(learners)*len(c.Seeds))
		}
	}
	f.Short = result.TooShort(len(c.Seeds), rewardSeeds)
	f.Panels = rewardPanels(all, c.Training.Iterations, longest)
	f.Say("%s, %s each, with the same pilots, seeds and step size; a step is the mean of the gradients in an "+
		"update, so an update of a synchronous system counts once for all workers",
		olaf.Plural(c.Training.Workers, "worker"), olaf.Plural(c.Training.Iterations, "gradient"))
	f.Say("steps of the weights per round with one gradient per worker: %s; an order of systems with unequal "+
		"steps does not show freshness", stepsPerRound(all, c.Training.Iterations))
	f.Say("the rows with step × %g and × %d are controls: the synchronous system with OLAF's total step, and as "+
		"if every gradient made a step", olafSteps, allSteps)
	f.Say("FIFO and OLAF: updates as they come, 60 Gbps offered to 20 Gbps out; all others: 10 Gbps to one "+
		"switch, hosts cost no time; the slowest worker takes %.1f times as long as the fastest", c.Training.Spread)
	f.Say("progress is counted in gradients per worker and in virtual time, never in updates, which contain different numbers of gradients")
	return f, nil
}

// stepsPerRound returns a list with the mean number of steps that each learner makes per round.
func stepsPerRound(all [][]trained, iterations int) string {
	var each []string
	for i := range learners {
		if learners[i].step > 0 {
			continue // a control makes the same steps as the system that it scales
		}
		sum := 0.0
		for _, one := range all[i] {
			sum += float64(one.Steps)
		}
		each = append(each, fmt.Sprintf("%s %.1f", learners[i].name, sum/float64(len(all[i])*iterations)))
	}
	return strings.Join(each, ", ")
}

// rewardPanels returns the panels that show the rewards over the number of gradients and over time.
func rewardPanels(all [][]trained, iterations int, longest int64) []result.Panel {
	const spans = 20
	block := max(1, iterations/spans)
	gradients := result.Panel{Name: "Reward over gradients", XLabel: "gradients of a worker",
		YLabel: fmt.Sprintf("mean reward of %d gradients", block)}
	time := result.Panel{Name: "Reward over virtual time", XLabel: "virtual time [s]", YLabel: "mean reward"}
	for i := range learners {
		g, t := result.Series{Name: learners[i].name}, result.Series{Name: learners[i].name}
		var byBlock, bySpan [][]float64
		for _, one := range all[i] {
			byBlock = append(byBlock, rl.Blocks(one.Curves, block))
			upTo := int((one.EndNS*spans + longest - 1) / longest) // spans after its end have no value
			bySpan = append(bySpan, rl.Periods(one.Curves, spans, longest)[:upTo])
		}
		for b := range byBlock[0] {
			g.X, g.Y = append(g.X, float64((b+1)*block)), append(g.Y, describePoint(byBlock, b))
		}
		for b := range spans {
			t.X, t.Y = append(t.X, float64(longest)/1e9*float64(b+1)/spans), append(t.Y, describePoint(bySpan, b))
		}
		gradients.Series, time.Series = append(gradients.Series, g), append(time.Series, t)
	}
	return []result.Panel{gradients, time}
}

// describePoint returns a statistic, over seeds, of one point of the curves.
func describePoint(curves [][]float64, at int) results.Statistic {
	var values []results.Float
	for _, c := range curves {
		if at < len(c) {
			values = append(values, results.Float(c[at]))
		}
	}
	return results.Describe(values, "no training run got that far")
}

// train carries out one training run through the learner's system.
func (l *learner) train(ctx context.Context, set system.Set, c rl.Config, rate olaf.Rate) (*trained, error) {
	s, err := set.Find(l.system)
	if err != nil {
		return nil, err
	}
	if l.mode == "" {
		c.Network.Kind = s.Discipline
		out, err := rl.Train(ctx, c, nil)
		if err != nil {
			return nil, err
		}
		return &trained{out.Curves, out.EndNS, out.Servers[0].Versions}, nil
	}
	mode, err := s.Mode(l.mode)
	if err != nil {
		return nil, err
	}
	spec := &job.Spec{System: s, Mode: mode, Options: l.options}
	spec.Network.Link = closedloop.Link{Rate: rate, Delay: 500 * olaf.Nanosecond, Overhead: overhead}
	out, err := job.Train(ctx, c, spec, nil)
	if err != nil {
		return nil, err
	}
	switch {
	case out.Network.Hung:
		return nil, fmt.Errorf("%w: %s", job.ErrHung, l.name)
	case !out.Equal:
		return nil, errors.New(l.name + ": workers ended with different weights") // this would be a bug in an endpoint
	}
	return &trained{out.Curves, int64(out.Network.Duration), out.Network.Updates}, nil
}
