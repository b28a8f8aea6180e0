package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/axis"
	"github.com/olafctl/olaf/experiments/job"
	"github.com/olafctl/olaf/experiments/lot"
	schedsweep "github.com/olafctl/olaf/experiments/sched/sweep"
	"github.com/olafctl/olaf/experiments/sched/workload"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/system"
)

// flagCells makes specifications of what the flags of a command say.
type flagCells[T any] struct {
	cmd  *cobra.Command
	said *T // where the flags write
	base T
	// spec is everything that decides a cell, to be written as JSON.
	spec func(*T) (any, error)
}

// begin reads what all cells share.
func (c *flagCells[T]) begin(name, file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
	if file != "" {
		return nil, cli.UsageError("%s reads no file; give its options", name)
	}
	err := give(c.cmd.Flags(), options)
	c.base = *c.said
	return c, err
}

// Axes are none of its own.
func (c *flagCells[T]) Axes([]string) []axis.Axis { return nil }

// Cell is what the flags say of a cell.
func (c *flagCells[T]) Cell(values []experimentsweep.Option) (json.RawMessage, error) {
	*c.said = c.base
	if err := give(c.cmd.Flags(), values); err != nil {
		return nil, err
	}
	spec, err := c.spec(c.said)
	if err != nil {
		return nil, err
	}
	return json.Marshal(spec)
}

// jobCells are what flags say of a job on a preset's cluster.
type jobCells struct {
	preset, system string
	seed           uint64
	waits          waitFlags
	job            jobFlags
}

// jobSweep is what can be varied of such a job: one system a cell.
func jobSweep() *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "job", Subject: systemField, Headline: []string{"iteration_ns", "summed_ns"}, Runs: 1, Metrics: job.Metrics(), Run: lot.Jobs}
	c.Options, c.Fields = optionsOf(newJobCells().cmd.Flags(), []string{"versus"}, []string{"seed", "queue"})
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newJobCells().begin("job", file, options)
	}
	return c
}

func newJobCells() *flagCells[jobCells] {
	f := new(jobCells)
	f.job.waitFlags = &f.waits
	cmd := &cobra.Command{Use: "job"}
	cmd.Flags().StringVar(&f.preset, "preset", jobPresetNames()[0], "cluster: "+strings.Join(jobPresetNames(), "|"))
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "first seed")
	cli.AddSystem(cmd, &f.system, "queue", "whose job", system.All().Waiting().Names)
	f.waits.add(cmd)
	f.job.add(cmd)
	return &flagCells[jobCells]{cmd: cmd, said: f, spec: func(f *jobCells) (any, error) {
		if f.job.preset = findJobPreset(f.preset); f.job.preset == nil {
			return nil, cli.UsageError("--preset %q is not one of %s", f.preset, strings.Join(jobPresetNames(), ", "))
		}
		if err := refuseJobFlags(cmd, f.job.preset); err != nil {
			return nil, err
		}
		specs, err := f.job.specs(cmd, f.system)
		if err != nil {
			return nil, err
		}
		return &lot.OneJob{Job: specs[0], Seed: f.seed}, specs[0].Check()
	}}
}

// trainSweep is what can be varied of a training.
func trainSweep() *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "train", Subject: systemField, Headline: []string{"reward", "greedy_reward"}, Runs: 1, Metrics: lot.TrainingMetrics(), Run: lot.Train}
	c.Options, c.Fields = optionsOf(newTrainCells().cmd.Flags(), nil, []string{"seed", "network"})
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newTrainCells().begin("train", file, options)
	}
	return c
}

func newTrainCells() *flagCells[trainFlags] {
	f := newTrainFlags()
	cmd := &cobra.Command{Use: "train"}
	f.addConfig(cmd)
	f.job.add(cmd)
	return &flagCells[trainFlags]{cmd: cmd, said: f, spec: func(f *trainFlags) (any, error) {
		if slices.Contains(waitingSystems(), f.config.Network.Kind) {
			return f.training(cmd)
		}
		if err := f.job.refuse(cmd, f.config.Network.Kind); err != nil {
			return nil, err
		}
		return &lot.Training{Config: f.config}, f.config.Check()
	}}
}

// scheduleSweepCommand is what can be varied of plans of made-up jobs.
func scheduleSweepCommand() *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "schedule", Subject: "scenario", Headline: []string{"ct_bti_s", "mean_jct_s"}, Runs: 10, Metrics: lot.PlanMetrics(), Run: lot.Plan}
	c.Options, c.Fields = optionsOf(newScheduleCells().cmd.Flags(), nil, []string{"seed"})
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newScheduleCells().begin("schedule", file, options)
	}
	return c
}

func newScheduleCells() *flagCells[lot.Scheduled] {
	all := schedsweep.Scenarios()
	s := &lot.Scheduled{Workload: workload.Paper(0, 1), Scenario: all[len(all)-1].Name}
	s.Workload.Jobs, s.Workload.Units, s.Workload.Ports = 40, 8, 4
	cells := &flagCells[lot.Scheduled]{cmd: &cobra.Command{Use: "schedule"}, said: s, spec: func(s *lot.Scheduled) (any, error) {
		_, err := workload.Generate(s.Workload)
		return s, err
	}}
	flags, w := cells.cmd.Flags(), &s.Workload
	flags.IntVar(&w.Jobs, "jobs", w.Jobs, "number of jobs")
	flags.IntVar(&w.Units, "units", w.Units, "racks or pods")
	flags.IntVar(&w.Ports, "ports", w.Ports, "optical ports of each")
	flags.IntVar(&w.INC, "inc", w.INC, "jobs that each switch aggregates for at a time")
	flags.Float64Var(&w.PerSecond, "arrivals", w.PerSecond, "jobs that arrive a second; 0 for all at once")
	flags.Float64Var(&w.Local, "local", w.Local, "share of jobs whose workers are all in one unit")
	flags.Var(&w.Slot, "slot", "length of a slot")
	flags.Uint64Var(&w.Seed, "seed", w.Seed, "first seed")
	var names []string
	for _, one := range all {
		names = append(names, one.Name)
	}
	cli.Choose(cells.cmd, &s.Scenario, "scenario", "policy, with or without switches that aggregate", names...)
	return cells
}
