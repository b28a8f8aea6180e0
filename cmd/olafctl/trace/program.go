package trace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/rl/onwire"
	"github.com/olafctl/olaf/internal/tempfolder"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/process"
	"github.com/olafctl/olaf/pktgen/trace"
)

// traceProgramFlags are the flags for recording the updates of the user's own command.
type traceProgramFlags struct {
	command string
	address string // address of a socket for recorders
	values  int
}

func (f *traceProgramFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.command, "program", "", "record this command, once per worker and for the server, over "+
		"an ideal network")
	cmd.Flags().StringVar(&f.address, "attach", "", "record what olaf.Recorder in other programs sends to this socket, "+
		"unix:PATH")
	cmd.Flags().IntVar(&f.values, "values", 0, "values of the program's vectors")
}

// recordAttached records the updates that the recorders in running programs send, until all of them have ended.
func (f *traceRecordFlags) recordAttached(cmd *cobra.Command, env *cli.Env) (err error) {
	foreign := []string{"iterations", "threshold", "clock", "program", "values", "mode", "workers", "clusters", "seed"}
	if err := cli.RefuseFlags(cmd, foreign, "--attach"); err != nil {
		return err
	}
	if f.to == "" {
		return cli.UsageError("no file to record into; use -w FILE")
	}
	if err := errors.Join(cli.CheckEnding(f.to, "traces", ".trace"), cli.RefuseAnyExisting(f.force,
		f.listTargets()...)); err != nil {
		return err
	}
	folder, remove, err := tempfolder.MakeFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	ctx, end := context.WithCancelCause(cmd.Context())
	defer end(nil)
	records := attach.NewRecords(folder, end)
	port, err := attach.Listen(f.own.address, func(format string, args ...any) {
		if !f.quiet {
			fmt.Fprintf(env.Stderr, format+"\n", args...)
		}
	})
	if err != nil {
		return err
	}
	port.Many = true
	fmt.Fprintf(env.Stderr, "waiting for recorders at %s\n", f.own.address)
	go port.Serve(records)
	<-ctx.Done()
	stopped := cmd.Context().Err() != nil
	if why := context.Cause(ctx); !stopped && !errors.Is(why, context.Canceled) {
		err = why
	}
	if err := errors.Join(err, port.Close(nil)); err != nil {
		return err
	}
	if err := f.writeRecords(env, records.First()); err != nil {
		return err
	}
	if stopped {
		return cli.MarkInterrupted(context.Canceled)
	}
	return nil
}

// writeRecords writes the recorded updates of all workers into one trace.
func (f *traceRecordFlags) writeRecords(env *cli.Env, first string) error {
	r, err := trace.OpenRecords(first)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.UsageError("nothing is written: %s has no records; all workers need a Recorder with this address",
			filepath.Base(first))
	}
	if err != nil {
		return err
	}
	h := *r.Header()
	h.Tool, h.GOOS, h.GOARCH, h.Payload = cli.ToolVersion(), runtime.GOOS, runtime.GOARCH, f.payload
	file, err := trace.CreateFile(f.to, h)
	if err != nil {
		return err
	}
	if err := errors.Join(r.CopyTo(file), file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "wrote %s: %s\n", f.to, olaf.Plural(file.Rows(), "update"))
	return nil
}

// recordProgram runs the user's command and records its updates.
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
		Progress: func(format string, args ...any) {
			if !f.quiet {
				fmt.Fprintf(env.Stderr, format+"\n", args...)
			}
		},
		OnPoint: func(onwire.Point) {},
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
