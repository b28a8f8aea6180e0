package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/rl/onwire"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/endpoint"
	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// openFlags are the flags for workers that do not wait for answers.
type openFlags struct {
	training string
	start    string
	timeout  time.Duration
	tc       time.Duration
	slope    tc.Slope
	law      tc.LawName
	ack      tc.AckContent
	seed     uint64
}

func (f *openFlags) addWorker(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.slope, f.law, f.ack = tc.Urgency, tc.PaperLaw, tc.NumberAck
	flags.StringVar(&f.start, "start", "", "start time, such as 2026-11-22T16:00:00.5Z; default now")
	flags.DurationVar(&f.timeout, "timeout", 0, "resend an update unanswered for this long; 0 for never")
	flags.DurationVar(&f.tc, "tc", 0, "transmission control threshold for the time since the last ACK (§5); 0 for off")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of transmission control")
	cli.Choose(cmd, &f.slope, "slope", "slope v of transmission control", tc.Slopes()...)
	cli.Choose(cmd, &f.law, "tc-law", "law of transmission control, with --tc", tc.LawNames()...)
	cli.AddAckContent(cmd, &f.ack)
}

// parseStart returns the start time of the job. The zero time means that the job starts now.
func (f *openFlags) parseStart() (time.Time, error) {
	if f.start == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, f.start)
	if err != nil {
		return at, cli.UsageError("--start %q: write a time such as 2026-11-22T16:00:00.5Z", f.start)
	}
	return at, nil
}

// loadTraining reads the configuration of the training to run, or returns nil if there is none.
func (f *openFlags) loadTraining(env *cli.Env) (*rl.Config, error) {
	if f.training == "" {
		return nil, nil
	}
	var text []byte
	var err error
	if f.training == "-" {
		text, err = io.ReadAll(env.Stdin)
	} else {
		text, err = os.ReadFile(f.training)
	}
	if err != nil {
		return nil, cli.UsageError("--training: %v", err)
	}
	c, err := rl.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("--training %s: %w", f.training, err)
	}
	return c, nil
}

// splitLayout returns how vectors are split into packets.
func (f *endpointFlags) splitLayout(cmd *cobra.Command, training *rl.Config) (endpoint.Layout, error) {
	if training != nil {
		return onwire.GradientLayout(), nil
	}
	if !cmd.Flags().Changed("values") {
		f.job.Values = f.job.Lanes
	}
	if f.job.Lanes < 1 || f.job.Lanes > endpoints.MaxOpenLanes {
		return endpoint.Layout{}, cli.UsageError("--lanes is %d; packets that the kernel merges have 1 to %d",
			f.job.Lanes, endpoints.MaxOpenLanes)
	}
	return endpoint.Layout{Values: f.job.Values, PerPacket: f.job.Lanes}, nil
}

// runOpen runs a worker that sends updates to a queue.
func (f *workerFlags) runOpen(cmd *cobra.Command, env *cli.Env) error {
	if f.attach.isSet() {
		return f.runAttachedOpen(cmd, env)
	}
	training, err := f.open.loadTraining(env)
	if err != nil {
		return err
	}
	layout, err := f.splitLayout(cmd, training)
	if err != nil {
		return err
	}
	server, err := endpointAddress("server", f.server)
	if err != nil {
		return err
	}
	p, cfg, err := f.newPlayer(training, layout)
	if err != nil {
		return err
	}
	ctx, conn, err := f.openSender(cmd.Context(), p, server, layout.Packets())
	if err != nil {
		return err
	}
	defer conn.Close()
	o, err := f.open.options(cfg.Worker)
	if err != nil {
		return err
	}
	if f.format == cli.JSONL {
		p.Handed = func(vector uint32, c *endpoints.Computed, at time.Duration) {
			// Errors are ignored: the reader may have exited.
			_ = cli.WriteLine(env.Stdout, onwire.Vector{Vector: &vector, AtNS: at.Nanoseconds(),
				Reward: float64(c.Reward) / 256})
		}
	}
	report, err := p.Run(ctx, conn.UDPConn, func(h endpoint.Host) (endpoint.Endpoint,
		error) {
		return endpoint.NewOpenWorker(*cfg, o, h)
	})
	if report == nil || err != nil || errors.Is(context.Cause(ctx), endpoints.ErrOffline) {
		return explainEnd(ctx, err)
	}
	done := onwire.WorkerReport{Worker: cfg.Worker, Report: *report}
	if pilot, trains := p.Work.(*onwire.Pilot); trains {
		done.Diverged = pilot.Divergence()
	}
	return f.reportOpen(ctx, env, &done)
}

// openSender opens the socket of a worker behind a queue and gives p the server's address and, for updates of several
// packets, an address per packet of an update.
func (f *workerFlags) openSender(ctx context.Context, p *endpoints.Player, server netip.AddrPort,
	packets int) (context.Context, *socket, error) {
	ctx, conn, err := f.openSocket(ctx, packets > 1)
	if err != nil {
		return nil, nil, err
	}
	p.To = func(endpoint.Peer, *program.Packet) netip.AddrPort { return server }
	if packets > 1 {
		p.From = onwire.PlaceAddresses(conn.own.Addr(), packets)
	}
	return ctx, conn, nil
}

// reportOpen prints the report of a worker. It returns an error if the worker's packets were never answered.
func (f *workerFlags) reportOpen(ctx context.Context, env *cli.Env, report *onwire.WorkerReport) error {
	err := cli.WriteDocument(env, f.format, struct {
		cli.Head
		*onwire.WorkerReport
	}{cli.Info("open-worker"), report})
	if err == nil {
		var invalid error
		if ctx.Err() == nil && f.open.training == "" {
			invalid = checkAnswered(report.Counts)
		}
		err = f.keepRun(env, "worker", int(report.Worker), report.Counts, invalid)
	}
	if err != nil || ctx.Err() != nil || f.open.training != "" { // a short training may end before its first answer
		return err
	}
	return checkAnswered(report.Counts)
}

// checkAnswered returns an error if packets were sent but none was received, because the server or the program between
// worker and server is gone.
func checkAnswered(counts map[string]uint64) error {
	sent := counts["packets_sent"]
	if sent == 0 || counts["packets_received"] > 0 {
		return nil
	}
	return &cli.Exit{Kind: olaf.Failed, Err: fmt.Errorf("nothing answered %s; check that the server and the queue's "+
		"program are running: 'olafctl testbed show' lists what is missing", olaf.Plural(sent, "packet"))}
}

// options returns the retransmission timeout and the transmission control for a worker.
func (f *openFlags) options(worker olaf.WorkerID) (endpoint.Olaf, error) {
	o := endpoint.Olaf{Timeout: olaf.Duration(f.timeout) * olaf.Nanosecond}
	if f.tc == 0 && (f.law == tc.PaperLaw || f.law == tc.NoLaw) && f.ack == tc.NumberAck {
		return o, nil
	}
	law, err := tc.NewLaw(f.law, tc.Config{Threshold: olaf.Duration(f.tc) * olaf.Nanosecond, Slope: f.slope, Ack: f.ack})
	if err != nil {
		return o, cli.UsageError("--tc-law %s: its %v (--tc)", f.law, err)
	}
	o.Gate = tc.NewGate(law, f.ack, f.seed, worker)
	return o, nil
}

// newPlayer returns a player that runs a worker, and the worker's configuration.
func (f *workerFlags) newPlayer(training *rl.Config, layout endpoint.Layout) (*endpoints.Player, *endpoint.Config,
	error) {
	if f.number < 0 || f.every < 0 {
		return nil, nil, cli.UsageError("--worker %d, --every %v: neither may be negative", f.number, f.every)
	}
	worker := olaf.WorkerID(f.number)
	cfg := &endpoint.Config{Job: olaf.ClusterID(f.id), Worker: worker, Workers: f.number + 1, Layout: layout,
		Updates: uint32(max(f.job.Vectors, 0))}
	p := &endpoints.Player{Patience: f.attach.maxSilence(), Codec: &endpoints.Open{Packets: layout.Packets()},
		Work: &endpoints.Numbers{Worker: worker, Layout: layout, Every: f.every}}
	var err error
	if p.Start, err = f.open.parseStart(); err != nil {
		return nil, nil, err
	}
	if training != nil {
		if f.number >= training.Workers {
			return nil, nil, cli.UsageError("--worker %d: the training has %d workers, numbered from 0", f.number,
				training.Workers)
		}
		pilot, err := onwire.NewPilot(training, f.number)
		if err != nil {
			return nil, nil, err
		}
		p.Work = pilot
		cfg.Job, cfg.Workers, cfg.Updates = training.Cluster(f.number), training.Workers, uint32(training.Iterations)
	}
	return p, cfg, nil
}

// runOpen runs the server behind a queue.
func (f *serverFlags) runOpen(cmd *cobra.Command, env *cli.Env) error {
	if f.attach.isSet() {
		return f.runAttachedOpen(cmd, env)
	}
	training, err := f.open.loadTraining(env)
	if err != nil {
		return err
	}
	layout, err := f.splitLayout(cmd, training)
	if err != nil {
		return err
	}
	workers, err := f.addresses()
	if err != nil {
		return err
	}
	placement, servers, err := f.placeWorkers(training, len(workers))
	if err != nil {
		return err
	}
	ctx, conn, err := f.openSocket(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer conn.Close()
	numbers := &endpoints.Numbers{Layout: layout}
	p := &endpoints.Player{Codec: &endpoints.Open{Packets: layout.Packets()}, Work: numbers,
		To: func(to endpoint.Peer, _ *program.Packet) netip.AddrPort { return workers[to] }}
	first := olaf.ClusterID(f.id)
	if servers != nil {
		p.Work, first = servers, 0
	}
	if err := f.announceServer(env, conn.own); err != nil {
		return err
	}
	cfg := endpoint.Config{Workers: len(workers), Layout: layout, Updates: 1}
	o := endpoint.Olaf{Members: membersFrom(first, placement)}
	report, err := p.Run(ctx, conn.UDPConn, func(h endpoint.Host) (endpoint.Endpoint,
		error) {
		return endpoint.NewOpenServer(cfg, o, h)
	})
	if report == nil || err != nil {
		return explainEnd(ctx, err)
	}
	if err := f.printReport(ctx, env, serverDocument(report, numbers, servers), report.Counts); err != nil {
		return err
	}
	return checkValues(numbers.Wrong, numbers.Checked, report.Counts)
}

// serverDocument returns the server's JSON document with the checked values or, for training, with the training result.
func serverDocument(report *endpoints.Report, numbers *endpoints.Numbers, servers *onwire.Servers) any {
	out := struct {
		cli.Head
		onwire.ServerReport
		Inside  int `json:"updates_inside,omitempty"`
		Checked int `json:"values_checked,omitempty"`
		Wrong   int `json:"values_wrong,omitempty"`
	}{cli.Info("open-ps"), onwire.ServerReport{Report: *report}, numbers.Inside, numbers.Checked, numbers.Wrong}
	if servers != nil {
		out.Servers, out.Places, out.Greedy, out.Diverged = servers.Stats(), servers.Places(),
			rl.Evaluate(servers.Weights(0), rl.Flights), servers.Divergence()
	}
	return out
}

// membersFrom returns a function that returns the range of workers in a job. The jobs of the clusters have consecutive
// IDs starting at first. Other jobs have no workers.
func membersFrom(first olaf.ClusterID, p pktgen.Placement) func(olaf.ClusterID) (from, to int) {
	return func(job olaf.ClusterID) (int, int) {
		if cluster := int(job) - int(first); cluster >= 0 && cluster < p.Clusters {
			return p.Members(cluster)
		}
		return 0, 0
	}
}

// placeWorkers returns how workers are placed in clusters, and the servers for their weights, which are nil without
// training.
func (f *serverFlags) placeWorkers(training *rl.Config, workers int) (pktgen.Placement, *onwire.Servers, error) {
	placement := pktgen.Placement{Workers: workers, Clusters: f.clusters}
	var servers *onwire.Servers
	if training != nil {
		if training.Workers != workers {
			return placement, nil, cli.UsageError("--worker: addresses for %d workers, but the training has %d",
				workers,
				training.Workers)
		}
		var err error
		if servers, err = onwire.NewServers(training); err != nil {
			return placement, nil, err
		}
		placement = training.Placement
	}
	if placement.Workers < 1 || placement.Clusters < 1 || placement.Clusters > placement.Workers {
		return placement, nil, cli.UsageError("%s in --worker, %s: every cluster needs at least one worker",
			olaf.Plural(placement.Workers, "address"), olaf.Plural(placement.Clusters, "cluster"))
	}
	return placement, servers, nil
}

// announceServer reports that the server is ready, as text or as a line of JSON.
func (f *serverFlags) announceServer(env *cli.Env, own netip.AddrPort) error {
	if f.format == cli.JSONL {
		return cli.WriteLine(env.Stdout, onwire.Listening{Listening: own})
	}
	fmt.Fprintf(env.Stderr, "listening at %v (Ctrl-C ends it)\n", own)
	return nil
}
