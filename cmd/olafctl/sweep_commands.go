package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/axis"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/lot"
	"github.com/olafctl/olaf/experiments/netsim"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// sweepCommands are the commands whose runs can be swept. Their options are those of the command line.
func sweepCommands(env *cli.Env) experimentsweep.Commands {
	return experimentsweep.Commands{benchSweep(env), simulateSweep(env), jobSweep(env.Systems), trainSweep(env.Systems), scheduleSweepCommand(), verifySweepCommand()}
}

// workCommands are all commands whose jobs workers carry out.
func workCommands(env *cli.Env) experimentsweep.Commands {
	return append(sweepCommands(env), reproduceWork(env.Published))
}

// systemField is what the systems of a command are varied as.
const systemField = "system"

// optionTypes says what the values of a flag are, by its type.
var optionTypes = map[string]axis.Type{
	"int": axis.Whole, "uint64": axis.Whole, "float64": axis.Real, "float": axis.Real,
	"rate": axis.Rate, "size": axis.Size, "duration": axis.Duration, "string": axis.Word, "bool": axis.Word, "stringSlice": axis.Word,
}

// optionsOf lists the flags that a sweep can give and those that it can vary: all but some.
func optionsOf(flags *pflag.FlagSet, never, fixed []string) (options []string, fields []experimentsweep.Field) {
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(never, f.Name) {
			return
		}
		options = append(options, f.Name)
		if !slices.Contains(fixed, f.Name) {
			fields = append(fields, experimentsweep.Field{Name: f.Name, Type: optionTypes[f.Value.Type()]})
		}
	})
	return options, fields
}

// give sets flags as a command line would, each in place of what it was.
func give(flags *pflag.FlagSet, options []experimentsweep.Option) error {
	cli.CheckValues(flags)
	for _, o := range options {
		f := flags.Lookup(o.Name)
		if f == nil {
			return fmt.Errorf("there is no option %s", o.Name)
		}
		err := error(nil)
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = list.Replace(strings.Split(o.Value, ","))
		} else {
			err = f.Value.Set(o.Value)
		}
		if number := (*strconv.NumError)(nil); errors.As(err, &number) {
			return cli.UsageError("%s %q: want %s", o.Name, o.Value, cli.Wanted(f, number))
		}
		if err != nil {
			return cli.UsageError("%s %q: %v", o.Name, o.Value, err)
		}
		f.Changed = true
	}
	return nil
}

// benchSweep is what can be varied of a bench on the twin: one system at one output rate a cell.
func benchSweep(env *cli.Env) *experimentsweep.Command {
	carrier, lots := lot.Carrier{Systems: env.Systems}, new(bench.Lots)
	c := &experimentsweep.Command{Name: "bench", Subject: systemField, Headline: []string{"aom_cluster_ns", "aom_worker_ns", "lost_pct"}, Runs: bench.DefaultSpec(env.Systems).Runs, Patience: carrier.BenchPatience, Close: lots.Close}
	c.Run = func(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
		return carrier.Bench(ctx, lots, spec, from, n)
	}
	c.Options, c.Fields = optionsOf(newBenchCells(env).cmd.Flags(), []string{"file", "runs"}, []string{"seed", "versus", "queue"})
	for i := range c.Fields {
		if c.Fields[i].Name == outRate {
			c.Fields[i].Type = axis.Rate
		}
	}
	var all []*metric.Declaration
	for _, s := range env.Systems.Benched() {
		if s.Open() {
			all = append(all, s.Declaration())
		}
		if s.Looped() {
			all = append(all, s.LoopDeclaration())
		}
	}
	c.Metrics = metric.United(all...).Metrics
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newBenchCells(env).begin(file, options)
	}
	return c
}

const outRate = "out-rate"

// benchCells makes specifications of what the flags of bench say.
type benchCells struct {
	*benchFlags
	env  *cli.Env
	cmd  *cobra.Command
	base bench.Spec // what all cells share
}

func newBenchCells(env *cli.Env) *benchCells {
	b := &benchCells{benchFlags: &benchFlags{spec: bench.DefaultSpec(env.Systems)}, env: env, cmd: &cobra.Command{Use: "bench"}}
	b.outRates = []string{"40G", "20G"}
	b.addSpec(b.cmd)
	return b
}

// begin reads what all cells share.
func (b *benchCells) begin(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
	if err := give(b.cmd.Flags(), options); err != nil {
		return nil, err
	}
	b.file.path = file
	err := b.resolve(b.cmd, b.env)
	b.file.path, b.base = "", b.spec // which need not be read for every cell
	return b, err
}

// Axes are output rates and systems, where there are several and nobody varies them.
func (b *benchCells) Axes(given []string) (own []axis.Axis) {
	if !slices.Contains(given, outRate) {
		a := axis.Axis{Name: outRate}
		for _, r := range b.base.OutRates {
			a.Values = append(a.Values, r.String())
		}
		own = append(own, a)
	}
	if !slices.Contains(given, systemField) {
		own = append(own, axis.Axis{Name: systemField, Values: b.base.Queues()})
	}
	return own
}

// Cell is the specification of one system at one output rate.
func (b *benchCells) Cell(values []experimentsweep.Option) (json.RawMessage, error) {
	b.spec = b.base
	if b.base.Trace != nil {
		t := *b.base.Trace
		b.spec.Trace = &t
	}
	if b.base.Loop != nil {
		l := *b.base.Loop
		b.spec.Loop = &l
	}
	of := b.base.Queue
	var options []experimentsweep.Option
	for _, v := range values {
		if v.Name == systemField {
			of = v.Value
			continue
		}
		options = append(options, v)
	}
	if err := give(b.cmd.Flags(), options); err != nil {
		return nil, err
	}
	if err := b.resolve(b.cmd, b.env); err != nil {
		return nil, err
	}
	if slices.Contains(b.spec.Queues(), of) {
		if err := b.spec.Validate(); err != nil {
			return nil, err
		}
	} else {
		b.spec.Queue, b.spec.Versus = of, ""
	}
	if len(b.spec.OutRates) != 1 {
		return nil, cli.UsageError("a cell has one output rate, not %d", len(b.spec.OutRates))
	}
	one, err := b.spec.Alone(of, b.spec.OutRates[0])
	if err != nil {
		return nil, err
	}
	if _, err := bench.NewPlan(one); err != nil {
		return nil, err
	}
	return json.Marshal(&one)
}

// simulateSweep is what can be varied of a simulated network.
func simulateSweep(env *cli.Env) *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "simulate", Subject: systemField, Headline: []string{"aom_cluster_ns", "aom_worker_ns", "loss_packets_pct"}, Runs: 1, Run: lot.Carrier{Systems: env.Systems}.Simulate}
	c.Options, c.Fields = optionsOf(newNetworkCells(env.Systems).cmd.Flags(), []string{"arrivals"}, []string{"seed", "queue", "preset"})
	for _, name := range netsim.Sweepable() {
		if !slices.Contains(c.Options, name) {
			c.Fields = append(c.Fields, experimentsweep.Field{Name: name, Type: axis.Duration})
		}
	}
	c.Metrics = lot.NetworkMetrics()
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newNetworkCells(env.Systems).begin(file, options)
	}
	return c
}

// networkCells makes topologies of what the flags of simulate say.
type networkCells struct {
	topologyFlags
	cmd   *cobra.Command
	given []experimentsweep.Option
	args  []string
}

func newNetworkCells(set system.Set) *networkCells {
	n := &networkCells{cmd: &cobra.Command{Use: "simulate"}}
	n.waits.set = set
	n.add(n.cmd)
	return n
}

func (n *networkCells) begin(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
	if n.given = options; file != "" {
		n.args = []string{file}
	}
	return n, give(n.cmd.Flags(), options) // some go only with what cells add
}

// Axes are none of its own.
func (n *networkCells) Axes([]string) []axis.Axis { return nil }

// Cell is the topology of a cell.
func (n *networkCells) Cell(values []experimentsweep.Option) (json.RawMessage, error) {
	one := newNetworkCells(n.waits.set)
	var parameters, options []experimentsweep.Option
	for _, v := range values {
		if one.cmd.Flags().Lookup(v.Name) == nil {
			parameters = append(parameters, v)
		} else {
			options = append(options, v)
		}
	}
	if err := give(one.cmd.Flags(), append(slices.Clone(n.given), options...)); err != nil {
		return nil, err
	}
	t, err := one.load(one.cmd, n.args)
	if err != nil {
		return nil, err
	}
	for _, p := range parameters {
		v, err := olaf.ParseDuration(p.Value)
		if err != nil {
			return nil, err
		}
		t = t.With(p.Name, v)
	}
	if t.Sends != "" {
		return nil, cli.UsageError("a topology whose arrivals are in a file (sends) can't be swept")
	}
	if err := t.Resolve(); err != nil {
		return nil, err
	}
	cell := lot.Network{Seed: t.Seed}
	t.Expect, t.Seed = nil, 0
	text, err := t.Text()
	if err != nil {
		return nil, err
	}
	cell.Topology = string(text)
	return json.Marshal(&cell)
}
