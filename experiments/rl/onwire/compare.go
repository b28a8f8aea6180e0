package onwire

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/store"
)

// ErrKind reports that a stored comparison has no training runs of the requested kind.
var ErrKind = olaf.NewError(olaf.Usage, "no such trainings")

// Side is a stored comparison that is compared with another one. It contains the training runs, each as a single run,
// and their curves.
type Side struct {
	compare.Side
	curves []*curve
	config *Comparison
}

// SideOf returns a stored comparison as one side of a new comparison. If kind is set, the side contains only training
// runs of that kind, named after their systems, so that one kind can be compared with the other. Otherwise it contains
// both kinds under different names. The error matches ErrKind or comes from the store.
func SideOf(f *store.Folder, kind string) (*Side, error) {
	c, r, err := Load(f)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	s := &Side{Side: compare.Side{Name: f.ID(), Experiment: f.Manifest.Experiment, Config: config,
		Partial: f.Manifest.Partial}, config: c}
	if kind != "" {
		s.Name += ", " + titles[kind]
	}
	for _, t := range r.Trainings {
		if kind == "" || kind == t.kind() {
			s.Runs = append(s.Runs, c.run(t, kind == ""))
		}
	}
	if len(s.Runs) == 0 {
		return nil, fmt.Errorf("%w: %s has no training that is %s; trainings are %s", ErrKind, f.ID(), kind,
			strings.Join(AllKinds(), " or "))
	}
	s.curves = slices.DeleteFunc(c.curves(r.Trainings),
		func(k *curve) bool { return kind != "" && k.trainings[0].kind() != kind })
	return s, nil
}

// run converts a training run to a form that can be compared. If named is set, the kind is part of its name.
func (c *Comparison) run(t *Training, named bool) results.Run {
	r := results.Run{Queue: t.System, Seed: t.Seed, Declared: new(metric.Declaration), Invalid: t.Invalid,
		Decisions: t.Decisions}
	if named {
		r.Queue = t.name()
	}
	all := c.numbers(t)
	for i := range all {
		r.Declared.Metrics = append(r.Declared.Metrics, &all[i].metric)
	}
	r.Metrics = metric.NewValues(r.Declared.Metrics, func(i int) metric.Float { return all[i].value })
	return r
}

// number is a metric of a training run with its value.
type number struct {
	metric metric.Metric
	value  metric.Float
}

// numbers returns the learning curve of a training run, in parts, and the counts of its updates. All runs in a
// comparison have the same metrics even if they ended early. A difference would suggest that a run came from another
// build.
func (c *Comparison) numbers(t *Training) (all []number) {
	block := c.Training.Tenth()
	add := func(value float64, m metric.Metric) {
		m.Of = func(*metric.Measured) metric.Float { return metric.Missing() } // training runs measure themselves
		all = append(all, number{m, metric.Float(value)})
	}
	rewards := rl.Blocks(t.Curves, block)
	for i := range (c.Training.Iterations + block - 1) / block {
		v := math.NaN()
		if i < len(rewards) {
			v = rewards[i]
		}
		first, last := i*block+1, min((i+1)*block, c.Training.Iterations)
		title := fmt.Sprintf("Reward, iterations %d to %d", first, last)
		if first == last {
			title = fmt.Sprintf("Reward, iteration %d", last)
		}
		add(v, metric.Metric{Name: fmt.Sprintf("reward_%d", last), Title: title,
			Doc: "mean reward of all workers in these iterations"})
	}
	add(t.Greedy, metric.Metric{Name: "greedy_reward", Title: "Reward without exploring",
		Doc: fmt.Sprintf("of cluster 0's policy at the end, the mean of %d flights", rl.Flights)})
	if c.Job != nil {
		return all // no update waits in a queue
	}
	add(t.LostPct, metric.Metric{Name: "lost_pct", Title: "Updates lost or replaced", Unit: "%",
		Doc: "of all packets of updates"})
	add(t.Inside, metric.Metric{Name: "updates_inside", Title: "Updates inside of a delivered one",
		Doc: "1 where nothing is merged"})
	if len(t.ArrivedPct) > 1 {
		for i, v := range t.ArrivedPct {
			add(v, metric.Metric{Name: fmt.Sprintf("arrived_%d_pct", i+1),
				Title: fmt.Sprintf("Packet %d of updates, arrived", i+1), Unit: "%",
				Sparse: true, Doc: "merged ones too, of all updates"})
		}
	}
	return all
}

// DrawCurves draws the learning curves of two sides, with their intervals, in the same figures.
func DrawCurves(a, b *Side) *result.Result {
	f := experiments.NewResult("compare", "learning curves", new(experiments.Options), nil)
	for _, system := range systemsOf(a, b) {
		panel := result.Panel{Name: system, XLabel: xLabel, YLabel: yLabel}
		for i, side := range []*Side{a, b} {
			for _, k := range side.curves {
				if k.trainings[0].System == system {
					s := k.series(&side.config.Training)
					s.Name = string(rune('A'+i)) + ": " + s.Name
					panel.Series = append(panel.Series, s)
				}
			}
		}
		f.Panels = append(f.Panels, panel)
	}
	return f
}

// systemsOf returns the names of the systems on all sides, without duplicates.
func systemsOf(sides ...*Side) (all []string) {
	for _, s := range sides {
		for _, k := range s.curves {
			if name := k.trainings[0].System; !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}
