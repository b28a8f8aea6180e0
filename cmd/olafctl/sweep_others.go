package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/axis"
	"github.com/olafctl/olaf/experiments/job"
	"github.com/olafctl/olaf/experiments/netsim/closed"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/check"
	"github.com/olafctl/olaf/experiments/sched/policy"
	schedsweep "github.com/olafctl/olaf/experiments/sched/sweep"
	"github.com/olafctl/olaf/experiments/sched/workload"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
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

// plain are metrics that a command says by itself.
func plain(rows ...[3]string) (all []*metric.Metric) {
	for _, r := range rows {
		all = append(all, &metric.Metric{Name: r[0], Title: r[1], Unit: r[2]})
	}
	return all
}

// namesOf lists the names of metrics.
func namesOf(all []*metric.Metric) (names []string) {
	for _, m := range all {
		names = append(names, m.Name)
	}
	return names
}

// trainMetrics are what every training is measured by, queueMetrics what else one whose workers wait for nobody is, and waitMetrics one
// whose workers wait.
var (
	trainMetrics = plain([3]string{"reward", "Reward, last tenth", ""}, [3]string{"greedy_reward", "Reward without exploring", ""}, [3]string{"end_ns", "Virtual time", "ns"})
	queueMetrics = plain([3]string{"sent", "Sent", "updates"}, [3]string{"delivered_frames", "Delivered", "frames"}, [3]string{"aggregated", "Aggregated", "updates"}, [3]string{"dropped", "Dropped", "updates"})
	waitMetrics  = ofJobs()
)

// ofJobs are the numbers of a job on simulated hosts.
func ofJobs() (all []*metric.Metric) {
	for _, r := range closed.Rows() {
		all = append(all, &metric.Metric{Name: r.Name, Title: r.Title, Unit: r.Unit})
	}
	return all
}

// trainSweep is what can be varied of a training.
func trainSweep() *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "train", Subject: systemField, Headline: []string{"reward", "greedy_reward"}, Runs: 1, Metrics: slices.Concat(trainMetrics, queueMetrics, waitMetrics), Run: trainLot}
	c.Options, c.Fields = optionsOf(newTrainCells().cmd.Flags(), nil, []string{"seed", "network"})
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newTrainCells().begin("train", file, options)
	}
	return c
}

// training is everything that decides one but the number of seeds.
type training struct {
	Config rl.Config    `json:"config"`
	Job    *trainingJob `json:"job,omitempty"` // of a system whose workers wait for answers
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
		return &training{Config: f.config}, f.config.Check()
	}}
}

// trainLot trains under some seeds.
func trainLot(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
	var t training
	if err := json.Unmarshal(spec, &t); err != nil {
		return nil, err
	}
	lot, once := &sweep.Lot{Metrics: namesOf(slices.Concat(trainMetrics, queueMetrics))}, trainOnce
	if t.Job != nil {
		lot.Metrics, once = namesOf(slices.Concat(trainMetrics, waitMetrics)), t.Job.train
	}
	first := t.Config.Seed
	for i := range n {
		t.Config.Seed = first + uint64(from+i)
		values, err := once(ctx, t.Config)
		if err != nil {
			return nil, err
		}
		lot.Runs = append(lot.Runs, sweep.Run{Seed: t.Config.Seed, Values: values})
	}
	return lot, nil
}

// trainOnce trains through a queue: trainMetrics, then queueMetrics.
func trainOnce(ctx context.Context, c rl.Config) (values []results.Float, err error) {
	out, err := rl.Train(ctx, c, &curve{total: c.Workers * c.Iterations})
	if err != nil {
		return nil, err
	}
	w := out.Network
	for _, v := range []float64{lastTenth(out.Curves, &c), rl.Evaluate(&out.Weights[0], trainFlights), float64(out.EndNS), float64(w.In()), float64(w.Released),
		float64(w.Class[engine.Aggregated]), float64(w.Class[engine.DroppedFull] + w.Class[engine.DroppedReward] + w.Class[engine.DroppedMismatch])} {
		values = append(values, results.Float(v))
	}
	return values, nil
}

// train trains one job: trainMetrics, then waitMetrics.
func (t *trainingJob) train(ctx context.Context, c rl.Config) ([]results.Float, error) {
	spec, err := t.spec()
	if err != nil {
		return nil, err
	}
	out, err := job.Train(ctx, c, spec, nil)
	if err != nil {
		return nil, err
	}
	if out.Network.Hung {
		return nil, fmt.Errorf("%w: %s", job.ErrHung, spec.Name())
	}
	values := []results.Float{results.Float(lastTenth(out.Curves, &c)), results.Float(rl.Evaluate(&out.Weights, trainFlights)), out.Network.Duration}
	for _, row := range closed.Rows() {
		values = append(values, row.Of(out.Network))
	}
	return values, nil
}

// lastTenth is the mean reward at the end of a training.
func lastTenth(curves [][]rl.Point, c *rl.Config) float64 {
	blocks := rl.Blocks(curves, max(1, c.Iterations/trainTenths))
	return blocks[len(blocks)-1]
}

// scheduleMetrics are what a plan is measured by.
var scheduleMetrics = plain([3]string{"ct_bti_s", "Completion time", "s"}, [3]string{"mean_jct_s", "Mean job completion time", "s"}, [3]string{"reconfigurations", "Reconfigurations", ""})

// scheduled is a workload with how it is planned.
type scheduled struct {
	Workload workload.Spec `json:"workload"`
	Scenario string        `json:"scenario"`
}

// scheduleSweepCommand is what can be varied of plans of made-up jobs.
func scheduleSweepCommand() *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "schedule", Subject: "scenario", Headline: []string{"ct_bti_s", "mean_jct_s"}, Runs: 10, Metrics: scheduleMetrics, Run: scheduleLot}
	c.Options, c.Fields = optionsOf(newScheduleCells().cmd.Flags(), nil, []string{"seed"})
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newScheduleCells().begin("schedule", file, options)
	}
	return c
}

func newScheduleCells() *flagCells[scheduled] {
	all := schedsweep.Scenarios()
	s := &scheduled{Workload: workload.Paper(0, 1), Scenario: all[len(all)-1].Name}
	s.Workload.Jobs, s.Workload.Units, s.Workload.Ports = 40, 8, 4
	cells := &flagCells[scheduled]{cmd: &cobra.Command{Use: "schedule"}, said: s, spec: func(s *scheduled) (any, error) {
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

// scheduleLot plans the jobs of some seeds, and checks every plan.
func scheduleLot(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
	var s scheduled
	if err := json.Unmarshal(spec, &s); err != nil {
		return nil, err
	}
	all := schedsweep.Scenarios()
	at := slices.IndexFunc(all, func(one schedsweep.Scenario) bool { return one.Name == s.Scenario })
	if at < 0 {
		return nil, fmt.Errorf("there is no scenario %q", s.Scenario)
	}
	lot := &sweep.Lot{Metrics: namesOf(scheduleMetrics)}
	first := s.Workload.Seed
	for i := range n {
		s.Workload.Seed = first + uint64(from+i)
		problem, err := workload.Generate(s.Workload)
		if err != nil {
			return nil, err
		}
		if !all[at].INC {
			problem = problem.WithINC(0)
		}
		plan, err := policy.Plan(ctx, problem, all[at].Policy, policy.Options{Repairs: sched.AllRepairs})
		if err != nil {
			return nil, err
		}
		run := sweep.Run{Seed: s.Workload.Seed}
		if v := check.Check(plan); !v.OK() {
			run.Invalid = v.Violations[0].What
		}
		for _, v := range []float64{plan.Outcome.CTBTI.Seconds(), plan.Outcome.MeanJCT(s.Workload.Jobs).Seconds(), float64(plan.Outcome.Reconfigurations)} {
			run.Values = append(run.Values, results.Float(v))
		}
		lot.Runs = append(lot.Runs, run)
	}
	return lot, nil
}
