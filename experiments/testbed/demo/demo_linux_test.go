package demo

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
	"github.com/olafctl/olaf/pktgen/process"
	"golang.org/x/sys/unix"
)

// asChild makes this test's program a worker or a server, as olafctl is one.
const asChild = "OLAFCTL_DEMO_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	if err := asProcess(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type addresses []netip.AddrPort

func (a *addresses) String() string { return fmt.Sprint(*a) }
func (a *addresses) Set(s string) error {
	at, err := netip.ParseAddrPort(s)
	*a = append(*a, at)
	return err
}

func asProcess(args []string) error {
	f := flag.NewFlagSet("child", flag.ContinueOnError)
	var job process.Job
	var listen, aggregator, server, agent, workers addresses
	id := f.Int("id", 0, "")
	f.IntVar(&job.Workers, "workers", 0, "")
	f.IntVar(&job.Values, "values", 0, "")
	f.IntVar(&job.Lanes, "lanes", 0, "")
	f.IntVar(&job.Epochs, "vectors", 0, "")
	every, skip := f.Duration("every", 0, ""), f.Int("skip", 0, "")
	f.Var(&listen, "listen", "")
	f.Var(&aggregator, "aggregator", "")
	f.Var(&server, "server", "")
	f.Var(&agent, "agent", "")
	number := 0
	if args[0] == "worker" {
		f.IntVar(&number, "worker", 0, "")
	} else {
		f.Var(&workers, "worker", "")
	}
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	job.ID = olaf.ClusterID(*id)
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1) })
	}}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := config.ListenPacket(ctx, "udp4", listen[0].String())
	if err != nil {
		return err
	}
	var report any
	if args[0] == "worker" {
		w := process.Worker{Job: job, Worker: olaf.WorkerID(number), Aggregator: aggregator[0], Server: server[0], Every: *every, Skip: *skip}
		report, err = w.Run(ctx, c.(*net.UDPConn))
	} else {
		s := process.Server{Job: job, Workers: workers, Agent: agent[0]}
		report, err = s.Run(ctx, c.(*net.UDPConn))
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

func config(t *testing.T) Config {
	t.Helper()
	rights := append([]netlab.Right{netlab.NamespaceRights[0]}, xdp.LoadRights...)
	if err := netlab.Missing(rights...); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Job: process.Job{ID: 1, Workers: 3, Values: 5000, Lanes: 64, Epochs: 3}, Mode: xdp.Native, Skip: 7,
		Command: func(args ...string) *exec.Cmd {
			cmd := exec.Command(self, args...)
			cmd.Env = append(os.Environ(), asChild+"=1")
			return cmd
		},
		Say: t.Logf,
	}
}

// Processes in namespaces, packets left out, both modes of the kernel: every identity holds.
func TestRun(t *testing.T) {
	for _, mode := range []xdp.Mode{xdp.Native, xdp.Generic} {
		t.Run(string(mode), func(t *testing.T) {
			c := config(t)
			c.Mode = mode
			r, err := Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Checks) < 8 || r.Workers[0].Skipped == 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A worker that ends before its time ends the job with what it said.
func TestDeadWorker(t *testing.T) {
	c := config(t)
	start := c.Command
	c.Command = func(args ...string) *exec.Cmd {
		if args[0] == "worker" && args[2] == strconv.Itoa(0) {
			return exec.Command("/bin/sh", "-c", "echo gone >&2; exit 3")
		}
		return start(args...)
	}
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Error(err)
	}
}

func TestStopped(t *testing.T) {
	c := config(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
