// Package iswitch reproduces "Accelerating Distributed Reinforcement Learning with In-Switch Computing" (ISCA 2019),
// with one file per artefact, on simulated hosts around the paper's accelerator. The costs per message on the hosts are
// fitted to two of the paper's four training runs; the other two are predicted.
package iswitch

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// Experiments returns the paper's experiments in the order of the paper. set contains the available systems.
func Experiments(set system.Set) experiments.Set {
	one := func(name, artefact, about, needs string, run func(context.Context, *lab,
		experiments.Options) (result.Report, error)) experiments.Experiment {
		return experiments.Experiment{
			Name: "iswitch/" + name, Artefact: artefact, About: about, Needs: needs,
			Run: func(ctx context.Context, o experiments.Options) (result.Report, error) {
				return run(ctx, &lab{set: set, options: &o}, o)
			},
			Inputs: experiments.InputsByTenth(linkRate, computeTime, messageTime, volumeTime),
		}
	}
	return experiments.Set{
		one("table3", "Table 3", "speed-up of training over a parameter server: AllReduce and iSwitch, "+
			"synchronous and asynchronous", "2 s", runTable3),
		one("table4", "Table 4", "time of a synchronous iteration of DQN, A2C, PPO and DDPG: parameter server, "+
			"AllReduce, iSwitch", "2 s", runTable4),
		one("table5", "Table 5", "time of an asynchronous iteration: parameter server and iSwitch with staleness up to 3", "2 s", runTable5),
		one("fig12", "Fig. 12", "share of a synchronous iteration that is gradient aggregation", "2 s", runFig12),
		one("fig15", "Fig. 15", "speed-up with 4 to 12 workers in racks of 3, synchronous and asynchronous", "5 s", runFig15),
		one("text", "§§2 to 6", "values computed from the paper's own numbers", "0 s", runText),
	}
}

// approach is one column of the paper's tables: a system and a mode, with the name that the paper uses.
type approach struct{ paper, system, mode string }

var (
	syncPS      = approach{"ps", "ps", "sync"}
	allReduce   = approach{"ar", "ring", "sync"}
	syncSwitch  = approach{"isw", "iswitch", "sync"}
	asyncPS     = approach{"ps", "ps", "async"}
	asyncSwitch = approach{"isw", "iswitch", "async"}
)

// Printed returns the cells of Tables 4 and 5 with which a job can be compared. at is the job's index in its plan.
// Printed returns none if the job differs from Lab or if the paper does not have the approach.
func Printed(m Model, spec *job.Spec, at int) []job.Printed {
	lab := job.Spec{System: spec.System, Mode: spec.Mode}
	bounded := slices.Contains(spec.Mode.Takes, system.OptionBound)
	if lab.Options.Bound = spec.Options.Bound; bounded {
		lab.Options.Bound = staleness
	}
	lab.Network, lab.Job = Lab(spec.System, spec.Mode, m, LabWorkers, false, &lab.Options)
	lab.Job.Updates, lab.Job.Limit = spec.Job.Updates, spec.Job.Limit // number of iterations in means
	if !reflect.DeepEqual(lab.Network, spec.Network) || !reflect.DeepEqual(lab.Job, spec.Job) ||
		!reflect.DeepEqual(lab.Options, spec.Options) {
		return nil
	}
	for _, t := range []struct {
		artefact   string
		by         float64 // factor for an iteration of 1 ns
		approaches []approach
	}{
		{"table4", m.Sync / 3.6e12, []approach{syncPS, allReduce, syncSwitch}}, // hours of training
		{"table5", 1e-6, []approach{asyncPS, asyncSwitch}},                     // ms
	} {
		for _, a := range t.approaches {
			if a.system == spec.System.Name && a.mode == spec.Mode.Name {
				return []job.Printed{{Claim: claim(t.artefact, m.Name, a.paper), Job: at, Number: "iteration_ns", By: t.by}}
			}
		}
	}
	return nil
}

// staleness is the bound S in all asynchronous runs of the paper.
const staleness = 3

// updates is the number of iterations over which a run's means are taken. Without random times, all iterations take the
// same time.
const updates = 6

// lab runs jobs on a model of the paper's cluster. It caches their results, because several artefacts use the same
// jobs.
type lab struct {
	set     system.Set
	options *experiments.Options // with the changed input
	done    map[key]*job.Outcome
}

type key struct {
	approach
	model   string
	workers int
	ideal   bool
}

// run runs the job of a model with an approach, or returns the cached result. ideal omits the costs on the hosts.
func (l *lab) run(ctx context.Context, a approach, m Model, workers int, ideal bool) (*job.Outcome, error) {
	k := key{a, m.Name, workers, ideal}
	if o := l.done[k]; o != nil {
		return o, nil
	}
	s, mode, err := l.set.FindMode(a.system, a.mode)
	if err != nil {
		return nil, err
	}
	spec := &job.Spec{System: s, Mode: mode}
	if !mode.Sync && s.Program != nil {
		spec.Options.Bound = staleness
	}
	spec.Network, spec.Job = Lab(s, mode, m, workers, ideal, &spec.Options)
	spec.Job.Updates = updates
	l.scale(&spec.Network, &spec.Job)
	o, err := job.Run(ctx, spec, []uint64{1}, nil)
	if err != nil {
		return nil, err
	}
	if err := o.Err(); err != nil {
		return nil, err
	}
	if l.done == nil {
		l.done = map[key]*job.Outcome{}
	}
	l.done[k] = o
	return o, nil
}

// The inputs of every experiment.
const (
	linkRate    = "rate of a link"
	computeTime = "time of a gradient"
	messageTime = "a host's time for a message"
	volumeTime  = "a host's time for a MiB"
)

// scale applies the input that the options change to a job.
func (l *lab) scale(net *closedloop.Network, j *closedloop.Job) {
	net.Link.Rate = experiments.ScaleInput(l.options, linkRate, net.Link.Rate)
	j.Compute = experiments.ScaleInput(l.options, computeTime, j.Compute)
	for _, costs := range []*closedloop.Costs{&net.Worker, &net.Server} {
		costs.PerMessage = experiments.ScaleInput(l.options, messageTime, costs.PerMessage)
		costs.PerMiB = experiments.ScaleInput(l.options, volumeTime, costs.PerMiB)
	}
}

// iteration returns the time per iteration in ms.
func (l *lab) iteration(ctx context.Context, a approach, m Model, workers int, ideal bool) (results.Statistic, error) {
	o, err := l.run(ctx, a, m, workers, ideal)
	if err != nil {
		return results.Statistic{}, err
	}
	return results.Exactly(float64(o.Number("iteration_ns").Mean) / 1e6), nil
}

// grid returns a block of iteration times, with a row for each model and a column for each approach.
func (l *lab) grid(ctx context.Context, name string, approaches []approach, ideal bool) (result.Block, error) {
	b := result.Block{Name: name, Unit: "ms", Columns: columnsOf(approaches)}
	for _, m := range Models() {
		line := result.Line{Name: m.Name}
		for _, a := range approaches {
			cell, err := l.iteration(ctx, a, m, LabWorkers, ideal)
			if err != nil {
				return b, err
			}
			line.Cells = append(line.Cells, cell)
		}
		b.Rows = append(b.Rows, line)
	}
	return b, nil
}

// columnsOf returns the names that the paper uses for approaches.
func columnsOf(approaches []approach) []string {
	return olaf.Map(approaches, func(a approach) string { return a.paper })
}

// claim returns the id of the claim for one cell of an artefact.
func claim(artefact, row, column string) string {
	return fmt.Sprintf("iswitch/%s.%s.%s", artefact, row, column)
}
