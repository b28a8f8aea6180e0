package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/rl/onwire"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/endpoint"
	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// attachFlags are the flags for a worker or a server whose computation is done by an attached program.
type attachFlags struct {
	address  string
	scale    float64
	patience time.Duration
	line     int
}

func (f *attachFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.address, "attach", "", "let a program that attaches to this socket compute the gradients, "+
		"unix:PATH")
	flags.Float64Var(&f.scale, "scale", attach.DefaultScale, "int32 lanes per unit of an attached program's values; "+
		"must be equal at all ends")
	flags.DurationVar(&f.patience, "patience", 0, "exit after this long without an answer; 0 means 20s, or "+
		"never with --attach")
}

// isSet reports whether an attached program does the computation.
func (f *attachFlags) isSet() bool { return f.address != "" }

// forEver is the default timeout of an attached worker, which waits until its program connects or leaves.
const forEver = time.Duration(math.MaxInt64)

// maxSilence returns the time after which a worker or server that receives nothing gives up.
func (f *attachFlags) maxSilence() time.Duration {
	if f.isSet() {
		return cmp.Or(f.patience, forEver)
	}
	return f.patience
}

// attached is the socket to which a program attaches, with the context in which the program computes.
type attached struct {
	ctx    context.Context
	end    context.CancelCauseFunc
	port   *attach.Port
	config attach.Config
}

// openPort listens for a program that attaches. config.Largest is the program's longest vector.
func (f *attachFlags) openPort(ctx context.Context, env *cli.Env, config attach.Config) (*attached, error) {
	if f.patience < 0 {
		return nil, cli.UsageError("--patience %v is negative; use a time such as 1m, or 0 to wait without end",
			f.patience)
	}
	if config.Conversion == nil {
		config.Scale = f.scale
	}
	if err := config.Check(); err != nil {
		return nil, err
	}
	port, err := attach.Listen(f.address, func(format string, args ...any) {
		fmt.Fprintf(env.Stderr, format+"\n", args...)
	})
	if err != nil {
		return nil, err
	}
	a := &attached{port: port, config: config}
	a.ctx, a.end = context.WithCancelCause(ctx)
	return a, nil
}

// announceProgram reports that a program can now attach to the worker, as text or as a line of JSON.
func (f *attachFlags) announceProgram(env *cli.Env, format cli.Format, own netip.AddrPort) error {
	if format == cli.JSONL {
		return cli.WriteLine(env.Stdout, onwire.Listening{Listening: own})
	}
	fmt.Fprintf(env.Stderr, "waiting for a program at %s\n", f.address)
	return nil
}

// closePort closes the connection to the program, sends it the reason why its worker or server ended, and returns the
// reason. If the program ended the connection properly, there is no error.
func (a *attached) closePort(err error) error {
	if cause := context.Cause(a.ctx); err == nil && !errors.Is(cause, attach.ErrBye) {
		err = cause
	}
	a.end(nil)
	return errors.Join(explainEnd(context.Background(), err), a.port.Close(err))
}

// countVectors returns the number of vectors that a worker sends. For an attached worker without --vectors, the number
// is unlimited.
func (f *endpointFlags) countVectors(cmd *cobra.Command) uint32 {
	if f.attach.isSet() && !cmd.Flags().Changed("vectors") {
		return math.MaxUint32
	}
	return uint32(max(f.job.Vectors, 0))
}

// fitLanes sets the number of lanes in a frame to the maximum for the link, unless --lanes is given.
func (f *endpointFlags) fitLanes(cmd *cobra.Command) error {
	own, err := endpointAddress("listen", f.listen)
	if err != nil || cmd.Flags().Changed("lanes") {
		return err
	}
	if lanes, found := endpoints.LinkLanes(own.Addr()); found {
		f.job.Lanes = lanes
	}
	return nil
}

// runAttachedXAgg runs a worker below an aggregator. An attached program provides the vectors and receives the sums.
func (f *workerFlags) runAttachedXAgg(cmd *cobra.Command, env *cli.Env, p *endpoints.Player) error {
	if err := f.fitLanes(cmd); err != nil {
		return err
	}
	config := attach.Config{System: f.system, Waits: true, Worker: f.number, Workers: f.job.Workers,
		Largest: f.job.Values, Lanes: f.job.Lanes, Children: p.Child != nil}
	f.job.Values = attach.RoundsJob(config.Largest, config.Lanes)
	if !cmd.Flags().Changed("vectors") {
		f.job.Vectors = endpoints.MaxVectors
	}
	if err := f.checkSums(); err != nil {
		return err
	}
	ctx, conn, err := f.openSocket(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer conn.Close()
	a, err := f.attach.openPort(ctx, env, config)
	if err != nil {
		return err
	}
	rounds, err := attach.NewRounds(a.config, a.end)
	if err != nil {
		return a.closePort(err)
	}
	p.Work, p.Check, p.Patience = rounds, rounds.CheckFrame, f.attach.maxSilence()
	go a.port.Serve(rounds)
	if err := f.attach.announceProgram(env, f.format, conn.own); err != nil {
		return a.closePort(err)
	}
	report, err := p.Run(a.ctx, conn.UDPConn, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewXAgg(f.sumConfig(f.countVectors(cmd)), f.xaggConfig(cmd), h)
	})
	err = a.closePort(err)
	if report == nil {
		return err
	}
	return errors.Join(err, f.reportSums(env, report, &endpoints.Sums{Worker: olaf.WorkerID(f.number)}, nil))
}

// runAttachedOpen runs a worker that sends the updates of an attached program to a queue.
func (f *workerFlags) runAttachedOpen(cmd *cobra.Command, env *cli.Env) error {
	layout, server, err := f.attachedLayout(cmd)
	if err != nil {
		return err
	}
	p, cfg, err := f.newPlayer(nil, layout)
	if err != nil {
		return err
	}
	cfg.Updates = f.countVectors(cmd)
	o, err := f.open.options(cfg.Worker)
	if err != nil {
		return err
	}
	ctx, conn, err := f.openSender(cmd.Context(), p, server, layout.Packets())
	if err != nil {
		return err
	}
	defer conn.Close()
	a, err := f.attach.openPort(ctx, env, attach.Config{System: f.system, Worker: f.number, Largest: f.job.Values,
		Lanes: f.job.Lanes})
	if err != nil {
		return err
	}
	pushes, err := attach.NewPushes(a.config, o.Gate, a.end)
	if err != nil {
		return a.closePort(err)
	}
	o.Gate, p.Work, p.Patience = pushes, pushes, f.attach.maxSilence()
	go a.port.Serve(pushes)
	if err := f.attach.announceProgram(env, f.format, conn.own); err != nil {
		return a.closePort(err)
	}
	report, err := p.Run(a.ctx, conn.UDPConn, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewOpenWorker(*cfg, o, h)
	})
	err = a.closePort(err)
	if report == nil {
		return err
	}
	onwire.AddPulls(report.Counts, pushes.Pulls())
	return errors.Join(err, f.reportOpen(cmd.Context(), env, &onwire.WorkerReport{Worker: cfg.Worker, Report: *report}))
}

// attachedLayout returns how the program's longest update is split into packets, and the server's address.
func (f *workerFlags) attachedLayout(cmd *cobra.Command) (endpoint.Layout, netip.AddrPort, error) {
	server, err := endpointAddress("server", f.server)
	if err != nil {
		return endpoint.Layout{}, server, err
	}
	layout, err := f.openLayout(cmd)
	return layout, server, err
}

// openLayout returns how the longest update that a program sends through a queue is split into packets. Without
// --values, the update fits into one frame.
func (f *endpointFlags) openLayout(cmd *cobra.Command) (endpoint.Layout, error) {
	if err := f.fitLanes(cmd); err != nil {
		return endpoint.Layout{}, err
	}
	if f.job.Lanes <= attach.Overhead || f.job.Lanes > endpoints.MaxOpenLanes {
		return endpoint.Layout{}, cli.UsageError("--lanes is %d; frames of an attached program have %d to %d lanes",
			f.job.Lanes,
			attach.Overhead+1, endpoints.MaxOpenLanes)
	}
	if !cmd.Flags().Changed("values") {
		f.job.Values = f.job.Lanes - attach.Overhead
	}
	if f.job.Values < 1 || f.job.Values > attach.MaxValues {
		return endpoint.Layout{}, cli.UsageError("--values is %d; use 1 to %d", f.job.Values, attach.MaxValues)
	}
	return attach.PushLayout(f.job.Values, f.job.Lanes), nil
}

// runAttachedOpen runs the server behind a queue. An attached program maintains the model.
func (f *serverFlags) runAttachedOpen(cmd *cobra.Command, env *cli.Env) error {
	layout, err := f.openLayout(cmd)
	if err != nil {
		return err
	}
	workers, err := f.addresses()
	if err != nil {
		return err
	}
	placement, _, err := f.placeWorkers(nil, len(workers))
	if err != nil {
		return err
	}
	ctx, conn, err := f.openSocket(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer conn.Close()
	a, err := f.attach.openPort(ctx, env, attach.Config{System: f.system, Server: true, Workers: len(workers),
		Largest: f.job.Values, Lanes: f.job.Lanes})
	if err != nil {
		return err
	}
	updates, err := attach.NewUpdates(a.config, a.end, func(format string, args ...any) {
		fmt.Fprintf(env.Stderr,
			format+"\n", args...)
	})
	if err != nil {
		return a.closePort(err)
	}
	go a.port.Serve(updates)
	p := &endpoints.Player{Codec: &endpoints.Open{Packets: layout.Packets()}, Work: updates,
		Patience: f.attach.maxSilence(),
		To:       func(to endpoint.Peer, _ *program.Packet) netip.AddrPort { return workers[to] }}
	if err := f.announceServer(env, conn.own); err != nil {
		return a.closePort(err)
	}
	cfg := endpoint.Config{Workers: len(workers), Layout: layout, Updates: 1}
	o := endpoint.Olaf{Members: membersFrom(olaf.ClusterID(f.id), placement), Line: f.attach.line}
	report, err := p.Run(a.ctx, conn.UDPConn, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewOpenServer(cfg, o, h)
	})
	if err = a.closePort(err); report == nil || err != nil && cmd.Context().Err() == nil {
		return err
	}
	return f.printReport(ctx, env, serverDocument(report, new(endpoints.Numbers), nil), report.Counts)
}
