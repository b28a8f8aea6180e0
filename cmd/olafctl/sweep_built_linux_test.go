package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/sweep/queue"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/netlab/netlabtest"
)

// built is the folder in which 'make' puts olafctl and olafctl-queue. The tests kill these programs rather than code in
// the test binary.
var built = flag.String("built", "", "folder of the programs that make builds, for the campaigns that kill them ('make sweeps')")

// disturbed is the sweep for these tests: 96 cells of 30 runs, 288 results.
const (
	disturbed = `command: bench
options: {updates: 200}
sweep: ["slots=2..64:x2", "out-rate=5G..40G:5G"]
metrics: [aom_cluster_ns]
runs: 30
`
	disturbedResults = 6 * 8 * 2 * 3
)

// plant is a folder in which the built programs run this sweep.
type plant struct {
	t       *testing.T
	dir     string
	starts  chan func()
	address string
	secure  []string // flags of clients besides the address
}

// newPlant creates a plant. It skips the test if --built is not set.
func newPlant(t *testing.T) *plant {
	t.Helper()
	if *built == "" {
		t.Skip("without -built FOLDER there are no programs to disturb; 'make sweeps' has them")
	}
	p := &plant{t: t, dir: t.TempDir(), starts: make(chan func()), address: "127.0.0.1:" + port(t)}
	p.must(os.WriteFile(filepath.Join(p.dir, "sweep.yaml"), []byte(disturbed), 0o644))
	go func() { // one thread for the whole test, because the processes that it starts end with it
		runtime.LockOSThread()
		for start := range p.starts {
			start()
		}
	}()
	t.Cleanup(func() { close(p.starts) })
	return p
}

func (p *plant) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// path returns the path to one of the programs.
func (p *plant) path(program string) string {
	path, err := filepath.Abs(filepath.Join(*built, program))
	p.must(err)
	return path
}

// here starts a program on this host.
func (p *plant) here(cmd *exec.Cmd) (wait func() error, err error) {
	started := make(chan error)
	p.starts <- func() { started <- cmd.Start() }
	return cmd.Wait, <-started
}

// running is a running program with its child processes, which can be killed and restarted.
type running struct {
	*plant
	kind  string
	args  []string
	ready string // output when it is ready; empty for none
	start func(*exec.Cmd) (wait func() error, err error)

	cmd   *exec.Cmd
	out   bytes.Buffer
	said  bytes.Buffer // read it only after the end
	ended chan struct{}
	err   error // after the end
}

// olafctl returns a command that is not yet started.
func (p *plant) olafctl(kind, ready string, args ...string) *running {
	return &running{plant: p, kind: kind, args: args, ready: ready, start: p.here}
}

// begin starts the command and waits until it is ready. It is killed at the end of the test.
func (r *running) begin() {
	r.t.Helper()
	r.out.Reset()
	r.said.Reset()
	cmd := exec.Command(r.path("olafctl"), r.args...)
	cmd.Dir, cmd.Stdout, cmd.SysProcAttr = r.dir, &r.out, &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	read, write, err := os.Pipe()
	r.must(err)
	cmd.Stderr = write
	wait, err := r.start(cmd)
	r.must(errors.Join(err, write.Close()))
	useful, silent, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(silent)
		waiting := r.ready != ""
		for lines := bufio.NewScanner(read); lines.Scan(); {
			fmt.Fprintln(&r.said, lines.Text())
			if waiting && strings.Contains(lines.Text(), r.ready) {
				waiting = false
				close(useful)
			}
		}
	}()
	go func() {
		err := wait()
		<-silent
		_ = read.Close() // only read
		r.err = err
		close(ended)
	}()
	if r.cmd == nil {
		r.t.Cleanup(r.kill)
	}
	if r.cmd, r.ended = cmd, ended; r.ready == "" {
		return
	}
	select {
	case <-useful:
	case <-ended:
		r.t.Fatalf("%s: %v\n%s", r.kind, r.err, r.said.String())
	}
}

func begin(all ...*running) {
	for _, r := range all {
		r.t.Helper()
		r.begin()
	}
}

// kill sends SIGKILL to the command and its children, and waits until they are gone.
func (r *running) kill() {
	select {
	case <-r.ended: // its pid may be reused
		return
	default:
	}
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) // it may have exited
	<-r.ended
}

// killChild kills one of the command's child processes, which it must replace.
func (r *running) killChild() {
	r.t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.cmd.Process.Pid))
	r.must(err)
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a thread that has ended
		}
		r.must(err)
		if pids := strings.Fields(string(text)); len(pids) > 0 {
			pid, err := strconv.Atoi(pids[0])
			r.must(err)
			r.must(syscall.Kill(pid, syscall.SIGKILL))
			return
		}
	}
	r.t.Fatalf("%s has no process of its own", r.kind)
}

var digestLine = regexp.MustCompile(`(?m)^digest ([0-9a-f]{64})$`)

// digest waits until a sweep ends without an error and returns the last line of the output.
func (r *running) digest() string {
	r.t.Helper()
	<-r.ended
	found := digestLine.FindStringSubmatch(r.out.String())
	if r.err != nil || found == nil {
		r.t.Fatalf("olafctl %s: %v\n%s%s", strings.Join(r.args, " "), r.err, r.out.String(), r.said.String())
	}
	return found[1]
}

// alone returns the digest of the undisturbed sweep on this machine.
func (p *plant) alone() string {
	p.t.Helper()
	r := p.olafctl("alone", "", "sweep", "run", "sweep.yaml", "-q", "--store", "alone")
	r.begin()
	return r.digest()
}

// server starts the program that hands out work. machine starts a program that takes work, and coordinator starts one
// that runs or resumes the sweep.
func (p *plant) server(flags ...string) *running {
	return p.olafctl("server", "handing out work at",
		append([]string{"sweep", "serve", "--listen", p.address, "--store", "queue"}, flags...)...)
}

func (p *plant) machine(name string) *running {
	return p.olafctl(name, "taking jobs from", append([]string{"sweep", "work", "--from", "nats://" + p.address, "--processes", "2",
		"--store", name}, p.secure...)...)
}

func (p *plant) coordinator(goesOn bool) *running {
	what := []string{"run", "sweep.yaml"}
	if goesOn {
		what = []string{"resume", "last"}
	}
	return p.olafctl("coordinator", "", slices.Concat([]string{"sweep"}, what,
		[]string{"-q", "--store", "lab", "--workers", "nats://" + p.address}, p.secure)...)
}

// harvest counts results as they are stored.
type harvest struct {
	n    atomic.Int64
	more chan struct{}
}

// isResult matches the name of a complete result.
var isResult = regexp.MustCompile(`^[0-9a-f]{64}$`)

// watchResults watches for results in a store that does not exist yet.
func (p *plant) watchResults(dir string) *harvest {
	p.t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	p.must(err)
	for i := range 256 {
		folder := filepath.Join(p.dir, dir, "singles", fmt.Sprintf("%02x", i))
		p.must(os.MkdirAll(folder, 0o755))
		_, err := unix.InotifyAddWatch(fd, folder, unix.IN_CREATE)
		p.must(err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	p.t.Cleanup(func() { _ = events.Close() }) // only read
	h := &harvest{more: make(chan struct{}, 1)}
	go func() {
		for buf := make([]byte, 1<<16); ; {
			n, err := events.Read(buf)
			if err != nil {
				return // closed
			}
			h.count(buf[:n])
		}
	}()
	return h
}

// count counts the results in a list of events.
func (h *harvest) count(events []byte) {
	for len(events) >= unix.SizeofInotifyEvent {
		length := int(binary.NativeEndian.Uint32(events[unix.SizeofInotifyEvent-4:]))
		name := events[unix.SizeofInotifyEvent:][:length]
		events = events[unix.SizeofInotifyEvent+length:]
		if isResult.Match(bytes.TrimRight(name, "\x00")) {
			h.n.Add(1)
		}
	}
	select {
	case h.more <- struct{}{}:
	default:
	}
}

// await waits for a number of results. It fails if the program that produces them exits earlier.
func (h *harvest) await(n int, by *running) {
	by.t.Helper()
	for h.n.Load() < int64(n) {
		select {
		case <-h.more:
		case <-by.ended:
			if got := h.n.Load(); got < int64(n) {
				by.t.Fatalf("the %s ended after %d results: %v\n%s", by.kind, got, by.err, by.said.String())
			}
		}
	}
}

// TestBuiltProgramsSurviveKills kills the built programs with SIGKILL at 30 random numbers of stored results: in turn
// the server, the coordinator, a machine with its processes, and a process of a machine. Each is restarted at once. The
// test checks that the digest equals that of an undisturbed sweep.
func TestBuiltProgramsSurviveKills(t *testing.T) {
	p := newPlant(t)
	want := p.alone()
	const kills = 30
	random := rand.New(rand.NewPCG(19, kills))
	moments := random.Perm(disturbedResults - disturbedResults/20)[:kills]
	slices.Sort(moments)
	server, one, two := p.server(), p.machine("one"), p.machine("two")
	begin(server, one, two)
	results, coordinator := p.watchResults("lab"), p.coordinator(false)
	coordinator.begin()
	killed := map[string]int{}
	for n, at := range moments {
		results.await(at+1, coordinator)
		victim := []*running{server, coordinator, one, two}[n%4]
		killed[victim.kind]++
		if victim == two {
			victim.killChild()
			continue
		}
		if victim.kill(); victim == coordinator {
			coordinator = p.coordinator(true)
			victim = coordinator
		}
		victim.begin()
	}
	began := time.Now()
	if got := coordinator.digest(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	t.Logf("%v killed at %d results of %d; %v after the last one the digest is the one of one machine: %s", killed, moments,
		disturbedResults, time.Since(began).Round(time.Second), want)
}

// TestMachineOfAnotherBuildGetsNoWork runs the built programs together with a machine of another build whose clock is
// five hours ahead. It checks that coordinator and machine print a remark, take no work from it and continue, and that
// a machine that finds only work for another build exits.
func TestMachineOfAnotherBuildGetsNoWork(t *testing.T) {
	p := newPlant(t)
	want := p.alone()
	server := p.server()
	server.begin()
	q, err := queue.Dial(t.Context(), queue.Options{URL: "nats://" + p.address, Name: "far",
		Token: sweepcmd.OwnToken(testEnvironment(nil, nil), "nats://"+p.address)})
	p.must(err)
	defer q.Close()
	other := sweep.Build{Commit: "0123456789abcdef", Go: "another", Arch: "riscv"}
	present := func(role string) {
		who := queue.Presence{Role: role, Host: "far", Build: other.Hash(), Named: other.String()}
		go q.Announce(t.Context(), who, func() time.Time { return time.Now().Add(5 * time.Hour) })()
	}
	present(queue.Works)
	machine, coordinator := p.machine("one"), p.coordinator(false)
	begin(machine, coordinator)
	if got := coordinator.digest(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, says := range []string{"the clock of far differs from ours by -5h0m0s; only the times", "far has another build (0123456789ab another riscv) than this one"} {
		if !strings.Contains(coordinator.said.String(), says) {
			t.Errorf("no %q in\n%s", says, coordinator.said.String())
		}
	}
	present(queue.HandsOut)
	idle := p.olafctl("idle", "", "sweep", "work", "--from", "nats://"+p.address, "--store", "idle")
	idle.begin()
	<-idle.ended
	if said := idle.said.String(); idle.err == nil || !strings.Contains(said, "far hands out work of 0123456789ab another riscv") ||
		!strings.Contains(said, "use the same program on both sides") {
		t.Errorf("%v\n%s", idle.err, said)
	}
}

// small mounts a file system of a few kB on a folder of the plant, or skips the test. enlarge adds space.
func (p *plant) small(folder string, kB int) (enlarge func()) {
	p.t.Helper()
	dir := filepath.Join(p.dir, folder)
	p.must(os.MkdirAll(dir, 0o755))
	if err := unix.Mount("olafctl-test", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", kB)); err != nil {
		p.t.Skipf("it needs the right to mount a small file system: %v", err)
	}
	p.t.Cleanup(func() { p.must(unix.Unmount(dir, unix.MNT_DETACH)) })
	return func() {
		p.t.Helper()
		p.must(unix.Mount("olafctl-test", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"))
	}
}

// TestBuiltDiskOfCoordinator fills the coordinator's disk in the middle of a distributed sweep. It checks that the
// error names a remedy, and that with more space 'sweep resume' produces the digest of an undisturbed sweep.
func TestBuiltDiskOfCoordinator(t *testing.T) {
	p := newPlant(t)
	const kB = 600
	enlarge := p.small("lab", kB)
	want := p.alone()
	server, machine, coordinator := p.server(), p.machine("one"), p.coordinator(false)
	begin(server, machine, coordinator)
	<-coordinator.ended
	said := coordinator.said.String()
	for _, says := range []string{"no space left on device; free space", "cells are done and kept; 'olafctl sweep resume "} {
		if coordinator.err == nil || !strings.Contains(said, says) {
			t.Fatalf("no %q: %v\n%s%s", says, coordinator.err, coordinator.out.String(), said)
		}
	}
	enlarge()
	again := p.coordinator(true)
	again.begin()
	if got := again.digest(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	t.Logf("full at %d kB: %safterwards the digest of one machine: %s", kB, said, want)
}

// TestBuiltDiskOfServer fills the server's disk. It checks that the server reports this and exits while machine and
// coordinator wait, and that after a restart with more space the sweep produces the digest of an undisturbed sweep.
func TestBuiltDiskOfServer(t *testing.T) {
	p := newPlant(t)
	const kB = 800
	enlarge := p.small("queue", kB)
	want := p.alone()
	server, machine, coordinator := p.server(), p.machine("one"), p.coordinator(false)
	begin(server, machine, coordinator)
	select {
	case <-server.ended:
	case <-coordinator.ended:
		t.Fatalf("%d kB are enough: %v\n%s", kB, coordinator.err, coordinator.said.String())
	}
	said := server.said.String()
	if server.err == nil || !strings.Contains(said, "is full; free space and start it again") {
		t.Fatalf("%v\n%s", server.err, said)
	}
	enlarge()
	server.begin()
	if got := coordinator.digest(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	t.Logf("full at %d kB: %sthe coordinator said: %sthen the digest of one machine: %s", kB, said, coordinator.said.String(), want)
}

// TestBuiltPartitions checks a sweep on two hosts in separate networks, over TLS with certificates on both sides, whose
// cable fails for 200 ms twenty times, each time after ten more results. One host runs server and coordinator, the
// other the only machine.
func TestBuiltPartitions(t *testing.T) {
	p := newPlant(t)
	pair := netlabtest.NewPair(t)
	in := func(n *netlab.Node, r *running) *running {
		r.start = func(cmd *exec.Cmd) (func() error, error) {
			started, err := n.Start(cmd)
			if err != nil {
				return nil, err
			}
			return started.Wait, nil
		}
		return r
	}
	keys := laboratory(t)
	file := func(name string) string { return filepath.Join(keys, name) }
	want := p.alone()
	p.address = netlabtest.Near + ":4222"
	p.secure = []string{"--tls-ca", file("lab.pem"), "--tls-cert", file("client.pem"), "--tls-key", file("client.key"),
		"--tls-server-name", "agent"}
	server := in(pair.Near, p.server("--tls-cert", file("agent.pem"), "--tls-key", file("agent.key"), "--tls-client-ca",
		file("lab.pem")))
	machine, results, coordinator := in(pair.Far, p.machine("far")), p.watchResults("lab"), in(pair.Near, p.coordinator(false))
	begin(server, machine, coordinator)
	const cuts, between, dead = 20, 10, 200 * time.Millisecond
	for range cuts {
		results.await(int(results.n.Load())+between, coordinator)
		pair.Cut(t, dead)
	}
	if got := coordinator.digest(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	t.Logf("%d partitions of %v in a sweep of %d results over TLS: the digest is the one of one machine: %s", cuts, dead,
		disturbedResults, want)
}
