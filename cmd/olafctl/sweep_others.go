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
	sharing        sharingFlags
}

// jobSweep is what can be varied of such a job: one system a cell.
func jobSweep(set system.Set) *experimentsweep.Command {
	carrier := lot.Carrier{Systems: set}
	c := &experimentsweep.Command{Name: "job", Subject: systemField, Headline: []string{"iteration_ns", "summed_ns", "gradient_ns"}, Runs: 1, Metrics: job.Metrics(), Patience: carrier.JobPatience, Run: carrier.Jobs}
	c.Options, c.Fields = optionsOf(newJobCells(set).cmd.Flags(), []string{"versus"}, []string{"seed", "queue"})
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		cells := newJobCells(set)
		if _, err := cells.begin("job", file, options); err != nil {
			return nil, err
		}
		return &gridCells{cells}, nil
	}
	return c
}

func newJobCells(set system.Set) *flagCells[jobCells] {
	f := new(jobCells)
	f.waits.set = set
	cmd := &cobra.Command{Use: "job"}
	cmd.Flags().StringVar(&f.preset, "preset", jobPresetNames()[0], "cluster: "+strings.Join(clusterNames(), "|"))
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "first seed")
	cli.AddSystem(cmd, &f.system, "whose job", set.Waiting().Names)
	f.waits.add(cmd)
	f.job.waitFlags = &f.waits
	f.job.add(cmd)
	f.sharing.add(cmd)
	return &flagCells[jobCells]{cmd: cmd, said: f, spec: func(f *jobCells) (any, error) {
		spec, err := f.one(cmd)
		if err != nil {
			return nil, err
		}
		return &lot.OneJob{Job: spec, Seed: f.seed}, spec.Check()
	}}
}

// one is the job of a cell.
func (f *jobCells) one(cmd *cobra.Command) (*job.Spec, error) {
	if f.preset == sharedPreset {
		return f.shares(cmd)
	}
	if f.job.preset = findJobPreset(f.preset); f.job.preset == nil {
		return nil, cli.UsageError("--preset %q is not one of %s", f.preset, strings.Join(clusterNames(), ", "))
	}
	if err := refuseJobFlags(cmd, f.job.preset); err != nil {
		return nil, err
	}
	specs, err := f.job.specs(cmd, f.system)
	if err != nil {
		return nil, err
	}
	return specs[0], nil
}

// shares are the jobs of a cell that share a switch, in one way.
func (f *jobCells) shares(cmd *cobra.Command) (*job.Spec, error) {
	if err := refuseJobFlags(cmd, shared()); err != nil {
		return nil, err
	}
	if !cmd.Flags().Changed(system.OptionSharing) { // systems are varied, of which not all have a choice
		f.sharing.sharing = system.Static
	}
	g, err := f.sharing.grid(cmd, f.system, &f.job)
	if err != nil {
		return nil, err
	}
	cells, err := g.Cells(f.waits.set)
	if err != nil {
		return nil, err
	}
	if len(cells) > 1 {
		return nil, cli.UsageError("a cell has one way to share, not %s; where systems are varied give one, or none for %s", strings.Join(g.Sharings, " and "), system.Static)
	}
	return cells[0].Spec, nil
}

// gridCells are cells of jobs whose lists, where several jobs share a switch, are axes of their own.
type gridCells struct{ *flagCells[jobCells] }

// Axes are ways to share, numbers of aggregators and losses, where there are several and nobody varies them.
func (c *gridCells) Axes(given []string) (own []axis.Axis) {
	f := &c.base
	if f.preset != sharedPreset {
		return nil
	}
	for _, list := range []struct{ name, values string }{{"aggregators", f.sharing.aggregators}, {"loss", f.waits.losses.String()}, {system.OptionSharing, f.sharing.sharing}} {
		values := strings.Split(list.values, ",")
		if len(values) < 2 || slices.Contains(given, list.name) || list.name == system.OptionSharing && !c.choosesSharing(given) {
			continue
		}
		own = append(own, axis.Axis{Name: list.name, Values: values})
	}
	return own
}

// choosesSharing says whether jobs of every cell can share in more ways than one.
func (c *gridCells) choosesSharing(given []string) bool {
	if slices.Contains(given, systemField) {
		return false
	}
	name := c.base.system
	if name == "" {
		name = shared().system
	}
	s, err := c.base.waits.set.Waiting().Find(name)
	if err != nil {
		return false // a cell says it better
	}
	mode, err := s.Mode("sync")
	return err == nil && mode.Refuse(s, []string{system.OptionSharing}) == nil
}

// trainSweep is what can be varied of a training.
func trainSweep(set system.Set) *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "train", Subject: systemField, Headline: []string{"reward", "greedy_reward"}, Runs: 1, Metrics: lot.TrainingMetrics(), Run: lot.Carrier{Systems: set}.Train}
	c.Options, c.Fields = optionsOf(newTrainCells(set).cmd.Flags(), nil, []string{"seed", "network"})
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newTrainCells(set).begin("train", file, options)
	}
	return c
}

func newTrainCells(set system.Set) *flagCells[trainFlags] {
	f := newTrainFlags(set)
	cmd := &cobra.Command{Use: "train"}
	f.addConfig(cmd)
	f.job.add(cmd)
	return &flagCells[trainFlags]{cmd: cmd, said: f, spec: func(f *trainFlags) (any, error) {
		if f.waits() {
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
