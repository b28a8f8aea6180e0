package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/p4ctl"
)

// signalWriter keeps all output and closes seen at the first write that contains text.
type signalWriter struct {
	text string
	seen chan struct{}
	all  bytes.Buffer
}

func (w *signalWriter) Write(b []byte) (int, error) {
	w.all.Write(b)
	if w.text != "" && strings.Contains(w.all.String(), w.text) {
		w.text = ""
		close(w.seen)
	}
	return len(b), nil
}

func testEnvironment(stdout, stderr io.Writer) *cli.Env {
	systems := system.All()
	env := &cli.Env{
		Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Systems: systems, Programs: programs.AllPrograms(),
		Published: listExperiments(systems), Declared: systems.FindDeclaration,
		Getenv: func(string) string { return "" }, Now: time.Now,
		Hostname: func() (string, error) { return "testhost", nil }, Executable: os.Executable,
	}
	env.Devices = listDevices(systems, &env.Bus)
	return env
}

// TestSecondController checks that a running bench keeps its tables when another controller announces a lower or equal
// election id, and stops with exit code 3 when one takes over with a higher id.
func TestSecondController(t *testing.T) {
	socket := "unix:" + filepath.Join(t.TempDir(), "p4rt.sock")
	stderr := &signalWriter{text: "P4Runtime: ", seen: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	code := make(chan int)
	go func() {
		code <- run(ctx, testEnvironment(io.Discard, stderr), []string{"bench", "--runs", "100000", "--quiet", "--p4rt", socket})
	}()
	<-stderr.seen

	ours := p4ctl.DefaultElectionID()
	if _, err := p4ctl.Dial(ctx, socket, p4ctl.Options{ElectionID: ours}); !errors.Is(err, p4ctl.ErrElectionInUse) {
		t.Errorf("equal election id: %v, want ErrElectionInUse", err)
	}
	lower, err := p4ctl.Dial(ctx, socket, p4ctl.Options{ElectionID: p4ctl.ElectionID{Low: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer lower.Close()
	if lower.State() == p4ctl.Primary {
		t.Error("a lower election id became primary")
	}
	if _, err := lower.Sync(ctx, p4ctl.Tables{}); !errors.Is(err, p4ctl.ErrNotPrimary) {
		t.Errorf("a lower election id emptied the tables: %v", err)
	}
	select {
	case c := <-code:
		t.Fatalf("the bench ended with %d before it was pre-empted", c)
	default:
	}

	higher, err := p4ctl.Dial(ctx, socket, p4ctl.Options{ElectionID: ours.Next()})
	if err != nil {
		t.Fatal(err)
	}
	defer higher.Close()
	if c := <-code; c != cli.ExitDevice {
		t.Errorf("exit code %d, want %d", c, cli.ExitDevice)
	}
	if said := stderr.all.String(); !strings.Contains(said, "pre-empted") {
		t.Errorf("stderr does not say why: %q", said)
	}
}

// TestInterrupt checks that a signal after some runs stops a bench, prints its results marked as partial, lists the
// files that were not written, and exits with 130.
func TestInterrupt(t *testing.T) {
	// Only complete rounds are shown; ten times the number of configurations exceeds the runs in progress.
	stdout := &signalWriter{text: `"done":40,`, seen: make(chan struct{})}
	stderr := new(signalWriter)
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int)
	dir := t.TempDir()
	socket, book := "unix:"+filepath.Join(dir, "p4rt.sock"), filepath.Join(dir, "a.xlsx")
	go func() {
		code <- run(ctx, testEnvironment(stdout, stderr), []string{"bench", "--runs", "100000", "--quiet", "-o", "jsonl", "--p4rt", socket, "--xlsx", book})
	}()
	<-stdout.seen
	cancel()
	if c := <-code; c != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d", c, cli.ExitInterrupted)
	}
	if !strings.Contains(stdout.all.String(), `"partial":true`) {
		t.Error("the output is not marked partial")
	}
	if said := stderr.all.String(); !strings.Contains(said, "interrupted; the generator is stopped") {
		t.Errorf("stderr does not say so: %q", said)
	} else if !strings.Contains(said, "not written: "+book) {
		t.Errorf("stderr does not say what is missing: %q", said)
	}
}
