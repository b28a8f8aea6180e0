package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/twin"
)

// startServe runs 'olafctl device serve' on a private socket until the test ends and returns its address.
func startServe(t *testing.T, args ...string) (target string) {
	t.Helper()
	target = "unix:" + filepath.Join(t.TempDir(), "s")
	serveIn(t, func(*cli.Env) {}, append([]string{"--listen", target}, args...)...)
	return target
}

// serveIn runs 'olafctl device serve' until the test ends and returns the line that it prints when it is ready.
func serveIn(t *testing.T, prepare func(*cli.Env), args ...string) string {
	t.Helper()
	stderr := &signalWriter{text: "Ctrl-C", seen: make(chan struct{})}
	env := testEnvironment(&bytes.Buffer{}, stderr)
	prepare(env)
	ctx, cancel := context.WithCancel(context.Background()) // for the duration of the test
	code := make(chan int, 1)
	go func() { code <- run(ctx, env, append([]string{"serve"}, args...)) }()
	t.Cleanup(func() {
		cancel()
		if c := <-code; c != cli.ExitDone {
			t.Errorf("serve ended with %d: %s", c, stderr.all.String())
		}
	})
	select {
	case <-stderr.seen:
	case <-time.After(time.Minute):
		t.Fatal("serve did not start")
	}
	return stderr.all.String()
}

// step is one command of a story.
type step struct {
	args   string // TARGET and FILE are replaced
	code   int
	stdout string // a pattern; empty for anything
	stderr string
}

func (s step) run(t *testing.T, replace *strings.Replacer) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), testEnvironment(&stdout, &stderr), strings.Fields(replace.Replace(s.args)))
	if code != s.code {
		t.Errorf("%s: exit code %d, want %d\n%s%s", s.args, code, s.code, &stdout, &stderr)
	}
	if !regexp.MustCompile(s.stdout).Match(stdout.Bytes()) || !regexp.MustCompile(s.stderr).Match(stderr.Bytes()) {
		t.Errorf("%s: want %q and %q\n%s%s", s.args, s.stdout, s.stderr, &stdout, &stderr)
	}
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const storyTables = `schema: olafctl.tables/v1
servers: [10.0.0.1]
workers:
  - {address: 10.1.0.0, cluster: 0, worker: 0}
  - {address: 10.1.0.1, cluster: 0, worker: 1}
  - {address: 10.1.0.2, cluster: 1, worker: 2}
`

// TestTablesAndClusters checks a typical sequence of commands with an agent: apply, compare, regroup, take over, clear.
func TestTablesAndClusters(t *testing.T) {
	target := startServe(t)
	replace := strings.NewReplacer("TARGET2", target, "TARGET", "--target "+target, "FILE", writeFile(t, "t.yaml", storyTables),
		"BAD", writeFile(t, "bad.yaml", "schema: olafctl.tables/v1\nworkers:\n  - {address: 10.0.0.1, cluster: 70000, worker: 0}\n"))
	for _, s := range []step{
		{"tables list TARGET -o json", 0, `"workers": \[\]`, ""},
		{"tables diff FILE TARGET --exit-code", 4, `(?m)^\+ `, "8 added, 0 changed, 0 deleted: not done"},
		{"tables apply FILE TARGET --dry-run", 0, `(?m)^\+ `, "not done"},
		{"tables diff FILE TARGET --exit-code", 4, "", ""},
		{"tables apply FILE TARGET", 0, `(?m)^\+ `, "8 added, 0 changed, 0 deleted: done as one batch"},
		{"tables diff FILE TARGET --exit-code", 0, "^$", "0 added"},
		{"tables apply FILE TARGET -o json", 0, `"changes": \[\]`, ""},
		{"tables get TARGET", 0, `\{address: 10.1.0.2, cluster: 1, worker: 2\}`, ""},
		{"tables apply BAD TARGET", 2, "^$", "line 3: workers.0..cluster"},
		{"tables apply /nowhere TARGET", 2, "^$", "no such file"},
		{"cluster list TARGET", 0, `(?m)^0 +1 +0 1 +10.1.0.0 10.1.0.1$`, ""},
		{"cluster move --to 1 10.1.0.1 TARGET --dry-run", 0, "10.1.0.1", "not done"},
		{"cluster move --to 1 10.1.0.1 TARGET", 0, "10.1.0.1", "done as one batch"},
		{"cluster list TARGET -o csv", 0, `(?m)^1,2,1 2,10.1.0.1 10.1.0.2$`, ""},
		{"cluster add --cluster 5 10.1.0.9=9 TARGET", 0, "10.1.0.9", "3 added"},
		{"cluster add --cluster 5 10.1.0.9=9 TARGET", 2, "^$", "already"},
		{"cluster rm 10.1.0.9 TARGET", 0, "", "1 deleted"},
		{"cluster rm --cluster 5 TARGET", 0, "", "2 deleted"},
		{"cluster rm --cluster 5 TARGET", 2, "", "neither workers nor a group"},
		{"cluster rm TARGET", 2, "", "name either"},
		{"cluster move --to 1 nonsense TARGET", 2, "", "no IPv4"},
		{"cluster move --to 1 10.9.9.9 TARGET", 2, "", "no worker has address"},
		{"tables takeover TARGET", 0, "^1:2\n$", "was primary"},
		{"tables clear TARGET --election-id 1:1", 3, "^$", "use --election-id 1:3 or higher, or leave it out"},
		{"tables clear TARGET", 0, "(?m)^- ", "done as one batch"},
		{"tables clear TARGET --election-id x", 2, "", "HIGH:LOW"},
		{"tables list --target grpc:TARGET2", 0, "", ""},
		{"tables list --target localhost", 2, "^$", "want HOST:PORT or unix:PATH"},
		{"tables list --target=", 2, "^$", "--target is empty"},
		{"cluster list --target unix:", 2, "^$", "want HOST:PORT or unix:PATH"},
		{"device info -d grpc://localhost", 2, "^$", "agent \"localhost\": want HOST:PORT"},
		{"bench -d grpc:", 2, "^$", "want HOST:PORT or unix:PATH"},
		{"tables list --target unix:/nowhere/s", 3, "", "no such file.*; 'olafctl device serve' starts one"},
	} {
		s.run(t, replace)
	}
}

// TestTablesOfSystems writes the tables of switch programs, both those that the pipeline has from the start and those
// that a controller adds, and checks that benches run only with workers that the tables admit.
func TestTablesOfSystems(t *testing.T) {
	target := startServe(t)
	const members = "programs:\n  isw.members:\n    - {job: 0, worker: 0, port: 3}\n    - {job: 0, worker: 1, port: 4}\n"
	replace := strings.NewReplacer("TARGET2", target, "TARGET", "--target "+target, "FILE", writeFile(t, "t.yaml", storyTables+members),
		"BAD", writeFile(t, "bad.yaml", storyTables+"programs:\n  isw.members:\n    - {job: 0, worker: 0}\n"),
		"ABOVE", writeFile(t, "above.yaml", storyTables+members+"    - {job: 0, worker: 9, port: 65535}\n"),
		"TWO", writeFile(t, "two.yaml", storyTables+"programs:\n  isw.members:\n    - {job: 0, worker: 7, port: 65535}\n    - {job: 0, worker: 9, port: 65535}\n"))
	for _, s := range []step{
		{"tables apply FILE TARGET --dry-run", 0, `(?m)^\+ isw.members job 0 worker 0  admit port 3$`, "not done"},
		{"tables apply BAD TARGET", 2, "^$", `line 9: isw.members.0..port: is missing`},
		{"tables apply TWO TARGET", 2, "^$", `line 10: isw.members.1..job: isw.members names two switches above job 0: 7 and 9`},
		{"tables apply FILE TARGET", 0, "", "(?s)the pipeline now has the tables of iswitch too.*10 added, 0 changed, 0 deleted: done as one batch"},
		{"tables diff FILE TARGET --exit-code", 0, "^$", ""},
		{"tables apply ABOVE TARGET", 0, `(?m)^\+ isw.members job 0 worker 9  admit port 65535, the switch above$`, "done as one batch"},
		{"tables show TARGET", 0, `(?m)^isw.members +job 0, worker 9 +admit\(port=65535\), the switch above$`, ""},
		{"tables show TARGET -o json", 0, `"remark": "the switch above"`, ""},
		{"tables apply FILE TARGET", 0, "^- isw.members job 0 worker 9  admit port 65535, the switch above", "1 deleted: done as one batch"},
		{"tables show TARGET", 0, `(?m)^isw.members +job 0, worker 1 +admit\(port=4\)$`, ""},
		{"tables show TARGET -o json", 0, `"table": "isw.members"`, ""},
		{"tables show -d grpc:TARGET2", 0, "isw.members", ""}, // does not touch them
		{"cluster move --to 1 10.1.0.1 TARGET", 0, `(?m)^\+ isw.members job 1 worker 1  admit port 4$`, "done as one batch"},
		{"tables get TARGET", 0, `(?m)^    - \{job: 1, worker: 1, port: 4\}$`, ""},
		{"tables conformance --write -d TARGET2 -o csv", 0, "D6,", "0 failed"},
		{"bench --system iswitch --h 3 --versus none --runs 1 --out-rate 40G --keep=false -q -o csv -d grpc:TARGET2", 0, "iswitch", ""},
		{"tables show TARGET", 0, `job 8, worker 26`, ""},
		{"bench --runs 1 --out-rate 40G --versus none --keep=false -q -o csv -d grpc:TARGET2", 0, "olaf", ""},
		// OLAF's own pipeline
		{"tables show TARGET -o csv", 0, `vnp4_2.cluster_groups,cluster 8,"?set_group\(9\) to workers 24,25,26"?\n$`, ""},
		{"serve --system xagg", 2, "^$", "XAgg has no tables"},
		{"serve --system nobody", 2, "^$", "unknown system"},
		{"serve --system iswitch -d xdp:", 3, "^$", "xdp: can't take the tables of switch programs; twin:, host: can"},
	} {
		s.run(t, replace)
	}
	begun := startServe(t, "--system", "p4inc")
	step{"tables show TARGET", 0, "", "the tables are empty"}.run(t, strings.NewReplacer("TARGET", "--target "+begun))
}

// TestSlotsOfTwoJobs checks that tables cannot give two jobs the same slots, and that the error names both.
func TestSlotsOfTwoJobs(t *testing.T) {
	parts := func(name, first, second string) string {
		return writeFile(t, name, storyTables+"programs:\n  sml.jobs:\n    - {job: 0, first: "+first+", size: 64}\n    - {job: 1, first: "+second+", size: 64}\n")
	}
	replace := strings.NewReplacer("TARGET", "--target "+startServe(t, "--system", "switchml"),
		"CLASH", parts("clash.yaml", "0", "32"), "APART", parts("apart.yaml", "0", "64"), "TURNED", parts("turned.yaml", "64", "0"))
	for _, s := range []step{
		{"tables apply CLASH TARGET", 1, "", `"sml.jobs" gives two jobs the same slots: job 0 has slots 0 to 63 and job 1 slots 32 to 95`},
		{"tables show TARGET", 0, "", "the tables are empty"},
		{"tables apply APART TARGET", 0, "", "done as one batch"},
		{"tables apply TURNED TARGET", 0, "", "0 added, 2 changed, 0 deleted: done as one batch"},
		{"tables show TARGET", 0, `job 1 +set_pool\(first=0, size=64\)`, ""},
	} {
		s.run(t, replace)
	}
}

// TestDeviceBehindAnAgent checks registers and a bench over gRPC.
func TestDeviceBehindAnAgent(t *testing.T) {
	target := startServe(t)
	replace := strings.NewReplacer("DEVICE", "-d grpc:"+target, "RECORD", filepath.Join(t.TempDir(), "session"))
	for _, s := range []step{
		{"device info DEVICE", 0, `kind +remote`, ""},
		{"reg write queue.depth=5 DEVICE", 0, "", ""},
		{"reg read queue.depth DEVICE", 0, "5 slots", ""},
		{"reg write queue.depth=6 --dry-run DEVICE", 0, "queue.depth = 0x6 .not done", ""},
		{"reg read queue.depth DEVICE", 0, "5 slots", ""},
		{"reg write queue.depth=0 DEVICE", 3, "", "refused"},
		{"device doctor --full DEVICE -o csv", 0, "conformance cycles_advance,passed", ""},
		{"bench --runs 1 --out-rate 40G --versus none --keep=false -q -o csv DEVICE", 0, "olaf", ""},
		{"device watch --count 1 --record RECORD DEVICE", 0, "cycle", "^$"},
		{"device watch --count 1 -d playback:RECORD", 0, "cycle", "^$"},
		{"tables show --target unix:/x DEVICE", 2, "^$", "target"},
		{"bench --p4rt unix:/x --keep=false DEVICE", 2, "", "serves P4Runtime itself"},
		{"device info -d grpc:unix:/nowhere/s", 3, "", "olafctl device serve"},
	} {
		s.run(t, replace)
	}
}

// TestWatchACardBehindAnAgent checks that a card's ports are counted through an agent as they are without one.
func TestWatchACardBehindAnAgent(t *testing.T) {
	card, err := pcietest.New(twin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	card.Shell[0xB030] = 4 // dropped in the adapter of port 0
	dir := t.TempDir()
	target := "unix:" + filepath.Join(dir, "s")
	serveIn(t, func(env *cli.Env) {
		if env.Bus, err = card.Bus(dir, pcietest.OpenNIC()); err != nil {
			t.Fatal(err)
		}
	}, "--listen", target, "-d", "pci:"+pcietest.BDF)
	step{"device watch --count 1 -o csv -d grpc:" + target, 0, `,port0_rx_dropped,.*,port1_foreign_ticks\n.*,4,0,0,0,0,0,0,0,0,0\n$`, ""}.run(t, strings.NewReplacer())
}

// TestAgentExitsWhenCardIsReplaced checks that an agent whose card was replaced notifies its client and exits with code
// 3.
func TestAgentExitsWhenCardIsReplaced(t *testing.T) {
	card, err := pcietest.New(twin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ready := &signalWriter{text: "Ctrl-C", seen: make(chan struct{})}
	env := testEnvironment(&bytes.Buffer{}, ready)
	if env.Bus, err = card.Bus(dir, pcietest.OpenNIC()); err != nil {
		t.Fatal(err)
	}
	code := make(chan int, 1)
	target := "unix:" + filepath.Join(dir, "s")
	go func() {
		code <- run(t.Context(), env, []string{"serve", "--listen", target, "-d", "pci:" + pcietest.BDF})
	}()
	<-ready.seen
	card.Reprogram()
	if err := card.Wait(t.Context(), olaf.Second); err != nil {
		t.Fatal(err)
	}
	step{"reg write queue.depth=5 -d grpc:" + target, 3, "^$", "it now runs another image"}.run(t, strings.NewReplacer())
	if c := <-code; c != cli.ExitDevice || !strings.Contains(ready.all.String(), "the agent ended: "+pcietest.BDF+": device is gone: it now runs another image") {
		t.Errorf("the agent ended with %d: %s", c, ready.all.String())
	}
}

// TestAgentOfACardHasNoTables checks the errors of an agent that serves only registers.
func TestAgentOfACardHasNoTables(t *testing.T) {
	session := writeFile(t, "card.session", "olafctl.register-session/v1\nidentity {\"kind\":\"pcie\"}\nr 101034 8\n")
	target := startServe(t, "-d", "playback:"+session)
	replace := strings.NewReplacer("TARGET", target)
	for _, s := range []step{
		{"reg read queue.depth -d grpc:TARGET", 0, "8 slots", ""},
		{"bench --keep=false -q -d grpc:TARGET", 2, "", "has no capture at the parameter server"},
		{"tables list --target TARGET", 3, "", "serves no tables"},
		{"tables clear --target TARGET", 3, "", "serves no tables"},
		{"cluster list --target TARGET", 3, "", "serves no tables"},
	} {
		s.run(t, replace)
	}
}

// TestInterruptedWaitForAgent checks the message that commands print after Ctrl-C while they wait for an agent that
// never answers.
func TestInterruptedWaitForAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	silent, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	target := "unix:" + path
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"device", "info", "-d", "grpc:" + target}, {"tables", "list", "--target", target}} {
		var stdout, stderr bytes.Buffer
		if code := run(ctx, testEnvironment(&stdout, &stderr), args); code != cli.ExitInterrupted || stderr.String() != "olafctl: interrupted\n" {
			t.Errorf("%v: exit code %d, %s", args, code, &stderr)
		}
	}
}

// TestServeRefuses checks the errors for devices and addresses that cannot be served.
func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	journal := filepath.Join(dir, "journal")
	if err := os.Symlink(journal, filepath.Join(dir, "new.new")); err != nil {
		t.Fatal(err)
	}
	busy := startServe(t, "--journal", journal)
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	replace := strings.NewReplacer("BUSY", busy, "PORT", port.Addr().String(), "DIR", dir, "JOURNAL", journal, "FILE", writeFile(t, "f", "something else"))
	for _, s := range []step{
		{"serve --listen 0.0.0.0:9559", 2, "", "without TLS"},
		{"serve --listen PORT", 2, "", "cannot listen at 127.0.0.1:[0-9]+: another program listens there"},
		{"serve --listen BUSY -d pci:nowhere", 2, "", "in use by another agent"},
		{"serve --listen unix:FILE", 2, "", "exists and is not a socket"},
		{"serve --listen unix:", 2, "", "needs a path"},
		{"serve --listen unix:DIR/nowhere/s", 2, "", "no such file"},
		{"serve --listen bogus", 2, "", "use unix:PATH or HOST:PORT"},
		{"serve --listen 127.0.0.1:99999", 2, "", "use unix:PATH or HOST:PORT"},
		{"serve --insecure --listen 127.0.0.1:0 -d pci:nowhere", 3, "", "use an address such as"},
		{"serve --listen unix:DIR/s --journal JOURNAL", 2, "", "another agent uses .*journal; stop that agent"},
		{"serve --listen unix:DIR/s --journal FILE", 2, "", "move the file and its .ack away"},
		{"serve --listen unix:DIR/s --journal DIR", 2, "", "is a directory; name a file"},
		{"serve --listen unix:DIR/s --journal DIR/new", 2, "", "new.new is a symbolic link, which is not followed; remove it"},
		{"serve --listen unix:DIR/s --journal DIR/nowhere/j", 2, "", "there is no folder .*nowhere for j; create it"},
	} {
		s.run(t, replace)
	}
}
