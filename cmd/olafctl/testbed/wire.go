package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/rl/onwire"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/attach"
	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// wireFlags are the flags for systems whose hosts exchange whole frames with a switch in user space. All processes of a
// job must have the same values.
type wireFlags struct {
	interfaces string
	mode       string
	options    system.Options
}

// wireConn is a socket for the frames of a host that can be closed.
type wireConn interface {
	endpoints.FrameConn
	io.Closer
}

func (f *wireFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.interfaces, "interface", "", "interface to the switch ('olafctl testbed switch'), for systems other "+
		"than xagg, olaf and fifo")
	f.addOptions(cmd)
}

// addOptions adds the flags that the switch needs as well.
func (f *wireFlags) addOptions(cmd *cobra.Command) {
	cli.Choose(cmd, &f.mode, "mode", "sync if workers wait for the sum of all (the default), async if the server's program "+
		"answers each update of a worker (ps)", "sync", "async")
	cmd.Flags().IntVar(&f.options.Slots, system.OptionSlots, 0, "slots of the switch's table; 0 for the system's default")
	cmd.Flags().StringVar(&f.options.Profile, system.OptionProfile, "", "profile of the switch's program; default a "+
		"profile with exact sums")
}

// wireEndpoints contains the functions that run the workers and servers of systems around a switch in user space.
var wireEndpoints = endpointSystem{(*workerFlags).runWire, (*serverFlags).runWire,
	[]string{"interface", "mode", system.OptionSlots, system.OptionProfile, "workers"}}

// wireForeign lists flags that do not apply to systems around a switch in user space, because the system determines
// frames and addresses.
var wireForeign = []string{"listen", "line", "lanes", "scale", "training", "id", "every", "start"}

// wireSystems returns the systems whose hosts can run around a switch in user space.
func wireSystems(env *cli.Env) (names []string) {
	for i := range env.Systems {
		s := &env.Systems[i]
		if _, other := EndpointRows[s.Name]; !other && s.CanLoop() {
			names = append(names, s.Name)
		}
	}
	return names
}

// build builds a job in which programs exchange vectors of up to the given number of values. timeout is the time after
// which a worker resends packets; 0 is the default for real packets.
func (f *wireFlags) build(env *cli.Env, name string, workers, values int, timeout time.Duration) (*onwire.WireJob, error) {
	if workers < 1 || values < 1 || values > attach.MaxValues {
		return nil, cli.UsageError("--workers %d, --values %d; use 1 or more of each, and up to %d values", workers,
			values,
			attach.MaxValues)
	}
	spec := func(o system.Options) (*job.Spec, error) {
		return (&cells.Job{System: name, Mode: f.mode, Options: o}).Spec(env.Systems)
	}
	return onwire.BuildWireJob(spec, f.options, workers, values, cmp.Or(timeout, realTimeout))
}

// openWire opens a socket on the interface that leads to the switch.
func (f *wireFlags) openWire(cmd *cobra.Command, system string) (wireConn, error) {
	if err := cli.RefuseFlags(cmd, wireForeign, "--system "+system); err != nil {
		return nil, err
	}
	if f.interfaces == "" {
		return nil, cli.UsageError("--system %s: --interface is missing, the interface to the switch; start 'olafctl "+
			"testbed switch --system %s', which prints it", system, system)
	}
	return openFrames(f.interfaces)
}

// openWork opens the socket of a host's program and returns the work that serves it.
func (f *attachFlags) openWork(ctx context.Context, env *cli.Env, config attach.Config) (*attached, onwire.Computation, error) {
	a, err := f.openPort(ctx, env, config)
	if err != nil {
		return nil, nil, err
	}
	work, err := onwire.NewComputation(a.config, a.end, func(format string, args ...any) {
		fmt.Fprintf(env.Stderr, format+"\n", args...)
	})
	if err != nil {
		return nil, nil, a.closePort(err)
	}
	go a.port.Serve(work)
	return a, work, nil
}

// runWire runs a worker connected to a switch in user space. An attached program provides the vectors and receives the
// sums, or the models.
func (f *workerFlags) runWire(cmd *cobra.Command, env *cli.Env) error {
	if !f.attach.isSet() {
		return cli.UsageError("--system %s: its workers exchange a program's vectors; add --attach unix:PATH, or use "+
			"'olafctl bench -d host: --system %s' for generated vectors", f.system, f.system)
	}
	w, err := f.wire.build(env, f.system, f.job.Workers, f.job.Values, f.open.timeout)
	if err != nil {
		return err
	}
	if f.number < 0 || f.number >= f.job.Workers {
		return cli.UsageError("--worker %d: the job has %s, numbered from 0", f.number, olaf.Plural(f.job.Workers,
			"worker"))
	}
	conn, err := f.wire.openWire(cmd, f.system)
	if err != nil {
		return err
	}
	defer conn.Close()
	a, work, err := f.attach.openWork(cmd.Context(), env, w.WorkerConfig(f.number))
	if err != nil {
		return err
	}
	if err := f.attach.announceProgram(env, f.format, netip.AddrPort{}); err != nil {
		return a.closePort(err)
	}
	report, err := w.PlayWorker(a.ctx, conn, f.number, f.countVectors(cmd), work, f.attach.maxSilence())
	err = a.closePort(err)
	if report == nil {
		return err
	}
	if pushes, pulled := work.(*attach.Pushes); pulled {
		onwire.AddPulls(report.Counts, pushes.Pulls())
	}
	return errors.Join(err, f.reportSums(env, report, &endpoints.Sums{Worker: olaf.WorkerID(f.number)}, nil))
}

// runWire runs the server of a system in which the server adds vectors or, with an attached program, answers updates.
func (f *serverFlags) runWire(cmd *cobra.Command, env *cli.Env) error {
	w, err := f.wire.build(env, f.system, f.job.Workers, f.job.Values, 0)
	if err != nil {
		return err
	}
	config, err := w.ServerConfig(f.attach.isSet())
	switch {
	case err != nil:
		return err
	case len(f.workers) > 0:
		return cli.UsageError("--worker: --system %s needs only the number of its workers (--workers)", f.system)
	}
	conn, err := f.wire.openWire(cmd, f.system)
	if err != nil {
		return err
	}
	defer conn.Close()
	if f.attach.isSet() {
		return f.answerWire(cmd, env, w, config, conn)
	}
	if f.format == cli.JSONL {
		err = cli.WriteLine(env.Stdout, onwire.Listening{})
	} else {
		_, err = fmt.Fprintf(env.Stderr, "adding vectors at %s (Ctrl-C ends it)\n", f.wire.interfaces)
	}
	if err != nil {
		return err
	}
	report, err := w.PlayServer(cmd.Context(), conn, nil, forEver)
	if report == nil || err != nil {
		return explainEnd(cmd.Context(), err)
	}
	return f.printWireReport(cmd.Context(), env, report)
}

// answerWire runs a server at which a program answers each update.
func (f *serverFlags) answerWire(cmd *cobra.Command, env *cli.Env, w *onwire.WireJob, config attach.Config, conn wireConn) error {
	a, work, err := f.attach.openWork(cmd.Context(), env, config)
	if err != nil {
		return err
	}
	if err := f.attach.announceProgram(env, f.format, netip.AddrPort{}); err != nil {
		return a.closePort(err)
	}
	report, err := w.PlayServer(a.ctx, conn, work, f.attach.maxSilence())
	if err = a.closePort(err); report == nil || err != nil && cmd.Context().Err() == nil {
		return err
	}
	return f.printWireReport(cmd.Context(), env, report)
}

// printWireReport prints the report of a server around a switch in user space.
func (f *serverFlags) printWireReport(ctx context.Context, env *cli.Env, report *endpoints.Report) error {
	return f.printReport(ctx, env, struct {
		cli.Head
		endpoints.StationReport
	}{cli.Info("ps"), endpoints.StationReport{Counts: report.Counts, Traffic: report.Traffic}}, report.Counts)
}
