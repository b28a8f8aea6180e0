// Package p4inc reproduces the evaluation of "P4INC-AOI: All-Optical Interconnect Empowered by In-Network Computing for
// DML Workloads". It has one file for each kind of artefact: Table I, the testbed (Figs. 5 to 7), and the simulations
// (Figs. 8 to 12). Parameters that the paper does not print are taken from sched.Workload; the most uncertain of them
// are also varied.
package p4inc

import (
	"context"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// Experiments returns the paper's experiments in the order of the paper.
func Experiments() experiments.Set { return with(policy.FindSolver) }

// with returns the experiments, which use find to look up a solver.
func with(find func(name string) (policy.Solver, error)) experiments.Set {
	table1 := func(ctx context.Context, o experiments.Options) (result.Report, error) {
		return runTable1(ctx, find, o)
	}
	one := func(name, artefact, about, needs string, run func(context.Context, experiments.Options) (result.Report,
		error)) experiments.Experiment {
		return experiments.Experiment{Name: "p4inc/" + name, Artefact: artefact, About: about, Needs: needs, Run: run,
			Inputs: inputs}
	}
	return experiments.Set{
		one("table1", "Table I", "CT-BTI and reconfigurations of optimum, FCFS, TW and TW without "+
			"reconfigurations, 40 to 100 jobs on 8 units", "1 min", table1),
		one("fig5", "Fig. 5", "how much faster gradients move where a switch takes the server's place, six models", "1 s", runFig5),
		one("fig6", "Fig. 6", "reconfigurations on four racks, with and without aggregating switches, FCFS and TW", "1 s", runFig6),
		one("fig7", "Fig. 7", "job completion times on four racks, ResNet50 and VGG16", "1 s", runFig7),
		one("fig8", "Fig. 8", "800 to 1400 training jobs on 64 units", "30 s", runFig8),
		one("fig9", "Fig. 9", "200 to 500 MapReduce jobs on 64 units", "10 s", runFig9),
		one("fig10", "Fig. 10", "1000 jobs on 8 to 64 units", "30 s", runFig10),
		one("fig11", "Fig. 11", "1000 jobs and 1 to 16 places in every switch", "30 s", runFig11),
		one("fig12", "Fig. 12", "1000 jobs in slots of 0.25 to 4 s", "30 s", runFig12),
	}
}

// assumption sets parameters that the paper does not print. The verdicts use the first assumption.
type assumption struct {
	name   string
	change func(*sched.Workload)
}

// judged is the assumption that the verdicts use. It starts from an even mesh of connections, because the paper
// mentions no other connections before the first slot.
var judged = assumption{"an even mesh before the first slot", func(s *sched.Workload) { s.Joined = true }}

// assumptions returns the judged assumption and two others: no connections before the first slot, and scarce optics.
func assumptions() []assumption {
	return []assumption{
		judged,
		{"nothing connected before the first slot", func(s *sched.Workload) { s.Joined = false }},
		{"all jobs at once, 4 ports a unit", func(s *sched.Workload) { s.Joined, s.PerSecond, s.Ports = true, 0, 4 }},
	}
}

// The inputs of every experiment. Plans count whole slots, which hide small changes.
const (
	volume   = "volume of a worker"
	portRate = "rate of a port"
	ports    = "ports of a unit"
	slotTime = "time of a slot"
	arrivals = "jobs per second"
)

var inputs = []experiments.Input{{Name: volume, Factor: 2}, {Name: arrivals, Factor: 2}, {Name: ports, Factor: 0.5},
	{Name: portRate, Factor: 0.5}, {Name: slotTime, Factor: 2}}

// judgedOnly returns only the judged assumption if an input is changed, because the others have no verdict.
func judgedOnly(o *experiments.Options, all []assumption) []assumption {
	if o.Changed.Name != "" {
		return all[:1]
	}
	return all
}

// scale applies the input that the options change to a workload.
func scale(o *experiments.Options, s *sched.Workload) {
	for i := range s.Volume {
		s.Volume[i] = experiments.ScaleInput(o, volume, s.Volume[i])
	}
	s.PortRate = experiments.ScaleInput(o, portRate, s.PortRate)
	s.Ports = experiments.ScaleInput(o, ports, s.Ports)
	s.Slot = experiments.ScaleInput(o, slotTime, s.Slot)
	s.PerSecond = experiments.ScaleInput(o, arrivals, s.PerSecond)
}

// Indexes of the paper's four scenarios.
const (
	noincFCFS = iota
	noincTW
	incFCFS
	incTW
)

// number is a measurement that is compared with a claim. It is computed from an experiment's cells, by seed or, for a
// curve, point by point.
type number struct {
	claim string
	of    func(cells []policy.Cell) paper.Measured
}

// grid plans workloads under every assumption and compares the resulting numbers with the claims.
type grid struct {
	experiment string
	axis       policy.Axis
	values     []float64
	base       sched.Workload
	metrics    []policy.Metric
	numbers    []number
}

func (g *grid) run(ctx context.Context, f *result.Result, o *experiments.Options) error {
	seeds, first := o.Seeds(10, 2)
	ours := paper.Ours{}
	all := judgedOnly(o, assumptions())
	for n, a := range all {
		base := g.base
		a.change(&base)
		scale(o, &base)
		base.Seed = first
		specs, err := g.axis.Specs(base, g.values)
		if err != nil {
			return err
		}
		cells, err := policy.Cells(ctx, specs, seeds, func(done, total int) { o.ReportProgress(n*total+done, len(all)*total) })
		if err != nil {
			return err
		}
		for _, one := range g.numbers {
			take(ours, g.experiment+"."+one.claim, one.of(cells), a, n == 0)
		}
		f.Panels = append(f.Panels, g.axis.Panels(g.values, cells, g.metrics, ", "+a.name)...)
	}
	f.Compare(ours)
	return nil
}

// take stores m under the claim's id, either as the judged number or as the number under another assumption. It does
// not replace an existing judged number.
func take(ours paper.Ours, id string, m paper.Measured, a assumption, judges bool) {
	kept, there := ours[id]
	switch {
	case judges && !there:
		ours[id] = m
	case !judges:
		kept.Others = append(kept.Others, paper.Other{Assumption: a.name, Statistic: m.Statistic, Breaks: m.Breaks, Judged: true})
		ours[id] = kept
	}
}

// saving returns a function that computes the percentage by which one scenario is below another, averaged over the
// cells of each seed.
func saving(m policy.Metric, scenario, below int) func([]policy.Cell) paper.Measured {
	return func(cells []policy.Cell) paper.Measured {
		return paper.Of(perSeed(cells, func(c *policy.Cell, seed int) float64 {
			was := float64(c.Values(below, m)[seed])
			if was == 0 {
				return 0 // nothing to save
			}
			return 100 * (1 - float64(c.Values(scenario, m)[seed])/was)
		}))
	}
}

// ahead returns a function that computes by how much one scenario is below the lowest of the others, averaged over the
// cells of each seed.
func ahead(m policy.Metric, scenario int, others ...int) func([]policy.Cell) paper.Measured {
	return func(cells []policy.Cell) paper.Measured {
		return paper.Of(perSeed(cells, func(c *policy.Cell, seed int) float64 {
			least := c.Values(others[0], m)[seed]
			for _, k := range others[1:] {
				least = min(least, c.Values(k, m)[seed])
			}
			return float64(least - c.Values(scenario, m)[seed])
		}))
	}
}

// perSeed returns statistics, over seeds, of a quantity that is averaged over each seed's cells.
func perSeed(cells []policy.Cell, of func(*policy.Cell, int) float64) results.Statistic {
	means := make([]results.Float, len(cells[0].Outcomes[0]))
	for i := range cells {
		for k := range means {
			means[k] += results.Float(of(&cells[i], k) / float64(len(cells)))
		}
	}
	return results.Describe(means, "no seed")
}

// curve returns the values of a metric in a scenario, by point and seed.
func curve(cells []policy.Cell, scenario int, m policy.Metric) [][]results.Float {
	return olaf.Map(cells, func(c policy.Cell) []results.Float { return c.Values(scenario, m) })
}

// falls returns a function that measures how much the curve of a scenario falls.
func falls(m policy.Metric, scenario int) func([]policy.Cell) paper.Measured {
	return func(cells []policy.Cell) paper.Measured { return paper.Falls(curve(cells, scenario, m)) }
}

// spread returns a function that measures, in per cent, how far a scenario's curve spreads. It considers the points
// from index from.
func spread(m policy.Metric, scenario, from int) func([]policy.Cell) paper.Measured {
	return func(cells []policy.Cell) paper.Measured { return paper.Spread(curve(cells, scenario, m)[from:]) }
}

// grows returns a function that computes how far the last point in a scenario's curve is above the first.
func grows(m policy.Metric, scenario int) func([]policy.Cell) paper.Measured {
	return func(cells []policy.Cell) paper.Measured {
		return paper.Over(cells[len(cells)-1].Values(scenario, m), cells[0].Values(scenario, m))
	}
}

// growsLess returns a function that computes how much less one scenario's curve grows than another's.
func growsLess(m policy.Metric, scenario, than int) func([]policy.Cell) paper.Measured {
	return func(cells []policy.Cell) paper.Measured {
		first, last := &cells[0], &cells[len(cells)-1]
		growth := func(k int) []results.Float {
			a, b := last.Values(k, m), first.Values(k, m)
			for i := range a {
				a[i] -= b[i]
			}
			return a
		}
		return paper.Over(growth(than), growth(scenario))
	}
}
