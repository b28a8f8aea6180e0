package testbed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/rl/onwire"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// realTimeout is the default time for which a worker waits for a sum when it uses real packets.
const realTimeout = 50 * time.Millisecond

// runXAgg runs a worker that waits for every sum from an aggregator.
func (f *workerFlags) runXAgg(cmd *cobra.Command, env *cli.Env) error {
	aggregator, err := endpointAddress("aggregator", f.aggregator)
	if err != nil {
		return err
	}
	training, err := f.open.loadTraining(env)
	if err != nil {
		return err
	}
	f.job.ID = olaf.ClusterID(f.id)
	worker := olaf.WorkerID(max(f.number, 0))
	sums := &endpoints.Sums{Job: f.job, Worker: worker, Every: f.every}
	p, err := f.newSumsPlayer(cmd, aggregator, sums)
	if err != nil {
		return err
	}
	var learner *onwire.Learner
	if f.attach.isSet() {
		return f.runAttachedXAgg(cmd, env, p)
	}
	if training != nil {
		if learner, err = onwire.NewLearner(training, f.number); err != nil {
			return err
		}
		f.job, p.Work = onwire.SumJob(training), learner
	}
	if err := f.checkSums(); err != nil {
		return err
	}
	ctx, conn, err := f.openSocket(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer conn.Close()
	p.Patience = f.attach.maxSilence()
	report, err := p.Run(ctx, conn.UDPConn, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewXAgg(f.sumConfig(uint32(f.job.Vectors)), f.xaggConfig(cmd), h)
	})
	if err := explainEnd(ctx, err); err != nil {
		return err
	}
	return f.reportSums(env, report, sums, learner)
}

// sumConfig returns the configuration of a worker that sends the given number of vectors.
func (f *workerFlags) sumConfig(vectors uint32) endpoint.Config {
	return endpoint.Config{Job: f.job.ID, Worker: olaf.WorkerID(max(f.number, 0)), Workers: f.job.Workers,
		Layout: f.job.Layout(), Updates: vectors, Line: f.line}
}

// xaggConfig returns the settings for a worker's communication with its aggregator.
func (f *workerFlags) xaggConfig(cmd *cobra.Command) endpoint.XAgg {
	timeout := cmp.Or(max(f.open.timeout, 0), realTimeout)
	return endpoint.XAgg{Epoch: f.epoch, Ticket: f.drawTicket(cmd), Timeout: olaf.Duration(timeout) * olaf.Nanosecond,
		Overhead: frame.XAgg.Size(0) + system.LineOverhead,
		Follows:  f.attach.isSet()}
}

// reportSums prints the result of a worker's checks of its sums, and its training result. It returns an error if sums
// are wrong.
func (f *workerFlags) reportSums(env *cli.Env, report *endpoints.Report, sums *endpoints.Sums,
	learner *onwire.Learner) error {
	out := endpoints.SumsReport{Worker: sums.Worker, Report: *report, Checked: sums.Checked, Wrong: sums.Wrong}
	if learner != nil {
		var err error
		if out.Work, err = json.Marshal(learner.Report()); err != nil {
			return err
		}
	}
	err := cli.WriteDocument(env, f.format, struct {
		cli.Head
		endpoints.SumsReport
	}{cli.Info("worker"), out})
	if err == nil {
		err = f.keepRun(env, "worker", int(sums.Worker), report.Counts,
			checkValues(sums.Wrong, sums.Checked, report.Counts))
	}
	if err != nil {
		return err
	}
	return checkValues(sums.Wrong, sums.Checked, report.Counts)
}

// checkValues returns an error if values are wrong or if packets from the job's own workers were misidentified. Scripts
// can therefore rely on the exit code.
func checkValues(wrong, checked int, counts map[string]uint64) error {
	const twice = "; 'olafctl testbed show' lists workers with equal or swapped numbers (--worker)"
	var err error
	switch {
	case wrong > 0:
		err = fmt.Errorf("%d of %d values are wrong%s", wrong, checked, twice)
	case counts["packets_inexact"] > 0:
		err = fmt.Errorf("the sums of %s are not exact", olaf.Plural(counts["packets_inexact"], "packet"))
	case counts["misidentified"] > 0:
		err = fmt.Errorf("%s had another worker's number than their sender%s", olaf.Plural(counts["misidentified"],
			"packet"),
			twice)
	default:
		return nil
	}
	return &cli.Exit{Kind: olaf.Failed, Err: err}
}

// newSumsPlayer returns a player that runs a worker, which sends vectors to an aggregator and receives their sums.
func (f *workerFlags) newSumsPlayer(cmd *cobra.Command, aggregator netip.AddrPort,
	sums *endpoints.Sums) (*endpoints.Player, error) {
	p := &endpoints.Player{Codec: &frame.Datagrams{Format: frame.XAgg, Results: true}, Work: sums,
		Mishaps: endpoints.Mishaps{Skip: f.skip},
		To:      func(endpoint.Peer, *program.Packet) netip.AddrPort { return aggregator }}
	if cmd.Flags().Changed("child") {
		child := olaf.WorkerID(f.child)
		p.Child = &child
	}
	var err error
	if f.above != "" {
		if p.Above, err = endpointAddress("above", f.above); err != nil {
			return nil, err
		}
	}
	p.Start, err = f.open.parseStart()
	return p, err
}

// checkSums rejects an invalid job, worker number or sending interval.
func (f *workerFlags) checkSums() error {
	if err := f.job.Check(); err != nil {
		return err
	}
	if f.number < 0 || f.number >= f.job.Workers || f.every < 0 {
		return cli.UsageError("--worker %d: the job has %s, numbered from 0; --every %v: it may not be negative",
			f.number,
			olaf.Plural(f.job.Workers, "worker"), f.every)
	}
	return nil
}

// drawTicket returns a random number with which the worker requests its first epoch. It returns 0 if --epoch is given.
func (f *workerFlags) drawTicket(cmd *cobra.Command) uint32 {
	if cmd.Flags().Changed("epoch") {
		return 0
	}
	return 1 + rand.Uint32N(math.MaxUint32) // a new one for every start of a worker
}

// rootConfig returns the configuration of the server above an aggregator.
func (f *serverFlags) rootConfig() (c endpoints.RootConfig, err error) {
	f.job.ID = olaf.ClusterID(f.id)
	c = endpoints.RootConfig{Job: f.job, Group: f.group, Line: f.line, Codec: &frame.Datagrams{Format: frame.XAgg},
		Adopt: f.adopt, Slow: f.slow}
	if c.Agent, err = endpointAddress("agent", f.agent); err != nil {
		return c, err
	}
	if c.Workers, err = f.addresses(); err != nil {
		return c, err
	}
	if len(c.Workers) != f.job.Workers {
		return c, cli.UsageError("--worker: addresses for only %d of %s", len(c.Workers), olaf.Plural(f.job.Workers,
			"worker"))
	}
	if f.fanout != "" {
		if c.Fanout, err = endpointAddress("fan-out", f.fanout); err != nil {
			return c, err
		}
	}
	own, err := endpointAddress("listen", f.listen)
	c.Lanes, _ = endpoints.LinkLanes(own.Addr()) // attached workers use all that the link allows
	return c, err
}

// runXAgg runs the server above an aggregator.
func (f *serverFlags) runXAgg(cmd *cobra.Command, env *cli.Env) error {
	c, err := f.rootConfig()
	if err != nil {
		return err
	}
	root, err := endpoints.NewRoot(c)
	if err != nil {
		return err
	}
	ctx, conn, err := f.openSocket(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer conn.Close()
	report, err := root.Run(ctx, conn.UDPConn)
	if err != nil {
		return explainEnd(ctx, err)
	}
	err = f.printReport(ctx, env, struct {
		cli.Head
		endpoints.StationReport
	}{cli.Info("ps"), *report}, report.Counts)
	if err != nil {
		return err
	}
	return checkValues(0, 0, report.Counts)
}
