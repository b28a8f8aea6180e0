package field

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/rl/ppo"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results/text"
)

// Comparison is the same training through several systems and under several seeds: in the simulated network, and on a testbed beside
// it where there is one.
type Comparison struct {
	Training rl.Config                     `json:"training"` // of the first system and seed
	Systems  []string                      `json:"systems"`
	Seeds    []uint64                      `json:"seeds"`
	Device   string                        `json:"device,omitempty"` // where packets are real; empty for none
	Bed      *testbed.Testbed              `json:"-"`
	Options  Options                       `json:"-"`
	Quick    bool                          `json:"-"`
	Say      func(format string, a ...any) `json:"-"` // what goes on; needed
	Told     func(reward float64)          `json:"-"` // hears of every update; needed
}

// Points is in how many parts a learning curve is drawn.
const Points = 10

// Of is the training of a system under a seed.
func (c *Comparison) Of(system string, seed uint64) rl.Config {
	t := c.Training
	t.Network.Kind, t.Seed = system, seed
	return t
}

// Takes is how long one training takes on a testbed: the slowest worker flies all its iterations.
func Takes(c *rl.Config) time.Duration {
	frequency := 0.0 // updates of all workers, in those of the slowest one
	for k := range c.Workers {
		frequency += c.Speed(c.Workers-1) / c.Speed(k)
	}
	one := float64(Update().Bits()) / float64(c.Network.Rate)
	return time.Duration(float64(c.Iterations) * frequency * one * float64(time.Second))
}

// Updates is how many updates all trainings together have.
func (c *Comparison) Updates() int {
	n := c.Training.Workers * c.Training.Iterations * len(c.Systems) * len(c.Seeds)
	if c.Device != "" {
		n *= 2
	}
	return n
}

// curve is one system in one place, over seeds.
type curve struct {
	name    string
	rewards [][]float64 // by seed
	greedy  []float64
	lost    []float64 // per cent of the updates
	inside  []float64 // updates in a delivered one
}

func (k *curve) add(c *rl.Config, curves [][]rl.Point, greedy, lost, inside float64) {
	k.rewards = append(k.rewards, rl.Blocks(curves, max(1, c.Iterations/Points)))
	k.greedy, k.lost, k.inside = append(k.greedy, greedy), append(k.lost, lost), append(k.inside, inside)
}

// series is the curve with its intervals.
func (k *curve) series(c *rl.Config) experiments.Series {
	s := experiments.Series{Name: k.name}
	block := max(1, c.Iterations/Points)
	for i := range k.rewards[0] {
		var values []float64
		for _, r := range k.rewards {
			if i < len(r) {
				values = append(values, r[i])
			}
		}
		s.X = append(s.X, float64(min((i+1)*block, c.Iterations)))
		s.Y = append(s.Y, experiments.Describe(values))
	}
	return s
}

// flights is how many episodes judge a policy.
const flights = 20

// Run carries all trainings out. One on a testbed that must not be used makes the figure invalid and goes into no curve.
func (c *Comparison) Run(ctx context.Context) (*experiments.Figure, error) {
	f := experiments.NewFigure("train", "learning curves", &experiments.Options{Quick: c.Quick}, c)
	var curves []*curve
	var invalid []error
	for _, system := range c.Systems {
		simulated := &curve{name: system + ", simulated"}
		real := &curve{name: system + ", real packets"}
		seen := witnessed{period: Takes(&c.Training) / time.Duration(c.Training.Iterations)}
		for _, seed := range c.Seeds {
			t := c.Of(system, seed)
			if err := c.simulate(ctx, &t, simulated); err != nil {
				return nil, err
			}
			if c.Bed == nil {
				continue
			}
			c.Say("%s, seed %d: %d workers and a server as processes on %s, about %v", system, seed, t.Workers, c.Device, Takes(&t).Round(time.Second))
			out, err := Train(ctx, t, c.Bed, c.options())
			switch {
			case errors.Is(err, ErrInvalid):
				invalid = append(invalid, fmt.Errorf("%s, seed %d: %w", system, seed, err))
				continue
			case err != nil:
				return nil, err
			}
			c.field(&t, out, real)
			seen.add(out)
		}
		for _, k := range []*curve{real, simulated} {
			if len(k.rewards) > 0 {
				curves = append(curves, k)
			}
		}
		seen.say(f, system)
	}
	c.draw(f, curves)
	if err := errors.Join(invalid...); err != nil {
		f.Fail(err)
	}
	return f, nil
}

// options let every update of a worker be heard.
func (c *Comparison) options() Options {
	o := c.Options
	o.Told = func(_ int, p rl.Point) { c.Told(p.Reward) }
	return o
}

// simulate trains in virtual time, through a queue without engine cycles, which a kernel has none of.
func (c *Comparison) simulate(ctx context.Context, t *rl.Config, into *curve) error {
	out, err := rl.Train(ctx, *t, told(c.Told))
	if err != nil {
		return err
	}
	n := out.Network
	into.add(t, out.Curves, rl.Evaluate(&out.Weights[0], flights), share(n.In()-n.SumReleased, n.In()), ratio(n.SumReleased, n.Released))
	return nil
}

// field takes a training on a testbed into its curve.
func (c *Comparison) field(t *rl.Config, out *Outcome, into *curve) {
	q := out.Queue
	into.add(t, out.Curves, out.Server.Greedy, share(q["in"]-q["delivered_updates"], q["in"]), ratio(q["delivered_updates"], q["delivered_frames"]))
}

// told lets a function hear of every update.
type told func(reward float64)

// Generated implements rl.Observer.
func (t told) Generated(u *trace.Update, _ *ppo.Weights) error {
	t(u.Reward)
	return nil
}

func share(part, of uint64) float64 { return 100 * ratio(part, of) }

func ratio(part, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// draw makes the panels.
func (c *Comparison) draw(f *experiments.Figure, curves []*curve) {
	panel := experiments.Panel{Name: "Learning curves", XLabel: "iterations of a worker", YLabel: "mean reward of all workers"}
	for _, k := range curves {
		panel.Series = append(panel.Series, k.series(&c.Training))
	}
	f.Panels = append(f.Panels, panel)
	n := &c.Training.Network
	f.Say("%d workers of %d clusters offer %v to an output of %v, %d slots; %s; each iteration's mean over all workers, ± the 95 %% interval over seeds",
		c.Training.Workers, c.Training.Clusters, n.Rate, n.OutRate, n.Slots, olaf.Plural(len(c.Seeds), "seed"))
	for _, k := range curves {
		greedy, lost, inside := experiments.Describe(k.greedy), experiments.Describe(k.lost), experiments.Describe(k.inside)
		f.Say("%s: cluster 0 without exploring %s; %s %% of the updates lost or replaced, %s in each that was delivered", k.name,
			text.Rounded(&greedy, 1), text.Rounded(&lost, 1), text.Rounded(&inside, 1))
	}
	if c.Bed != nil {
		f.Say("with real packets an update travels in %d, each of which is merged, lost and stepped by itself; simulated it is one frame", Layout().Packets())
	}
}

// witnessed is what testbeds said of their trainings.
type witnessed struct {
	runs      int
	decisions olaf.Decisions
	late      olaf.Lateness
	workers   olaf.Lateness
	period    time.Duration // of the slowest worker, on average
	withheld  int
	why       string
}

func rounded(ns int64) time.Duration { return time.Duration(ns).Round(time.Microsecond) }

func (w *witnessed) add(out *Outcome) {
	w.runs++
	if out.Decisions != nil {
		w.decisions.Add(out.Decisions)
	}
	if p := out.Pacing; p != nil {
		w.late.Worst(&p.LatenessNS)
		w.note(p)
	}
	for i := range out.Workers {
		w.workers.Worst(&out.Workers[i].LateNS)
	}
}

func (w *witnessed) note(p *fpga.Pacing) {
	if p.Withheld != "" {
		w.withheld++
		w.why = p.Withheld
	}
}

func (w *witnessed) say(f *experiments.Figure, system string) {
	if w.runs == 0 {
		return
	}
	f.Say("%s: %d of %d decisions as the engine's; packets left late by %v (p99); the latest worker handed over late by %v (p50), %v (p99) of a period of %v", system,
		w.decisions.Equal, w.decisions.Checked, time.Duration(w.late.P99), rounded(w.workers.P50), rounded(w.workers.P99), w.period.Round(time.Millisecond))
	if w.withheld > 0 {
		f.Say("%s: in %s the output was not in time: %s", system, olaf.Plural(w.withheld, "training"), w.why)
	}
}
