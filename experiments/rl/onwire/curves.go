package onwire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// Comparison describes the same training with several systems and seeds. It runs in the simulated network and, if there
// is a testbed, also on the testbed.
type Comparison struct {
	Training rl.Config                     `json:"training"` // training configuration of the first system and seed
	Systems  []string                      `json:"systems"`
	Seeds    []uint64                      `json:"seeds"`
	Device   string                        `json:"device,omitempty"` // where packets are real; may be empty
	Job      json.RawMessage               `json:"job,omitempty"`    // of workers that wait for sums, in the caller's format; nil through a queue
	Bed      *testbed.Testbed              `json:"-"`
	Options  Options                       `json:"-"`
	Quick    bool                          `json:"-"`
	Progress func(format string, a ...any) `json:"-"` // reports progress; required
	OnUpdate func(reward float64)          `json:"-"` // receives every update; required
}

// experiment is the experiment name under which comparisons are stored.
const experiment = "train"

// Axis labels for learning curves.
const (
	xLabel = "iterations of a worker"
	yLabel = "mean reward of all workers"
)

// Of returns the training configuration for one system and one seed.
func (c *Comparison) Of(system string, seed uint64) rl.Config {
	t := c.Training
	t.Network, t.Seed = t.Network.Through(system), seed
	return t
}

// TrainingTime returns the duration of one training run on a testbed. It is the time in which the slowest worker
// completes all its iterations.
func TrainingTime(c *rl.Config) time.Duration {
	frequency := 0.0 // updates of all workers per update of the slowest one
	for k := range c.Workers {
		frequency += c.Speed(c.Workers-1) / c.Speed(k)
	}
	one := float64(UpdateSize().Bits()) / float64(c.Network.Rate)
	return time.Duration(float64(c.Iterations) * frequency * one * float64(time.Second))
}

// Updates returns the total number of updates in all training runs.
func (c *Comparison) Updates() int {
	n := c.Training.Workers * c.Training.Iterations * len(c.Systems) * len(c.Seeds)
	if c.Device != "" {
		n *= 2
	}
	return n
}

// curve is the learning curve of one system in one kind of network, over seeds.
type curve struct {
	name      string
	trainings []*Training
}

// series returns the curve with its confidence intervals.
func (k *curve) series(c *rl.Config) result.Series {
	s := result.Series{Name: k.name}
	block := c.Tenth()
	rewards := olaf.Map(k.trainings, func(t *Training) []float64 { return rl.Blocks(t.Curves, block) })
	for i := range rewards[0] {
		var values []float64
		for _, r := range rewards {
			if i < len(r) {
				values = append(values, r[i])
			}
		}
		s.X = append(s.X, float64(min((i+1)*block, c.Iterations)))
		s.Y = append(s.Y, result.Describe(values))
	}
	return s
}

// over returns a statistic of a number over all training runs in the curve.
func (k *curve) over(of func(*Training) float64) results.Statistic {
	return result.Describe(olaf.Map(k.trainings, of))
}

// Run carries out all training runs. An invalid run on a testbed makes the report invalid and is not included in the
// curves.
func (c *Comparison) Run(ctx context.Context) (*Report, error) {
	r := &Report{}
	for _, system := range c.Systems {
		for _, seed := range c.Seeds {
			t := c.Of(system, seed)
			simulated, err := c.simulate(ctx, &t)
			if err != nil {
				return nil, err
			}
			r.Trainings = append(r.Trainings, simulated)
			if c.Bed == nil {
				continue
			}
			c.Progress("%s, seed %d: %d workers and a server as processes on %s, about %v", system, seed, t.Workers,
				c.Device, TrainingTime(&t).Round(time.Second))
			out, err := Train(ctx, t, c.Bed, c.options())
			if err != nil && !errors.Is(err, ErrInvalid) {
				return nil, err
			}
			r.Trainings = append(r.Trainings, realTraining(&t, out))
		}
	}
	r.Result = c.figure(r.Trainings)
	return r, nil
}

// options returns the options for a testbed, with a callback for every update.
func (c *Comparison) options() Options {
	o := c.Options
	o.OnUpdate = func(_ int, p rl.Point) { c.OnUpdate(p.Reward) }
	return o
}

// simulate trains in virtual time. The queue has no engine cycles, like a queue in the kernel.
func (c *Comparison) simulate(ctx context.Context, t *rl.Config) (*Training, error) {
	out, err := rl.Train(ctx, *t, rewardObserver(c.OnUpdate))
	if err != nil && !errors.Is(err, rl.ErrDiverged) {
		return nil, err
	}
	n := out.Network
	return &Training{Invalid: invalidBy(err),
		System: t.Network.Kind, Seed: t.Seed, Curves: out.Curves, Greedy: rl.Evaluate(&out.Weights[0], rl.Flights),
		LostPct: percentage(n.In()-n.SumReleased, n.In()), Inside: quotient(n.SumReleased, n.Released),
		ArrivedPct: arrivedPct(t, out.Places),
	}, nil
}

// invalidBy returns the reasons why a training run is invalid. The only possible reason is its error.
func invalidBy(err error) []string {
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}

// realTraining returns the result of a training run on a testbed, with the counts from its device and hosts.
func realTraining(t *rl.Config, out *Outcome) *Training {
	q := out.Queue
	f := &Training{
		System: t.Network.Kind, Seed: t.Seed, Real: true, Curves: out.Curves, Greedy: out.Server.Greedy,
		LostPct: percentage(q["in"]-q["delivered_updates"], q["in"]),
		Inside:  quotient(q["delivered_updates"], q["delivered_frames"]), ArrivedPct: arrivedPct(t, out.Server.Places),
		Counts: q, Identities: out.Checks, Decisions: out.Decisions, Pacing: out.Pacing,
		WorkersLateNS: new(olaf.Quantiles), Invalid: out.Invalid,
	}
	for i := range out.Workers {
		f.WorkersLateNS.Worst(&out.Workers[i].LateNS)
	}
	return f
}

// arrivedPct returns, for each place of a packet in an update, the percentage of a training run's updates that reached
// the servers.
func arrivedPct(t *rl.Config, places []uint64) []float64 {
	return olaf.Map(places, func(n uint64) float64 { return percentage(n, uint64(t.Workers*t.Iterations)) })
}

// rewardObserver is a function that is called with the reward of every update.
type rewardObserver func(reward float64)

// OnUpdate implements rl.Observer. It calls t with the update's reward.
func (t rewardObserver) OnUpdate(u *trace.Update, _ *rl.Weights) error {
	t(u.Reward)
	return nil
}

func percentage(part, of uint64) float64 { return 100 * quotient(part, of) }

func quotient(part, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// figure draws the curves of training runs. It uses nothing except the data of the runs.
func (c *Comparison) figure(all []*Training) *result.Result {
	f := experiments.NewResult(experiment, "learning curves", &experiments.Options{Quick: c.Quick}, c)
	panel := result.Panel{Name: "Learning curves", XLabel: xLabel, YLabel: yLabel}
	curves := c.curves(all)
	for _, k := range curves {
		panel.Series = append(panel.Series, k.series(&c.Training))
	}
	f.Panels = append(f.Panels, panel)
	if c.Job != nil {
		c.saySums(f, curves)
	} else {
		c.sayQueues(f, curves)
	}
	var invalid []error
	out := 0
	for _, t := range all {
		if len(t.Invalid) > 0 {
			out++
		}
		for _, why := range t.Invalid {
			invalid = append(invalid, fmt.Errorf("%s, seed %d: %w: %s", t.System, t.Seed, ErrInvalid, why))
		}
	}
	if err := errors.Join(invalid...); err != nil {
		f.Say("%d of %s are invalid and excluded", out, olaf.Plural(len(all), "training"))
		f.Fail(err)
	}
	return f
}

// curves returns the curves of every system. The curve with real packets comes before the simulated one. Invalid runs
// are left out.
func (c *Comparison) curves(all []*Training) (curves []*curve) {
	for _, system := range c.Systems {
		for _, real := range []bool{true, false} {
			k := new(curve)
			for _, t := range all {
				if t.System == system && t.Real == real && len(t.Invalid) == 0 {
					k.name, k.trainings = t.name(), append(k.trainings, t)
				}
			}
			if len(k.trainings) > 0 {
				curves = append(curves, k)
			}
		}
	}
	return curves
}

// sayQueues adds statements to f about training through queues.
func (c *Comparison) sayQueues(f *result.Result, curves []*curve) {
	period := TrainingTime(&c.Training) / time.Duration(c.Training.Iterations)
	for _, k := range curves {
		if k.trainings[0].Real {
			k.sayWitnessed(f, period)
		}
	}
	n := &c.Training.Network
	f.Say("%d workers of %d clusters offer %v to an output of %v, %d slots; %s; "+
		"each iteration's mean over all workers, ± the 95 %% interval over seeds",
		c.Training.Workers, c.Training.Clusters, n.Rate, n.OutRate, n.Slots, olaf.Plural(len(c.Seeds), "seed"))
	for _, k := range curves {
		greedy, lost := k.over(func(t *Training) float64 { return t.Greedy }),
			k.over(func(t *Training) float64 { return t.LostPct })
		inside := k.over(func(t *Training) float64 { return t.Inside })
		f.Say("%s: cluster 0 without exploring %s; %s %% of the updates lost or replaced, %s in each delivered "+
			"one", k.name,
			text.FormatRounded(&greedy, 1), text.FormatRounded(&lost, 1), text.FormatRounded(&inside, 1))
		if places := k.placeShares(); len(places) > 1 {
			f.Say("%s: of the packets of an update, from the first to the last, %s %% arrived", k.name,
				strings.Join(places, ", "))
		}
	}
	if lanes := n.Lanes; lanes > 0 {
		f.Say("an update is split into packets of %d values, which are merged, lost and applied separately", lanes)
	}
}

// placeShares returns texts with the percentages of updates that arrived, by the place of their packets.
func (k *curve) placeShares() (all []string) {
	for i := range k.trainings[0].ArrivedPct {
		var values []float64
		for _, t := range k.trainings {
			if i < len(t.ArrivedPct) { // a file may contain fewer
				values = append(values, t.ArrivedPct[i])
			}
		}
		pct := result.Describe(values)
		all = append(all, text.FormatRounded(&pct, 1))
	}
	return all
}

func roundToUS(ns int64) time.Duration { return time.Duration(ns).Round(time.Microsecond) }

// sayWitnessed adds statements to f about the quality of training runs on testbeds. period is the slowest worker's mean
// period.
func (k *curve) sayWitnessed(f *result.Result, period time.Duration) {
	var decisions olaf.Decisions
	var late, workers olaf.Quantiles
	withheld, why := 0, ""
	for _, t := range k.trainings {
		if t.Decisions != nil {
			decisions.Add(t.Decisions)
		}
		if p := t.Pacing; p != nil {
			late.Worst(&p.LatenessNS)
			if p.Withheld != "" {
				withheld++
				why = p.Withheld
			}
		}
		if t.WorkersLateNS != nil {
			workers.Worst(t.WorkersLateNS)
		}
	}
	system := k.trainings[0].System
	f.Say("%s: %d of %d decisions as the engine's; packets left late by %v (p99); "+
		"the latest worker handed over late by %v (p50), %v (p99) of a period of %v", system,
		decisions.Equal, decisions.Checked, time.Duration(late.P99), roundToUS(workers.P50), roundToUS(workers.P99),
		period.Round(time.Millisecond))
	if withheld > 0 {
		f.Say("%s: in %s the output was not in time: %s", system, olaf.Plural(withheld, "training"), why)
	}
}
