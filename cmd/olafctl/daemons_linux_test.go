package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/pktgen/attach"
)

// daemon is an olafctl process in a test.
type daemon struct {
	name string
	cmd  *exec.Cmd
	said bytes.Buffer // stderr
	out  *bufio.Reader
}

// startDaemon starts a shell command whose processes have a marker in their environment.
func startDaemon(ctx context.Context, t *testing.T, name, command, marker string) *daemon {
	t.Helper()
	d := &daemon{name: name, cmd: exec.CommandContext(ctx, "sh", "-c", "exec "+command)}
	d.cmd.Env = append(os.Environ(), "OLAFCTL_CONFIG=/dev/null", "OLAFCTL_HOME="+t.TempDir(), marker)
	d.cmd.Stderr = &d.said
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// end waits until a daemon has exited, and returns its exit code and the rest of its output.
func (d *daemon) end(t *testing.T) (code int, out string) {
	t.Helper()
	rest, err := io.ReadAll(d.out)
	if err != nil {
		t.Errorf("%s: %v", d.name, err)
	}
	_ = d.cmd.Wait() // the exit code is returned instead
	return d.cmd.ProcessState.ExitCode(), string(rest)
}

// daemonJob is a switch and the daemons around it.
type daemonJob struct {
	sw      *daemon
	hosts   []*daemon
	sockets []string // of the workers
	server  string   // socket of the server, if a program attaches to it
}

// startDaemons starts a switch for two workers and the commands that the switch prints. mode may be empty.
func startDaemons(ctx context.Context, t *testing.T, system, mode, marker string) *daemonJob {
	t.Helper()
	folder, err := os.MkdirTemp("", "daemons") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	command := "olafctl testbed switch --workers 2 --values 1000 --system " + system
	if mode != "" {
		command += " --mode " + mode
	}
	j := &daemonJob{sw: startDaemon(ctx, t, "switch", command, marker)}
	hosts := 2
	if system == "ps" || system == "atp" {
		hosts++
	}
	for range hosts {
		line, err := j.sw.out.ReadString('\n')
		name, command, found := strings.Cut(strings.TrimSpace(line), ": ")
		if err != nil || !found {
			_, _ = j.sw.end(t)
			t.Fatalf("the switch prints %q, %v: %s", line, err, &j.sw.said)
		}
		j.hosts = append(j.hosts, startDaemon(ctx, t, name, strings.Replace(command, "unix:/tmp/", "unix:"+folder+"/", 1)+" -o jsonl", marker))
	}
	for i, h := range j.hosts {
		if i < 2 {
			j.sockets = append(j.sockets, fmt.Sprintf("unix:%s/w%d.sock", folder, i))
		} else {
			j.server = "unix:" + folder + "/ps.sock"
		}
		if line, err := h.out.ReadString('\n'); err != nil || !strings.Contains(line, "listening") {
			_, _ = h.end(t)
			t.Fatalf("%s begins with %q, %v: %s", h.name, line, err, &h.said)
		}
	}
	return j
}

// TestSwitchDaemons starts the commands that 'testbed switch' prints, for every system, around a switch in user space.
// It checks that any client can attach, also repeatedly, that all sums are exact, that a server's program answers each
// update of workers that do not wait, and that Ctrl-C ends every process and leaves nothing behind.
func TestSwitchDaemons(t *testing.T) {
	if !canReal() {
		t.Skip("no rights for namespaces and packet sockets")
	}
	python := cmp.Or(os.Getenv("OLAFCTL_PYTHON"), "/usr/bin/python3")
	if out, err := exec.Command(python, "-c", "import numpy").CombinedOutput(); err != nil {
		t.Skipf("%s has no numpy: %s", python, out)
	}
	t.Setenv("PATH", pathOfOlafctl(t)+":"+os.Getenv("PATH"))
	client, err := filepath.Abs("../../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"switchml", "iswitch", "atp", "ps", "ring", "ps async"} {
		t.Run(name, func(t *testing.T) {
			system, mode, _ := strings.Cut(name, " ")
			traces, marker := testbedtest.RecordTraces(t), fmt.Sprintf("OLAF_TEST_MARK=%d:%s.", os.Getpid(), t.Name())
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			j := startDaemons(ctx, t, system, mode, marker)
			class, sockets := "Sums", strings.Join(j.sockets, ",")
			if mode != "" {
				class = "Answers"
			}
			test := exec.CommandContext(ctx, python, "-B", filepath.Join(client, "tests", "test_client.py"), class)
			test.Env = append(os.Environ(), "PYTHONPATH="+client, "OLAF_TEST_SYSTEM="+system, "OLAF_TEST_SUMS="+sockets,
				"OLAF_TEST_PUSHES="+sockets, "OLAF_TEST_ANSWERS="+j.server)
			if out, err := test.CombinedOutput(); err != nil {
				t.Errorf("the client's test ends with %v\n%s", err, out)
			}
			for _, d := range append(j.hosts, j.sw) {
				if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
					t.Errorf("%s: %v", d.name, err)
				}
				code, out := d.end(t)
				if d.name != "switch" && !strings.Contains(out, `"packets_strange":0`) ||
					d.name == "switch" && !strings.Contains(out, "\nstrange 0\n") {
					t.Errorf("%s exits with %d and prints %s%s; want its counts, with no strange packet", d.name, code, out, &d.said)
				}
			}
			traces.AwaitGone(t, marker)
		})
	}
}

// TestSwitchBetweenInterfaces runs a parameter server's switch on existing interfaces, with the hosts at the other ends
// of their cables, and checks that every sum is exact. The server ends after the switch.
func TestSwitchBetweenInterfaces(t *testing.T) {
	if !canReal() {
		t.Skip("no rights for namespaces and packet sockets")
	}
	lab, err := netlab.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Close() })
	node := func(name string) *netlab.Node {
		n, err := lab.Node(name)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	folder, err := os.MkdirTemp("", "daemons") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	hub := node("switch")
	var ended bytes.Buffer // what the server prints to stderr
	start := func(n *netlab.Node, args ...string) (lines *bufio.Reader, p *netlab.Process) {
		cmd := exec.Command(filepath.Join(pathOfOlafctl(t), "olafctl"), append([]string{"testbed"}, args...)...)
		cmd.Env, cmd.Stderr = append(os.Environ(), "OLAFCTL_HOME="+folder), t.Output()
		if args[0] == "ps" {
			cmd.Stderr = &ended
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			p, err = n.Start(cmd)
		}
		if err != nil {
			t.Fatal(err)
		}
		return bufio.NewReader(out), p
	}
	awaitLine := func(of *bufio.Reader, p *netlab.Process) *netlab.Process {
		if line, err := of.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v", line, err)
		}
		return p
	}
	var hosts []*netlab.Node
	for i := range 3 {
		hosts = append(hosts, node(fmt.Sprint("host", i)))
		if _, err := netlab.ConnectNodes(netlab.End{Node: hosts[i], Name: "eth0"}, netlab.End{Node: hub, Name: fmt.Sprint("port", i)},
			1500); err != nil {
			t.Fatal(err)
		}
	}
	job := []string{"--system", "ps", "--workers", "2", "--values", "3000"}
	sw := awaitLine(start(hub, append([]string{"switch", "--interfaces", "port0,port1,port2"}, job...)...))
	host := append(job, "--interface", "eth0", "-o", "jsonl")
	server := awaitLine(start(hosts[2], append([]string{"ps"}, host...)...))
	var programs []*exec.Cmd
	for i := range 2 {
		socket := fmt.Sprintf("unix:%s/w%d", folder, i)
		awaitLine(start(hosts[i], append([]string{"worker", "--worker", fmt.Sprint(i), "--attach", socket}, host...)...))
		cmd := exec.Command(filepath.Join(pathOfOlafctl(t), "attached"))
		cmd.Env = append(os.Environ(), "OLAF_ATTACH="+socket)
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		programs = append(programs, cmd)
	}
	for i, cmd := range programs {
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program of worker %d: %v", i, err)
		}
	}
	if err := sw.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := server.Wait(); err == nil || !strings.Contains(ended.String(), "the switch ended") {
		t.Errorf("without the switch the server ends with %v: %s; want that the switch ended", err, &ended)
	}
}

// TestEndOfTheSwitchEndsItsHosts kills a switch and checks that the workers around it exit with the reason and leave
// nothing behind.
func TestEndOfTheSwitchEndsItsHosts(t *testing.T) {
	if !canReal() {
		t.Skip("no rights for namespaces and packet sockets")
	}
	t.Setenv("PATH", pathOfOlafctl(t)+":"+os.Getenv("PATH"))
	traces, marker := testbedtest.RecordTraces(t), fmt.Sprintf("OLAF_TEST_MARK=%d:%s.", os.Getpid(), t.Name())
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	j := startDaemons(ctx, t, "ring", "", marker)
	if err := j.sw.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, _ = j.sw.end(t)
	for _, h := range j.hosts {
		if code, out := h.end(t); code != 3 || !strings.Contains(h.said.String(), "this host has no network any more") {
			t.Errorf("%s exits with %d: %s%s", h.name, code, out, &h.said)
		}
	}
	traces.AwaitGone(t, marker)
}

// TestOthersEndWithoutAWorker lets the program of one worker around a switch in user space end while the other's waits
// for the next sum, or before it sends the next vector: the other worker exits with the reason, which its program gets.
// If the server that answers each update is interrupted, a worker ends as well.
func TestOthersEndWithoutAWorker(t *testing.T) {
	if !canReal() {
		t.Skip("no rights for namespaces and packet sockets")
	}
	t.Setenv("PATH", pathOfOlafctl(t)+":"+os.Getenv("PATH"))
	for _, name := range []string{"switchml", "iswitch", "atp", "ps", "ring", "ps async"} {
		t.Run(name, func(t *testing.T) {
			system, mode, _ := strings.Cut(name, " ")
			marker := fmt.Sprintf("OLAF_TEST_MARK=%d:%s.", os.Getpid(), t.Name())
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			j := startDaemons(ctx, t, system, mode, marker)
			stays, want := j.hosts[0], "worker 1 ended, and without it there are no more sums"
			var said error
			if mode != "" {
				want = "the server ended, and without it there are no more models"
				said = waitAtEndedServer(t, j)
			} else {
				said = waitForEndedWorker(t, j)
				if code, _ := j.hosts[1].end(t); code != 0 {
					t.Errorf("the worker whose program ended exits with %d: %s", code, &j.hosts[1].said)
				}
			}
			code, _ := stays.end(t)
			if said == nil || !strings.Contains(said.Error(), want) || code != 1 || !strings.Contains(stays.said.String(), want) {
				t.Errorf("the other worker's program gets %v, and its worker exits with %d: %s; want 1 and %q", said, code, &stays.said, want)
			}
		})
	}
}

// waitForEndedWorker lets both workers of a job have a sum. Then the program of worker 1 ends, and that of worker 0 gets
// the returned error.
func waitForEndedWorker(t *testing.T, j *daemonJob) error {
	t.Helper()
	var clients []*attach.Client
	sums := make(chan error, 2)
	for _, socket := range j.sockets {
		c, err := attach.Dial(socket)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		go func() { _, _, err := c.Sum([]float32{1, 2}, 0); sums <- err }()
	}
	for range clients {
		if err := <-sums; err != nil {
			t.Errorf("the first sum: %v", err)
		}
	}
	go func() { _, _, err := clients[0].Sum([]float32{1, 2}, 0); sums <- err }()
	if err := clients[1].Close(); err != nil {
		t.Error(err)
	}
	return <-sums
}

// waitAtEndedServer interrupts the server of a job while a worker waits for its answer, and returns the worker's error.
func waitAtEndedServer(t *testing.T, j *daemonJob) error {
	t.Helper()
	worker, err := attach.Dial(j.sockets[0])
	if err != nil {
		t.Fatal(err)
	}
	server, err := attach.Dial(j.server)
	if err != nil {
		t.Fatal(err)
	}
	pushed := make(chan error, 1)
	go func() { _, err := worker.Push([]float32{1, 2}, 0); pushed <- err }()
	if _, _, err := server.Take(); err != nil {
		t.Error(err)
	}
	if err := j.hosts[2].cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	return <-pushed
}

// startAttachable starts a worker with a socket and waits until a program can attach to it.
func startAttachable(ctx context.Context, t *testing.T, args string) (d *daemon, socket string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "daemons") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Setenv("PATH", pathOfOlafctl(t)+":"+os.Getenv("PATH"))
	socket = "unix:" + folder + "/w.sock"
	d = startDaemon(ctx, t, "worker", "olafctl testbed worker "+args+" -o jsonl --listen 127.0.0.1:0 --attach "+socket, "A=1")
	if line, err := d.out.ReadString('\n'); err != nil || !strings.Contains(line, "listening") {
		_, _ = d.end(t)
		t.Fatalf("the worker begins with %q, %v: %s", line, err, &d.said)
	}
	return d, socket
}

// TestPatienceLimitsTheWaitForASum attaches a program to a worker whose aggregator never answers: the worker exits after
// --patience, and its program gets the reason.
func TestPatienceLimitsTheWaitForASum(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	d, socket := startAttachable(ctx, t, "--aggregator 127.0.0.1:1 --patience 1s")
	c, err := attach.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	const want = "the job stands still: no answer for 1s"
	_, _, err = c.Sum([]float32{1}, 0)
	if code, _ := d.end(t); err == nil || !strings.Contains(err.Error(), want) || code != 1 || !strings.Contains(d.said.String(), want) {
		t.Errorf("the program gets %v, and the worker exits with %d: %s; want 1 and %q", err, code, &d.said, want)
	}
}

// TestVectorsEndAnAttachedWorker checks that a worker with --vectors exits after that many updates of its program.
func TestVectorsEndAnAttachedWorker(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	d, socket := startAttachable(ctx, t, "--system olaf --server 127.0.0.1:1 --vectors 2")
	c, err := attach.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Push([]float32{1}, 0); err != nil {
			t.Error(err)
		}
	}
	code, out := d.end(t)
	if code != 1 || !strings.Contains(out, `"vectors_sent":2`) || !strings.Contains(d.said.String(), "nothing answered 2 packets") {
		t.Errorf("the worker exits with %d: %s%s; want 1, because no server answers its two vectors", code, out, &d.said)
	}
}

// TestRecordersMakeTraces records the same updates of two Python workers to 'trace record --attach', and into files for
// 'trace convert'.
func TestRecordersMakeTraces(t *testing.T) {
	python := cmp.Or(os.Getenv("OLAFCTL_PYTHON"), "/usr/bin/python3")
	if out, err := exec.Command(python, "-c", "import numpy").CombinedOutput(); err != nil {
		t.Skipf("%s has no numpy: %s", python, out)
	}
	client, err := filepath.Abs("../../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "daemons") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	run := func(name string, env []string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env = folder, append(append(os.Environ(), "PYTHONPATH="+client, "OLAFCTL_HOME="+folder), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	const record = `
import numpy as np, olaf
with olaf.Recorder("mlp", 0, 2) as a, olaf.Recorder("mlp", 1, 2) as b:
    for i in range(3):
        a.update(np.full(5, i, np.float32), reward=i)
        b.update(np.full(5, -i, np.float32), reward=i)
`
	t.Setenv("PATH", pathOfOlafctl(t)+":"+os.Getenv("PATH"))
	d := startDaemon(ctx, t, "recording", "olafctl trace record --attach unix:"+folder+"/rec.sock -w "+folder+"/sent.trace", "A=1")
	for _, err := os.Stat(folder + "/rec.sock"); err != nil && ctx.Err() == nil; _, err = os.Stat(folder + "/rec.sock") {
	}
	run(python, []string{"OLAF_RECORD=unix:" + folder + "/rec.sock"}, "-c", record)
	if code, out := d.end(t); code != 0 {
		t.Errorf("the recording exits with %d: %s%s", code, out, &d.said)
	}
	run(python, nil, "-c", record)
	run("olafctl", nil, "trace", "convert", "mlp.0.olafrec", "written.trace")
	for _, name := range []string{"sent.trace", "written.trace"} {
		if info := run("olafctl", nil, "trace", "info", name); !strings.Contains(info, "6 updates of 2 workers in 1 cluster, 5 gradients each") ||
			!strings.Contains(info, "mlp") {
			t.Errorf("%s contains %s, want 6 updates of mlp", name, info)
		}
	}
}
