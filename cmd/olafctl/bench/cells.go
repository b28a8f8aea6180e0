package bench

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	"github.com/olafctl/olaf/experiments/bench"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// SweepCommand returns the command that sweeps benches on the twin. Each cell has one system and one output rate.
func SweepCommand(env *cli.Env) *experimentsweep.Command {
	carrier, lots := cells.Carrier{Systems: env.Systems}, new(cells.Lots)
	c := &experimentsweep.Command{Name: "bench", Subject: sweepcmd.SystemField,
		Headline: []string{"aom_cluster_ns", "aom_worker_ns", "lost_pct"}, Runs: bench.DefaultSpec(env.Systems).Runs,
		Patience: carrier.BenchPatience, Close: lots.Close}
	c.Run = func(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
		return carrier.Bench(ctx, lots, spec, from, n)
	}
	c.Options, c.Fields = sweepcmd.OptionsOf(newBenchCells(env).cmd.Flags(), []string{"file", "runs"},
		[]string{"seed", "versus", "queue"})
	for i := range c.Fields {
		if c.Fields[i].Name == outRate {
			c.Fields[i].Type = grid.Rate
		}
	}
	var all []*metric.Declaration
	for _, s := range env.Systems.ForBench() {
		if s.Open() {
			all = append(all, s.Declaration())
		}
		if s.CanLoop() {
			all = append(all, s.LoopDeclaration())
		}
	}
	c.Metrics = metric.Union(all...).Metrics
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newBenchCells(env).begin(file, options)
	}
	return c
}

const outRate = "out-rate"

// benchCells turns the flags of bench into the specifications of a sweep's cells.
type benchCells struct {
	*Flags
	env  *cli.Env
	cmd  *cobra.Command
	base bench.Spec // shared by all cells
}

func newBenchCells(env *cli.Env) *benchCells {
	b := &benchCells{Flags: &Flags{Spec: bench.DefaultSpec(env.Systems)}, env: env, cmd: &cobra.Command{Use: "bench"}}
	b.OutRates = []string{"40G", "20G"}
	b.AddSpec(b.cmd)
	return b
}

// begin applies the options that all cells share and reads the file.
func (b *benchCells) begin(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
	if err := sweepcmd.SetOptions(b.cmd.Flags(), options); err != nil {
		return nil, err
	}
	b.file.path = file
	err := b.ResolveSpec(b.cmd, b.env)
	b.file.path, b.base = "", b.Spec // read only once, not for every cell
	return b, err
}

// Axes returns the axes that the command itself adds: output rates and systems, unless the sweep already varies them.
func (b *benchCells) Axes(given []string) (own []grid.Axis) {
	if !slices.Contains(given, outRate) {
		a := grid.Axis{Name: outRate}
		for _, r := range b.base.OutRates {
			a.Values = append(a.Values, r.String())
		}
		own = append(own, a)
	}
	if !slices.Contains(given, sweepcmd.SystemField) {
		own = append(own, grid.Axis{Name: sweepcmd.SystemField, Values: b.base.Queues()})
	}
	return own
}

// Cell returns the specification for a cell with one system and one output rate.
func (b *benchCells) Cell(values []experimentsweep.Option) (json.RawMessage, error) {
	b.Spec = b.base
	if b.base.Trace != nil {
		t := *b.base.Trace
		b.Spec.Trace = &t
	}
	if b.base.Loop != nil {
		l := *b.base.Loop
		b.Spec.Loop = &l
	}
	of := b.base.Queue
	var options []experimentsweep.Option
	for _, v := range values {
		if v.Name == sweepcmd.SystemField {
			of = v.Value
			continue
		}
		options = append(options, v)
	}
	if err := sweepcmd.SetOptions(b.cmd.Flags(), options); err != nil {
		return nil, err
	}
	if err := b.ResolveSpec(b.cmd, b.env); err != nil {
		return nil, err
	}
	if slices.Contains(b.Spec.Queues(), of) {
		if err := b.Spec.Validate(); err != nil {
			return nil, err
		}
	} else {
		b.Spec.Queue, b.Spec.Versus = of, ""
	}
	if len(b.Spec.OutRates) != 1 {
		return nil, cli.UsageError("a cell has one output rate, not %d", len(b.Spec.OutRates))
	}
	one, err := b.Spec.SingleConfig(of, b.Spec.OutRates[0])
	if err != nil {
		return nil, err
	}
	if _, err := bench.NewPlan(one); err != nil {
		return nil, err
	}
	return json.Marshal(&one)
}
