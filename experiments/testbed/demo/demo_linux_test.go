package demo

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/xdp"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// asChild makes the test binary a worker or a server, like olafctl.
const asChild = "OLAFCTL_DEMO_CHILD"

func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(asChild) != "":
		err = asProcess(os.Args[1:])
	case os.Getenv(asDemo) != "":
		c := exampleConfig(os.Args[0])
		c.Progress = func(string, ...any) {}
		_, err = RunDemo(context.Background(), c)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
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

// asProcess implements 'olafctl testbed worker' and 'olafctl testbed ps'.
func asProcess(args []string) error {
	f := flag.NewFlagSet("child", flag.ContinueOnError)
	var job process.Job
	var listen, aggregator, agent, workers, fanout addresses
	var line olaf.Rate
	id := f.Int("id", 0, "")
	f.IntVar(&job.Workers, "workers", 0, "")
	f.IntVar(&job.Values, "values", 0, "")
	f.IntVar(&job.Lanes, "lanes", 0, "")
	f.IntVar(&job.Vectors, "vectors", 0, "")
	f.Var(&line, "line", "")
	skip, group := f.Int("skip", 0, ""), f.Int("group", 0, "")
	f.Var(&listen, "listen", "")
	f.Var(&aggregator, "aggregator", "")
	f.Var(&agent, "agent", "")
	number := 0
	if args[0] == "worker" {
		f.IntVar(&number, "worker", 0, "")
	} else {
		f.Var(&workers, "worker", "")
		f.Var(&fanout, "fan-out", "")
	}
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	job.ID = olaf.ClusterID(*id)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	conn, err := netlab.Datagrams(ctx, listen[0])
	if err != nil {
		return err
	}
	var report any
	if args[0] == "worker" {
		sums := &process.Sums{Job: job, Worker: olaf.WorkerID(number)}
		p := &process.Player{Codec: &frame.Datagrams{Format: frame.XAgg, Results: true}, Work: sums,
			Mishaps: process.Mishaps{Skip: *skip},
			To:      func(endpoint.Peer, *program.Packet) netip.AddrPort { return aggregator[0] }}
		cfg := endpoint.Config{Job: job.ID, Worker: sums.Worker, Workers: job.Workers, Layout: job.Layout(),
			Updates: uint32(job.Vectors), Line: line}
		played, err := p.Run(ctx, conn, func(h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewXAgg(cfg, endpoint.XAgg{Timeout: 20 * olaf.Millisecond, Overhead: frame.XAgg.Size(0)}, h)
		})
		if err != nil {
			return err
		}
		report = process.SumsReport{Worker: sums.Worker, Report: *played, Checked: sums.Checked, Wrong: sums.Wrong}
	} else {
		c := process.RootConfig{Job: job, Group: *group, Line: line, Agent: agent[0], Workers: workers,
			Codec: &frame.Datagrams{Format: frame.XAgg}}
		if len(fanout) > 0 {
			c.Fanout = fanout[0]
		}
		root, err := process.NewRoot(c)
		if err != nil {
			return err
		}
		if report, err = root.Run(ctx, conn); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

func config(t *testing.T) Config {
	t.Helper()
	rights := append([]netlab.Right{netlab.NamespaceRights[0]}, xdp.LoadRights...)
	if err := netlab.CheckRights(rights...); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exampleConfig(self)
	c.Progress = t.Logf
	return c
}

// exampleConfig returns a small demo whose processes are the test binary.
func exampleConfig(self string) Config {
	return Config{
		Job: process.Job{ID: 1, Workers: 3, Values: 5000, Lanes: 64, Vectors: 3}, Mode: dataplane.Native, Skip: 7, Group: 16,
		Line: 20 * olaf.Mbps, Rate: 30 * olaf.Mbps,
		Command: func(args ...string) *exec.Cmd {
			cmd := exec.Command(self, args...)
			cmd.Env = append(os.Environ(), asChild+"=1")
			return cmd
		},
	}
}

// TestRun checks every identity with processes in namespaces, omitted packets, and both modes of the kernel.
func TestRun(t *testing.T) {
	for _, mode := range []dataplane.Mode{dataplane.Native, dataplane.Generic} {
		t.Run(string(mode), func(t *testing.T) {
			c := config(t)
			c.Mode = mode
			r, err := RunDemo(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Checks) < 8 || r.Workers[0].Skipped == 0 || r.Agent["fragments_missed"] == 0 || r.Agent["control"] == 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestDeadWorkerEndsJob checks that a worker that ends early ends the job with its error output.
func TestDeadWorkerEndsJob(t *testing.T) {
	c := config(t)
	start := c.Command
	c.Command = func(args ...string) *exec.Cmd {
		if args[0] == "worker" && args[2] == strconv.Itoa(0) {
			return exec.Command("/bin/sh", "-c", "echo gone >&2; exit 3")
		}
		return start(args...)
	}
	if _, err := RunDemo(t.Context(), c); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Error(err)
	}
}

// TestKilledHost checks that if a worker or the server is killed during the job, the error names the process and the
// signal at once, and no process remains.
func TestKilledHost(t *testing.T) {
	for _, k := range []struct{ role, name string }{{"worker", "w0"}, {"ps", "ps"}} {
		t.Run(k.role, func(t *testing.T) {
			c := config(t)
			c.Vectors = 1000
			start, started := c.Command, map[string][]*exec.Cmd{}
			c.Command = func(args ...string) *exec.Cmd {
				cmd := start(args...)
				started[args[0]] = append(started[args[0]], cmd)
				return cmd
			}
			c.Progress = func(string, ...any) {
				if len(started[k.role]) > 0 { // all are running
					if err := started[k.role][0].Process.Kill(); err != nil {
						t.Error(err)
					}
				}
			}
			began := time.Now()
			_, err := RunDemo(t.Context(), c)
			if !errors.Is(err, ErrHost) || !strings.HasSuffix(err.Error(), k.name+": signal: killed") ||
				time.Since(began) > time.Minute {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			for _, cmd := range append(started["worker"], started["ps"]...) {
				if cmd.ProcessState == nil {
					t.Errorf("%v still runs", cmd.Args)
				}
			}
		})
	}
}

// TestDetachedProgramEndsJob checks that detaching programs during the job ends it with the first one noticed, and that
// no process remains.
func TestDetachedProgramEndsJob(t *testing.T) {
	for name, says := range map[string]string{
		"arrive": `the cable from w\d to s0: the program arrive was detached from w\d of s0`,
		"pass":   `the cable from s0 to ps: the program pass was detached from s0 of ps`,
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			c.Vectors = 10_000
			start, started := c.Command, []*exec.Cmd{}
			c.Command = func(args ...string) *exec.Cmd {
				started = append(started, start(args...))
				return started[len(started)-1]
			}
			c.Progress = func(string, ...any) {
				if len(started) == 0 {
					return
				}
				if err := testbedtest.DetachPrograms(name); err != nil { // all are running
					t.Error(err)
				}
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if _, err := RunDemo(ctx, c); !errors.Is(err, lab.ErrBroken) || !regexp.MustCompile(says).MatchString(err.Error()) {
				t.Error(err)
			}
			for _, cmd := range started {
				if cmd.ProcessState == nil {
					t.Errorf("%v still runs", cmd.Args)
				}
			}
		})
	}
}

func TestCancelledDemo(t *testing.T) {
	c := config(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := RunDemo(ctx, c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// asDemo makes the test binary run a whole demo.
const asDemo = "OLAFCTL_DEMO_WHOLE"

// TestKilledDemoLeavesNothing checks that nothing remains of a demo that is killed at any moment from before its first
// namespace to after its last sum: no process, program, interface or mount.
func TestKilledDemoLeavesNothing(t *testing.T) {
	config(t) // skips without the necessary rights
	traces := testbedtest.RecordTraces(t)
	began := time.Now()
	if err := startWhole(t, "whole").Wait(); err != nil {
		t.Fatal(err)
	}
	length := time.Since(began)
	moments := 20
	if testing.Short() {
		moments = 5
	}
	cut := 0
	for i := range moments {
		marker := fmt.Sprintf("%d-%d", os.Getpid(), i)
		demo, began := startWhole(t, marker), time.Now()
		ended := make(chan error, 1)
		go func() { ended <- demo.Wait() }()
		var err error
		select {
		case err = <-ended:
			length = time.Since(began) // the machine was slow before, so expect this duration from now on
		case <-time.After(time.Duration(splitmix.MixBits(uint64(i)) % uint64(length))): // time of the kill
			if err := demo.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			err = <-ended
		}
		if err != nil {
			cut++
		}
		traces.AwaitGone(t, asDemo+"="+marker)
	}
	t.Logf("%d of %d demos were cut short, of %v", cut, moments, length)
	if cut < moments/2 {
		t.Errorf("only %d of %d were cut short", cut, moments)
	}
}

// startWhole starts a demo in a separate process.
func startWhole(t *testing.T, marker string) *exec.Cmd {
	t.Helper()
	demo := exec.Command(os.Args[0])
	demo.Env = append(os.Environ(), asDemo+"="+marker)
	demo.Stderr = os.Stderr
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	return demo
}
