package queue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results/store"
)

// The test binary plays the three kinds of process of a sweep over machines.
const (
	roleOf   = "QUEUE_TEST_ROLE"
	folderOf = "QUEUE_TEST_FOLDER"
	hostOf   = "QUEUE_TEST_HOST" // where the server listens, HOST:PORT
	valuesOf = "QUEUE_TEST_VALUES"
	nameOf   = "QUEUE_TEST_NAME"
)

func TestMain(m *testing.M) {
	role := map[string]func(context.Context) error{"server": beServer, "machine": beMachine,
		"coordinator": beCoordinator}[os.Getenv(roleOf)]
	if role == nil {
		os.Exit(m.Run())
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { // standard input ends when the parent process exits
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := role(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func beServer(ctx context.Context) error {
	host, port, err := net.SplitHostPort(os.Getenv(hostOf))
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	n, err := server.NewServer(&server.Options{Host: host, Port: number, JetStream: true, StoreDir: os.Getenv(folderOf), NoSigs: true,
		NoLog: true})
	if err != nil {
		return err
	}
	go n.Start()
	if !n.ReadyForConnections(time.Minute) {
		return errors.New("the server does not listen")
	}
	fmt.Println("listening")
	<-ctx.Done()
	n.Shutdown()
	return nil
}

// connectHere connects to the server, which starts before the other processes.
func connectHere(ctx context.Context) (*Queue, error) {
	return Dial(ctx, Options{URL: "nats://" + os.Getenv(hostOf), Name: os.Getenv(nameOf)})
}

func beMachine(ctx context.Context) error {
	q, err := connectHere(ctx)
	if err != nil {
		return err
	}
	defer q.Close()
	l := &Labour{Queue: q, Workers: 2, Host: os.Getenv(nameOf), Now: time.Now,
		Start: func(context.Context) (sweep.Worker, error) { return worker{}, nil }}
	return l.Work(ctx)
}

// telling prints a line for every stored result, so that the test knows how far the sweep is.
type telling struct{ sweep.Results }

const storedLine = "stored"

func (r telling) Put(one store.Single) error {
	err := r.Results.Put(one)
	if err == nil {
		fmt.Println(storedLine)
	}
	return err
}

func beCoordinator(ctx context.Context) error {
	q, err := connectHere(ctx)
	if err != nil {
		return err
	}
	defer q.Close()
	p, err := planOf(os.Getenv(valuesOf))
	if err != nil {
		return err
	}
	s, err := store.Open(os.Getenv(folderOf))
	if err != nil {
		return err
	}
	defer s.Close()
	h, err := NewHandout(ctx, q, p.Build)
	if err != nil {
		return err
	}
	e := &sweep.Engine{Plan: p, Results: telling{s.Singles()}, Workers: 64, Start: h.Start, Host: "coordinator", Now: time.Now}
	cells, differ, err := e.Run(ctx)
	if err != nil || len(differ) > 0 {
		return errors.Join(err, errors.New(strings.Join(differ, "; ")))
	}
	d, err := p.Document(cells)
	if err != nil {
		return err
	}
	fmt.Println(d.Digest)
	return nil
}

// role is a process that is started again after it was killed.
type role struct {
	kind, name string
	env        []string
	start      func(*exec.Cmd) error // nil to start it here
	cmd        *exec.Cmd
	lines      chan string // its output lines; closed at its end
}

// begin starts the process; it waits for a server to be ready.
func (r *role) begin(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), append(r.env, roleOf+"="+r.kind, nameOf+"="+r.name)...), os.Stderr
	_, err := cmd.StdinPipe() // the child sees its end when the test exits
	must(t, err)
	out, said, err := os.Pipe()
	must(t, err)
	cmd.Stdout = said
	start := r.start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	must(t, start(cmd))
	must(t, said.Close())
	lines := make(chan string)
	go func() {
		defer close(lines)
		defer out.Close() // only read
		for all := bufio.NewScanner(out); all.Scan(); {
			lines <- all.Text()
		}
	}()
	r.cmd, r.lines = cmd, lines
	t.Cleanup(r.kill) // before the folder that it writes to is removed
	if r.kind == "server" {
		if line := <-lines; line == "" {
			t.Fatal("the server does not listen")
		}
	}
}

// kill sends SIGKILL and waits for the end.
func (r *role) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait() // it was killed
	for range r.lines {
	}
}

// freePort returns an unused address of this host.
func freePort(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// untilDigest reads a coordinator's lines up to its digest. After each batch of some stored results it calls happens,
// which returns the next batch size, or 0 for the end. If happens kills the coordinator, it must start it again.
func untilDigest(t *testing.T, coordinator *role, some int, happens func() int) (digest string) {
	t.Helper()
	for stored := 0; ; {
		line, ok := <-coordinator.lines
		switch {
		case !ok:
			t.Fatal("the coordinator ended without a digest")
		case line != storedLine:
			return line
		}
		if stored++; some > 0 && stored >= some {
			some, stored = happens(), 0
		}
	}
}

// TestKilledAtRandomMoments kills machines, coordinators and servers, in turn, with SIGKILL at 30 moments of sweeps of
// 400 cells, each a random number of results after the last one. It checks that every sweep ends with the digest of a
// single process.
func TestKilledAtRandomMoments(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	moments := 30
	if n, err := strconv.Atoi(os.Getenv("OLAF_KILLS")); err == nil {
		moments = n
	}
	address := freePort(t, "127.0.0.1")
	server := &role{kind: "server", env: []string{hostOf + "=" + address, folderOf + "=" + t.TempDir()}}
	machines := []*role{{kind: "machine", name: "one", env: []string{hostOf + "=" + address}},
		{kind: "machine", name: "two", env: []string{hostOf + "=" + address}}}
	server.begin(t)
	defer func() { server.kill() }()
	for _, m := range machines {
		m.begin(t)
		defer func() { m.kill() }()
	}
	random := rand.New(rand.NewPCG(19, 30))
	const most = 100 // maximum number of results between two kills
	killed, sweeps, n := map[string]int{}, 0, 0
	for ; n < moments; sweeps++ {
		values := fmt.Sprintf("%d..%d", 1000*sweeps+1000, 1000*sweeps+1399)
		want := soloDigest(t, plan(t, values))
		coordinator := &role{kind: "coordinator",
			env: []string{hostOf + "=" + address, folderOf + "=" + t.TempDir(), valuesOf + "=" + values}}
		coordinator.begin(t)
		got := untilDigest(t, coordinator, 1+random.IntN(most), func() int {
			victim := []*role{machines[n/3%2], coordinator, server}[n%3]
			victim.kill()
			victim.begin(t)
			killed[victim.kind]++
			if n++; n == moments {
				return 0
			}
			return 1 + random.IntN(most)
		})
		_ = coordinator.cmd.Wait() // it has printed its digest
		if got != want {
			t.Fatalf("sweep %d after %d kills: %q, want %s", sweeps, n, got, want)
		}
	}
	t.Logf("%v killed in %d sweeps of 400 cells: every digest is the one of one process", killed, sweeps)
}
