package trace

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/rl/onwire"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/process"
	"github.com/olafctl/olaf/pktgen/trace"
)

// traceProgramFlags are for recordings of the user's own command.
type traceProgramFlags struct {
	command string
	values  int
}

func (f *traceProgramFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.command, "program", "", "record this command, once per worker and for the server, over "+
		"an ideal network")
	cmd.Flags().IntVar(&f.values, "values", 0, "values of the program's vectors")
}

// recordProgram records the updates of the user's command.
func (f *traceRecordFlags) recordProgram(cmd *cobra.Command, env *cli.Env) error {
	foreign := []string{"iterations", "threshold", "clock"}
	if err := cli.RefuseFlags(cmd, foreign, "--program"); err != nil {
		return err
	}
	switch {
	case f.to == "":
		return cli.UsageError("no file to record into; use -w FILE")
	case f.own.values < 1:
		return cli.UsageError("--program: say how many values its vectors have, with --values")
	case f.config.Mode == rl.Periodic:
		return cli.UsageError("--mode %s: a program waits for sums (sync) or does not (async)", f.config.Mode)
	}
	if err := errors.Join(cli.CheckEnding(f.to, "traces", ".trace"), cli.RefuseAnyExisting(f.force,
		f.listTargets()...)); err != nil {
		return err
	}
	p := &onwire.Program{Command: f.own.command, Systems: []string{rl.Ideal}, Seeds: []uint64{f.config.Seed},
		Workers:  f.config.Workers,
		Clusters: 1, Values: f.own.values, Lanes: process.MaxOpenLanes, Scale: attach.DefaultScale,
		Say: func(format string, args ...any) {
			if !f.quiet {
				fmt.Fprintf(env.Stderr, format+"\n", args...)
			}
		},
		Told: func(onwire.Point) {},
	}
	if cmd.Flags().Changed("clusters") {
		p.Clusters = f.config.Clusters
	}
	if err := p.Check(); err != nil {
		return err
	}
	file, err := trace.CreateFile(f.to, trace.Header{Tool: cli.ToolVersion(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH,
		Seed: f.config.Seed, Clock: trace.Wall,
		Env: f.own.command, Workers: p.Workers, Clusters: p.Clusters, Lanes: p.Values, Network: rl.Ideal,
		Payload: f.payload})
	if err != nil {
		return err
	}
	recorded := p.Record(cmd.Context(), file, f.config.Mode == rl.Sync)
	if err := file.Close(); err != nil {
		return errors.Join(recorded, err)
	}
	fmt.Fprintf(env.Stderr, "wrote %s: %s\n", f.to, olaf.Plural(file.Rows(), "update"))
	if errors.Is(recorded, context.Canceled) {
		return cli.MarkInterrupted(recorded)
	}
	return recorded
}
