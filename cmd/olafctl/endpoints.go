package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// endpointFlags are what a worker and a server of one job must agree on.
type endpointFlags struct {
	job    endpoints.Job
	id     uint16
	listen string
}

func (f *endpointFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Uint16Var(&f.id, "id", 1, "of the job")
	flags.IntVar(&f.job.Workers, "workers", 4, "of the job")
	flags.IntVar(&f.job.Values, "values", 1<<16, "of a vector, 32 bits each")
	flags.IntVar(&f.job.Lanes, "lanes", 256, "values in a packet")
	flags.IntVar(&f.job.Epochs, "vectors", 10, "of every worker")
	flags.StringVar(&f.listen, "listen", "", "address and port of this end, such as 10.77.0.2:20300")
}

// open binds the socket. Its datagrams carry no checksum, so that a program may change them.
func (f *endpointFlags) open(ctx context.Context) (*net.UDPConn, error) {
	f.job.ID = olaf.ClusterID(f.id)
	at, err := endpointAddress("listen", f.listen)
	if err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: withoutChecksum}
	c, err := config.ListenPacket(ctx, "udp4", at.String())
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", at, err)
	}
	return c.(*net.UDPConn), nil
}

func endpointAddress(flag, text string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(text)
	if err != nil || !at.Addr().Is4() {
		return at, cli.UsageError("--%s %q is not an IPv4 address with a port, such as 10.77.0.2:20300", flag, text)
	}
	return at, nil
}

func newWorkerCmd(env *cli.Env) *cobra.Command {
	f := &endpointFlags{}
	var number, skip int
	var every time.Duration
	var aggregator, server string
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Be one worker of XAgg: send vectors by UDP, and hold every sum that comes back",
		Long: `Be one worker of XAgg, over an ordinary UDP socket: send vectors in packets, to an aggregator in the kernel, and take the sums that
the parameter server sends back. What is in a vector follows from its worker and its number, so that every value of every sum is
held against what it must be. What is missing is sent and asked for again. 'olafctl testbed demo' starts workers like this.`,
		Example: "  olafctl worker --worker 0 --listen 10.77.0.2:20300 --aggregator 10.77.0.1:20300 --server 10.77.4.2:20300",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := endpoints.Worker{Worker: olaf.WorkerID(max(number, 0)), Every: every, Skip: skip}
			var err error
			if w.Aggregator, err = endpointAddress("aggregator", aggregator); err != nil {
				return err
			}
			if w.Server, err = endpointAddress("server", server); err != nil {
				return err
			}
			conn, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			defer conn.Close()
			w.Job = f.job
			report, err := w.Run(cmd.Context(), conn)
			if err != nil {
				return ended(err)
			}
			return cli.WriteJSON(env.Stdout, struct {
				cli.Head
				endpoints.WorkerReport
			}{cli.Head{Schema: "olafctl.worker/v1"}, report})
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&number, "worker", 0, "which of the workers this is, from 0")
	cmd.Flags().StringVar(&aggregator, "aggregator", "", "where packets go")
	cmd.Flags().StringVar(&server, "server", "", "whom to ask for results")
	cmd.Flags().DurationVar(&every, "every", 0, "between two packets, on an absolute schedule; default as fast as it can")
	cmd.Flags().IntVar(&skip, "skip", 0, "leave out every so-many-th packet at first, as if it were lost")
	return cmd
}

func newPSCmd(env *cli.Env) *cobra.Command {
	f := &endpointFlags{}
	var agent string
	var workers []string
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "Be the parameter server of XAgg: pass every sum on to all workers",
		Long: `Be the parameter server of XAgg, over an ordinary UDP socket: pass every sum that the aggregator sends on to all workers, answer
workers that ask again, and ask the aggregator's agent for sums that did not come. It ends with Ctrl-C and says what it did.`,
		Example: "  olafctl ps --listen 10.77.2.2:20300 --agent 10.77.2.1:20300 --workers 2 --worker 10.77.0.2:20300 --worker 10.77.1.2:20300",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := endpoints.Server{}
			var err error
			if s.Agent, err = endpointAddress("agent", agent); err != nil {
				return err
			}
			for _, w := range workers {
				at, err := endpointAddress("worker", w)
				if err != nil {
					return err
				}
				s.Workers = append(s.Workers, at)
			}
			conn, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			defer conn.Close()
			s.Job = f.job
			report, err := s.Run(cmd.Context(), conn)
			if err != nil {
				return ended(err)
			}
			return cli.WriteJSON(env.Stdout, struct {
				cli.Head
				endpoints.ServerReport
			}{cli.Head{Schema: "olafctl.ps/v1"}, report})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&agent, "agent", "", "of the aggregator, who sends sums once more")
	cmd.Flags().StringArrayVar(&workers, "worker", nil, "address of a worker; one for each, in their order")
	return cmd
}

// ended makes an interruption one.
func ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return cli.Interrupted(err)
	}
	return err
}
