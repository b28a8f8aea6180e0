package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/fpga/engine"
	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// endpointFlags are the flags that must have the same values for a job's workers and server.
type endpointFlags struct {
	system string
	job    endpoints.Job
	id     uint16
	listen string
	line   olaf.Rate
	group  int
	format cli.Format
	open   openFlags
	attach attachFlags
	wire   wireFlags
	keep   cli.KeepFlags
	// started is the time when the program began, for keeping the run.
	started time.Time
}

// endpointSystem contains the functions that run a system's worker and server, and the flags that only this system
// accepts.
type endpointSystem struct {
	worker func(*workerFlags, *cobra.Command, *cli.Env) error
	server func(*serverFlags, *cobra.Command, *cli.Env) error
	only   []string
}

// EndpointSystems returns the systems whose workers and servers can run as programs: the queues, whose workers do not
// wait, and the systems in EndpointRows.
func EndpointSystems() []string {
	names := engine.DisciplineNames()
	for name := range EndpointRows {
		names = append(names, name)
	}
	return names
}

var (
	queueEndpoints = endpointSystem{(*workerFlags).runOpen, (*serverFlags).runOpen,
		[]string{"server", "tc", "tc-law", "tc-ack", "slope", "seed", "clusters", "queue"}}
	EndpointRows = map[string]endpointSystem{
		"xagg": {(*workerFlags).runXAgg, (*serverFlags).runXAgg,
			[]string{"aggregator", "skip", "agent", "workers", "line", "group", "epoch", "child", "above", "adopt", "adopt-slow", "fan-out"}},
	}
)

// findSystem returns the requested system. It rejects flags of other systems.
func (f *endpointFlags) findSystem(cmd *cobra.Command, env *cli.Env) (*endpointSystem, error) {
	s, mine := EndpointRows[f.system]
	switch {
	case mine:
	case slices.Contains(wireSystems(env), f.system):
		s = wireEndpoints
	default:
		s = queueEndpoints
	}
	others := []endpointSystem{queueEndpoints, wireEndpoints}
	for _, row := range EndpointRows {
		others = append(others, row)
	}
	for _, o := range others {
		foreign := slices.DeleteFunc(slices.Clone(o.only),
			func(name string) bool { return slices.Contains(s.only, name) })
		if err := cli.RefuseFlags(cmd, foreign, "--system "+f.system); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

func (f *endpointFlags) add(cmd *cobra.Command, env *cli.Env) {
	flags := cmd.Flags()
	f.system = "xagg"
	cli.Choose(cmd, &f.system, "system", "system whose protocol to use", append(EndpointSystems(), wireSystems(env)...)...)
	f.wire.add(cmd)
	flags.Uint16Var(&f.id, "id", 1, "id of the job")
	flags.IntVar(&f.job.Workers, "workers", 4, "workers of the job")
	flags.IntVar(&f.job.Values, "values", 1<<16, "32-bit values per vector; through a queue, default one packet")
	flags.IntVar(&f.job.Lanes, "lanes", 256, "values per packet; with --attach, default what the link's MTU allows")
	flags.IntVar(&f.job.Vectors, "vectors", 10, "vectors per worker")
	flags.Var(&f.line, "line", "rate of this end's link, such as 50M; 0bps for no rate control")
	flags.StringVar(&f.listen, "listen", "", "address and port to bind, such as 10.77.0.2:20300")
	flags.StringVar(&f.open.training, "training", "",
		"train LunarLander with this configuration ('olafctl train -o json'); - for stdin")
	f.attach.add(cmd)
	f.keep.AddOptional(cmd)
	f.format = cli.JSON
	cli.AddFormatFlag(cmd, &f.format, cli.JSON, cli.JSONL)
}

// socket is the UDP socket of an endpoint.
type socket struct {
	*net.UDPConn
	own   netip.AddrPort
	leave func()
}

// Close closes the socket and ends the context of openSocket.
func (s *socket) Close() error {
	s.leave()
	return s.UDPConn.Close()
}

// openSocket binds a UDP socket. several means that datagrams are sent from several addresses of the host. The context
// ends when the host has lost the address of the socket.
func (f *endpointFlags) openSocket(ctx context.Context, several bool) (context.Context, *socket, error) {
	f.job.ID = olaf.ClusterID(f.id)
	own, err := endpointAddress("listen", f.listen)
	if err != nil {
		return nil, nil, err
	}
	at := own
	if several {
		at = netip.AddrPortFrom(netip.IPv4Unspecified(), own.Port())
	}
	conn, err := openDatagrams(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	homed, leave := endpoints.Homed(ctx, own, endpoints.LookEvery)
	return homed, &socket{conn, own, leave}, nil
}

func endpointAddress(flag, text string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(text)
	if err != nil || !at.Addr().Is4() {
		return at, cli.UsageError("--%s %q is not an IPv4 address with a port, such as 10.77.0.2:20300", flag, text)
	}
	return at, nil
}

// workerFlags are the flags of worker.
type workerFlags struct {
	endpointFlags
	number, skip       int
	epoch, child       uint16
	every              time.Duration
	aggregator, server string
	above              string
}

func NewWorker(env *cli.Env) *cobra.Command {
	f := &workerFlags{}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run one worker: send vectors over UDP and receive the results",
		Long: `Run one worker on a UDP socket. Through a queue (--system olaf or fifo) it sends updates on a schedule and does not wait for
answers; --tc enables transmission control and --training sends gradients of LunarLander. With --system xagg it requests a
rate, sends its vectors, resends what is missing, and asks for sums that do not arrive. The contents of a vector follow from
the worker's number, so the result can be checked. See docs/reference/testbed-file.md.`,
		Example: `  olafctl testbed worker --system olaf --worker 0 --listen 10.78.0.2:20300 --server 10.78.8.2:20300 --every 10ms --tc 50ms
  olafctl testbed worker --worker 0 --listen 10.77.0.2:20300 --aggregator 10.77.0.1:20300 --line 50M`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.started = env.Now()
			s, err := f.findSystem(cmd, env)
			if err != nil {
				return err
			}
			return s.worker(f, cmd, env)
		},
	}
	f.add(cmd, env)
	flags := cmd.Flags()
	flags.IntVar(&f.number, "worker", 0, "number of this worker, from 0")
	flags.StringVar(&f.aggregator, "aggregator", "", "address and port of the aggregator")
	flags.StringVar(&f.server, "server", "", "address and port of the server")
	flags.StringVar(&f.above, "above", "", "server that may take over this worker (ps --adopt)")
	flags.DurationVar(&f.every, "every", 0, "period between updates; default as fast as possible")
	flags.IntVar(&f.skip, "skip", 0, "drop every n-th packet")
	flags.Uint16Var(&f.child, "child", 0, "child number at the aggregator, from 0; default the worker's number")
	flags.Uint16Var(&f.epoch, "epoch", 0, "epoch of the first vector; default the aggregator's next")
	f.open.addWorker(cmd)
	return cmd
}

// serverFlags are the flags of ps.
type serverFlags struct {
	endpointFlags
	agent    string
	workers  []string
	clusters int
	adopt    time.Duration
	fanout   string
	slow     time.Duration
}

func NewPS(env *cli.Env) *cobra.Command {
	f := &serverFlags{}
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "Run the parameter server: receive updates or sums and answer workers",
		Long: `Run the parameter server on a UDP socket until Ctrl-C, then print its counts. Behind a queue (--system olaf or fifo) it
answers every update with an ACK, a merged one to all workers of the cluster; --training applies the gradients. With --system
xagg it is the root of the tree: it sends each sum to all workers and keeps the last ones for resending; --adopt takes over
workers whose aggregator fails.`,
		Example: `  olafctl testbed ps --system olaf --listen 10.78.2.2:20300 --worker 10.78.0.2:20300 --worker 10.78.1.2:20300
  olafctl testbed ps --listen 10.77.2.2:20300 --agent 10.77.2.1:20300 --workers 2 --worker 10.77.0.2:20300 --worker 10.77.1.2:20300`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.started = env.Now()
			s, err := f.findSystem(cmd, env)
			if err != nil {
				return err
			}
			return s.server(f, cmd, env)
		},
	}
	f.add(cmd, env)
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "address and port of the user-space aggregator below")
	flags.StringArrayVar(&f.workers, "worker", nil, "address of a worker; repeat in the order of their numbers")
	flags.IntVar(&f.group, "group", 0, "packets per group acknowledgement, a power of two (default 1024)")
	flags.StringVar(&f.fanout, "fan-out", "", "send each sum once, to a group such as 239.77.0.1:20300 (job 1), "+
		"from which a tree's aggregators copy it to the workers")
	flags.DurationVar(&f.slow, "adopt-slow", 0, "take over the workers after a vector that took longer; 0s for never")
	flags.DurationVar(&f.adopt, "adopt", 0, "take over the workers if the aggregator is silent this long; 0s for never")
	flags.IntVar(&f.clusters, "clusters", 1, "number of clusters, with the workers spread evenly")
	flags.IntVar(&f.attach.line, "queue", 1024,
		"frames that wait for an attached program; those beyond are dropped and counted")
	return cmd
}

// addresses returns the workers' addresses.
func (f *serverFlags) addresses() (all []netip.AddrPort, err error) {
	for _, w := range f.workers {
		at, err := endpointAddress("worker", w)
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, nil
}

// printReport prints the report of a server. The server runs until Ctrl-C or until its network is lost, which is an
// error.
func (f *serverFlags) printReport(ctx context.Context, env *cli.Env, document any, counts map[string]uint64) error {
	if err := cli.WriteDocument(env, f.format, document); err != nil {
		return err
	}
	if err := f.keepRun(env, "ps", 0, counts, checkValues(0, 0, counts)); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), endpoints.ErrOffline) {
		return explainEnd(ctx, nil)
	}
	return nil
}

// keepRun stores the counts of a worker or server if --keep is set.
func (f *endpointFlags) keepRun(env *cli.Env, experiment string, number int, counts map[string]uint64, invalid error) error {
	run := &cli.CountedRun{Experiment: experiment, Config: map[string]any{"system": f.system, "id": f.id, "number": number,
		"lanes": f.job.Lanes, "values": f.job.Values, "vectors": f.job.Vectors}, Counters: map[string]int64{},
		Found: fmt.Sprintf("%s %d: %d packets sent, %d received", experiment, number, counts["packets_sent"], counts["packets_received"])}
	if invalid != nil {
		run.Invalid = cli.OneLine(invalid)
	}
	for name, n := range counts {
		run.Counters[name] = int64(n)
	}
	return f.keep.KeepRun(env, f.started, f.format == cli.JSONL, run)
}

// explainEnd adds a remedy to the error that ended a worker or server early. It returns nil if there is no such error.
func explainEnd(ctx context.Context, err error) error {
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	switch {
	case errors.Is(err, endpoints.ErrOffline):
		return fmt.Errorf("%w; check with 'olafctl testbed show' that the testbed and all its cables are up, then "+
			"restart all workers and the server", err)
	case errors.Is(err, endpoints.ErrStalled):
		return fmt.Errorf("%w; check that all workers and the server run with the same job and number of vectors, "+
			"and what 'olafctl testbed show' reports; if one of them was restarted, restart all workers", err)
	}
	return cli.MarkInterrupted(err)
}
