package simulate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/experiments/system"
)

// SweepCommand returns the command that sweeps simulated networks.
func SweepCommand(env *cli.Env) *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "simulate", Subject: sweepcmd.SystemField,
		Headline: []string{"aom_cluster_ns", "aom_worker_ns", "loss_packets_pct"}, Runs: 1,
		Run: cells.Carrier{Systems: env.Systems}.Simulate}
	c.Options, c.Fields = sweepcmd.OptionsOf(newNetworkCells(env.Systems).cmd.Flags(), []string{"arrivals"},
		[]string{"seed", "queue", "preset"})
	for _, name := range netsim.SweepableNames() {
		if !slices.Contains(c.Options, name) {
			c.Fields = append(c.Fields, experimentsweep.Field{Name: name, Type: grid.Duration})
		}
	}
	c.Metrics = cells.NetworkMetrics()
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newNetworkCells(env.Systems).begin(file, options)
	}
	return c
}

// networkCells turns the flags of simulate into the topologies of a sweep's cells.
type networkCells struct {
	topologyFlags
	cmd     *cobra.Command
	options []experimentsweep.Option
	args    []string
}

func newNetworkCells(set system.Set) *networkCells {
	n := &networkCells{cmd: &cobra.Command{Use: "simulate"}}
	n.waits.set = set
	n.add(n.cmd)
	return n
}

func (n *networkCells) begin(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
	if n.options = options; file != "" {
		n.args = []string{file}
	}
	// Errors are ignored: some options are valid only with a cell's values.
	return n, sweepcmd.SetOptions(n.cmd.Flags(), options)
}

// Axes returns nil, because the command has no axes without --sweep.
func (n *networkCells) Axes([]string) []grid.Axis { return nil }

// Cell returns the topology for a cell.
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
	if err := sweepcmd.SetOptions(one.cmd.Flags(), append(slices.Clone(n.options), options...)); err != nil {
		return nil, err
	}
	t, err := one.loadTopology(one.cmd, n.args)
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
		return nil, cli.UsageError("a topology whose arrivals are in a file (sends) cannot be swept")
	}
	if err := t.Resolve(); err != nil {
		return nil, err
	}
	cell := cells.Network{Seed: t.Seed}
	t.Expect, t.Seed = nil, 0
	text, err := t.Text()
	if err != nil {
		return nil, err
	}
	cell.Topology = string(text)
	return json.Marshal(&cell)
}

// jobCells contains the flags for a job on a preset's cluster in a sweep.
type jobCells struct {
	preset, system string
	seed           uint64
	waits          waitFlags
	job            jobFlags
	sharing        sharingFlags
}

// JobSweepCommand returns the command that sweeps jobs on a preset's cluster. Each cell has one system.
func JobSweepCommand(set system.Set) *experimentsweep.Command {
	carrier := cells.Carrier{Systems: set}
	c := &experimentsweep.Command{Name: "job", Subject: sweepcmd.SystemField,
		Headline: []string{"iteration_ns", "summed_ns", "gradient_ns"}, Runs: 1, Metrics: job.Metrics(),
		Patience: carrier.JobPatience, Run: carrier.Jobs}
	c.Options, c.Fields = sweepcmd.OptionsOf(newJobCells(set).Cmd.Flags(), []string{"versus"},
		[]string{"seed", "queue"})
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		cells := newJobCells(set)
		if _, err := cells.Begin("job", file, options); err != nil {
			return nil, err
		}
		return &gridCells{cells}, nil
	}
	return c
}

func newJobCells(set system.Set) *sweepcmd.Cells[jobCells] {
	f := new(jobCells)
	f.waits.set = set
	cmd := &cobra.Command{Use: "job"}
	cmd.Flags().StringVar(&f.preset, "preset", JobPresetNames()[0], "cluster: "+strings.Join(ClusterNames(), "|"))
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "first seed")
	cli.AddSystem(cmd, &f.system, "system that runs the job", set.ClosedLoop().Names)
	f.waits.add(cmd)
	f.job.waitFlags = &f.waits
	f.job.add(cmd)
	f.sharing.add(cmd)
	return &sweepcmd.Cells[jobCells]{Cmd: cmd, Flags: f, Spec: func(f *jobCells) (any, error) {
		spec, err := f.buildSpec(cmd)
		if err != nil {
			return nil, err
		}
		return &cells.OneJob{Job: spec, Seed: f.seed}, spec.Check()
	}}
}

// buildSpec returns the job for a cell.
func (f *jobCells) buildSpec(cmd *cobra.Command) (*job.Spec, error) {
	if f.preset == sharedPreset {
		return f.sharedSpec(cmd)
	}
	if f.job.preset = findJobPreset(f.preset); f.job.preset == nil {
		return nil, cli.UsageError("--preset %q is not one of %s", f.preset, strings.Join(ClusterNames(), ", "))
	}
	if err := refuseJobFlags(cmd, f.job.preset); err != nil {
		return nil, err
	}
	specs, err := f.job.listSpecs(cmd, f.system)
	if err != nil {
		return nil, err
	}
	return specs[0], nil
}

// sharedSpec returns the jobs of a cell that share a switch. A cell has a single way of sharing.
func (f *jobCells) sharedSpec(cmd *cobra.Command) (*job.Spec, error) {
	if err := refuseJobFlags(cmd, sharedCluster()); err != nil {
		return nil, err
	}
	if !cmd.Flags().Changed(system.OptionSharing) { // a sweep's systems may include some without a choice of sharing
		f.sharing.sharing = system.Static
	}
	g, err := f.sharing.parseGrid(cmd, f.system, &f.job)
	if err != nil {
		return nil, err
	}
	cells, err := g.Cells(f.waits.set)
	if err != nil {
		return nil, err
	}
	if len(cells) > 1 {
		return nil, cli.UsageError("a cell has one way to share, not %s; when systems are varied use a single one, "+
			"or none for %s", strings.Join(g.Sharings, " and "), system.Static)
	}
	return cells[0].Spec, nil
}

// gridCells resolves the cells of a sweep over jobs on a shared switch. Flags with lists of values become axes.
type gridCells struct{ *sweepcmd.Cells[jobCells] }

// Axes returns the axes for the ways of sharing, the numbers of aggregators and the loss rates. It omits an axis if it
// has a single value or if the sweep already varies it.
func (c *gridCells) Axes(given []string) (own []grid.Axis) {
	f := &c.Base
	if f.preset != sharedPreset {
		return nil
	}
	for _, list := range []struct{ name, values string }{{"aggregators", f.sharing.aggregators},
		{"loss", f.waits.losses.String()}, {system.OptionSharing, f.sharing.sharing}} {
		values := strings.Split(list.values, ",")
		if len(values) < 2 || slices.Contains(given, list.name) || list.name == system.OptionSharing &&
			!c.choosesSharing(given) {
			continue
		}
		own = append(own, grid.Axis{Name: list.name, Values: values})
	}
	return own
}

// choosesSharing reports whether the jobs of every cell can share the switch in several ways.
func (c *gridCells) choosesSharing(given []string) bool {
	if slices.Contains(given, sweepcmd.SystemField) {
		return false
	}
	s, err := c.Base.waits.set.ClosedLoop().Find(cmp.Or(c.Base.system, sharedCluster().system))
	if err != nil {
		return false // running the cell returns a better error
	}
	mode, err := s.Mode("sync")
	return err == nil && mode.CheckOptions(s, []string{system.OptionSharing}) == nil
}
