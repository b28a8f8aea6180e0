package main

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/job"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results/text"
)

// clustersOnly are the flags that mean something to a network of clusters only where its workers wait for answers, clustersNot
// those that mean nothing there.
var (
	clustersOnly = append([]string{"mode", "loss"}, jobOptions...)
	clustersNot  = []string{"tc", "tc-count", "arrivals", "sweep", "rx-trace", "rx-import", "pcap", "tui", "expect", "metrics"}
)

// findWaiting takes a system whose workers wait for answers off the hands of the network, whose ports do what the system's do;
// nil where it is none of these.
func (f *simulateFlags) findWaiting(cmd *cobra.Command) (*job.Spec, error) {
	s, err := system.All().Waiting().Find(f.queue)
	if err != nil {
		return nil, nil // a discipline, or nothing that there is
	}
	if !s.Rises() {
		return nil, cli.UsageError("--system %s: its sums do not go on to a server above the switches; those of %s do, and workers of %s do not wait; or give --preset %s",
			s.Name, strings.Join(system.All().Rising().Names(), ", "), strings.Join(engine.Names(), ", "), strings.Join(append(jobPresetNames(), sharedPreset), "|"))
	}
	mode, err := s.Mode(f.job.mode)
	if err != nil {
		return nil, err
	}
	if err := mode.Refuse(s, givenOptions(cmd)); err != nil {
		return nil, err
	}
	if len(f.job.losses) > 1 {
		return nil, cli.UsageError("--loss %s: a list belongs to --preset %s", &f.job.losses, sharedPreset)
	}
	var wrong error
	cmd.Flags().Visit(func(given *pflag.Flag) {
		if slices.Contains(clustersNot, given.Name) {
			wrong = cli.UsageError("--%s means nothing to %s on this network, whose workers wait for answers", given.Name, s.Name)
		}
	})
	f.queue = s.Discipline
	spec := &job.Spec{System: s, Mode: mode, Options: f.job.options}
	spec.Network.Link.Loss = f.job.losses.first()
	return spec, wrong
}

// wait plays a network whose workers wait for answers, once for every seed.
func (f *simulateFlags) wait(ctx context.Context, env *cli.Env, report *simulation) error {
	clusters, err := job.NewClusters(report.topology, *f.waits)
	if err != nil {
		return err
	}
	if err := f.patience(report.topology, f.runs); err != nil {
		return err
	}
	var done atomic.Int64
	bar := cli.StartProgress(env, f.quiet, func() (int, int) { return int(done.Load()), f.runs })
	report.Waiting, err = clusters.Run(ctx, report.Seeds, func() { done.Add(1) })
	bar.Stop()
	if err == nil {
		report.Runs = report.Waiting.Results
	}
	return err
}

// sayWaiting says what a system whose workers wait did beside what every network is measured by.
func (s *simulation) sayWaiting(p *text.Page) {
	for _, line := range s.Waiting.Lines() {
		p.Say("- ", "%s", line)
	}
}
