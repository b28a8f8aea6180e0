//go:build vnp4 && linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/results"
)

// builtStandIn describes the programs that the tests compile.
type builtStandIn struct {
	program string   // this command, for the driver's child process
	flags   []string // flags that name the driver
}

// standIn is a card whose tables are written by the stand-in driver through register windows.
type standIn struct {
	*pcietest.Card
	builtStandIn
	tables    *pcietest.Tables
	newFrames []pcietest.Frame
}

func buildStandIn(t *testing.T) (b builtStandIn) {
	t.Helper()
	dir := t.TempDir()
	build := func(name string, args ...string) {
		if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
	}
	b.program = filepath.Join(dir, "olafctl")
	build("go", "build", "-tags", "vnp4", "-o", b.program, ".")
	for _, n := range []string{"1", "2"} { // a shared object has one set of tables
		library := filepath.Join(dir, "driver"+n+".so")
		build("gcc", "-shared", "-fPIC", "-o", library, "../../p4ctl/vnp4/testdata/standin.c")
		b.flags = append(b.flags, "--vnp4-"+n, library+":XilVitisNetP4TargetConfig_standin")
	}
	return b
}

func newStandIn(t *testing.T, b builtStandIn) *standIn {
	t.Helper()
	s := &standIn{builtStandIn: b, tables: pcietest.NewTables()}
	var err error
	if s.Card, err = pcietest.New(twin.Config{Tables: s.tables, Wire: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), olaf.Millisecond); err != nil { // the card has been on for a while
		t.Fatal(err)
	}
	s.tables.Attach(s.Card)
	return s
}

// Info describes the interface behind port 1, on a host that has the card's clock.
func (s *standIn) Info() live.Info            { return live.Info{Interface: "fake0", Stamps: live.Kernel} }
func (s *standIn) StampCounts() live.Stamped  { return live.Stamped{} }
func (s *standIn) Drops() (live.Drops, error) { return live.Drops{}, nil }
func (s *standIn) Next(p *capture.Packet) error {
	sent, err := s.Sent(1)
	if err != nil {
		return err
	}
	if s.newFrames = append(s.newFrames, sent...); len(s.newFrames) == 0 {
		return capture.ErrIdle
	}
	f := s.newFrames[0]
	s.newFrames = s.newFrames[1:]
	*p = capture.Packet{UnixNS: f.At.UnixNano(), Data: f.Data, Wire: len(f.Data)}
	return nil
}

// environment returns an environment with this card.
func (s *standIn) environment(t *testing.T, dir string, stdout, stderr io.Writer) *cli.Env {
	t.Helper()
	env := testEnvironment(stdout, stderr)
	env.Executable = func() (string, error) { return s.program, nil }
	env.OpenCapture = func(o live.Options) (testbed.Frames, error) {
		if o.Interface != "fake0" || o.Stamps != live.Kernel {
			return nil, fmt.Errorf("%w: %+v", live.ErrInterface, o)
		}
		return s, nil
	}
	var err error
	if env.Bus, err = s.Bus(dir, pcietest.OpenNIC()); err != nil {
		t.Fatal(err)
	}
	return env
}

// TestCardWithStandInDriver checks a fake card whose tables are written by a stand-in driver in a child process.
func TestCardWithStandInDriver(t *testing.T) {
	built := buildStandIn(t)
	t.Run("lent", func(t *testing.T) { lendStandIn(t, newStandIn(t, built)) })
	t.Run("bench", func(t *testing.T) { benchStandIn(t, newStandIn(t, built)) })
	t.Run("refused", func(t *testing.T) { refuseStandIn(t, newStandIn(t, built)) })
}

// refuseStandIn checks the errors for files that are not drivers or not for this card.
func refuseStandIn(t *testing.T, card *standIn) {
	library := strings.TrimSuffix(card.flags[1], ":XilVitisNetP4TargetConfig_standin")
	for _, c := range []struct {
		flags string
		code  int
		want  string
	}{
		{"--vnp4-1 " + library + ":x", cli.ExitUsage, "--vnp4-1 and --vnp4-2 go together"},
		{"--vnp4-1 " + library + " --vnp4-2 x:y", cli.ExitUsage, "is not LIBRARY:SYMBOL"},
		{"--vnp4-1 /nowhere/d.so:x --vnp4-2 /nowhere/d.so:x", cli.ExitUsage, "--vnp4-1: stat /nowhere/d.so: no such file"},
		{"--vnp4-1 nowhere.so:x --vnp4-2 nowhere.so:x", cli.ExitDevice, "driver: open nowhere.so: driver: nowhere.so: cannot open shared object file: No such file or directory\n"},
		{"--vnp4-1 " + library + ":x --vnp4-2 " + library + ":x", cli.ExitDevice, "driver1.so has no x: which IP instance is it?\n"},
	} {
		var stdout, stderr bytes.Buffer
		env := card.environment(t, t.TempDir(), &stdout, &stderr)
		args := append(strings.Fields(standInBench), append(strings.Fields(c.flags), "-d", "pci:"+pcietest.BDF, "--capture", "fake0")...)
		if code := run(t.Context(), env, args); code != c.code || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: exit code %d: %s", c.flags, code, &stderr)
		}
	}
}

// lendStandIn checks the card when it is served to other processes.
func lendStandIn(t *testing.T, card *standIn) {
	dir := t.TempDir()
	socket := "unix:" + filepath.Join(dir, "s")
	stderr := &signalWriter{text: "P4Runtime", seen: make(chan struct{})}
	env := card.environment(t, dir, &bytes.Buffer{}, stderr)
	serve := append([]string{"serve", "--listen", socket, "-d", "pci:" + pcietest.BDF, "--capture", "fake0"}, card.flags...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	code := make(chan int, 1)
	go func() { code <- run(ctx, env, serve) }()
	select {
	case <-stderr.seen:
	case c := <-code:
		t.Fatalf("serve ended with %d: %s", c, stderr.all.String())
	}
	replace := strings.NewReplacer("TARGET", "--target "+socket, "DEVICE", "-d grpc:"+socket, "FILE", writeFile(t, "t.yaml", storyTables), "BENCH", standInBench)
	for _, s := range []step{
		{"tables apply FILE TARGET", 0, "", "8 added"},
		{"cluster move --to 1 10.1.0.1 TARGET", 0, "10.1.0.1", ""},
		{"tables clear TARGET", 0, "", "8 deleted"},
		{"BENCH DEVICE", 0, `"received": \{[^}]*"mean": [1-9]`, ""},
	} {
		s.run(t, replace)
	}
	cancel()
	if c := <-code; c != cli.ExitDone {
		t.Errorf("serve ended with %d: %s", c, stderr.all.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "s")); err == nil {
		t.Error("the socket is still there")
	}
	if n := card.tables.Workers(); n != 6 {
		t.Errorf("%d workers reached the card", n)
	}
}

// standInBench fits into the stand-in's tables.
const standInBench = "bench --runs 2 --out-rate 40G --clusters 3 --workers 6 --updates 100 --keep=false -q -o json"

// benchStandIn runs a bench on the card, with a driver in a child process for the tables and a capture for the frames,
// and compares the counters with the twin's.
func benchStandIn(t *testing.T, card *standIn) {
	dir := t.TempDir()
	bench := func(env *cli.Env, args ...string) {
		t.Helper()
		if code := run(t.Context(), env, append(strings.Fields(standInBench), args...)); code != cli.ExitDone {
			t.Fatalf("exit code %d: %s", code, env.Stderr)
		}
	}
	var onCard, onTwin, stderr bytes.Buffer
	bench(card.environment(t, dir, &onCard, &stderr), append([]string{"-d", "pci:" + pcietest.BDF, "--capture", "fake0"}, card.flags...)...)
	bench(testEnvironment(&onTwin, &stderr))
	var got, want results.Bench
	if err := errors.Join(json.Unmarshal(onCard.Bytes(), &got), json.Unmarshal(onTwin.Bytes(), &want)); err != nil {
		t.Fatal(err)
	}
	for i := range want.Rows {
		g, w := &got.Rows[i].Stats, &want.Rows[i].Stats
		if *g.Of("received") != *w.Of("received") || *g.Of("aggregated") != *w.Of("aggregated") || got.Rows[i].Runs != 2 {
			t.Errorf("%s: %+v, want %+v", want.Rows[i].Queue, g.Of("received"), w.Of("received"))
		}
		// ns; both have one clock
		if off := math.Abs(float64(g.Of("aom_cluster_ns").Mean - w.Of("aom_cluster_ns").Mean)); !(off <= 1) {
			t.Errorf("%s: AoM %v, want %v", want.Rows[i].Queue, g.Of("aom_cluster_ns").Mean, w.Of("aom_cluster_ns").Mean)
		}
	}
	if said := strings.Join(got.Statements, " "); !strings.Contains(said, "fake0 are stamped by the kernel") {
		t.Errorf("it says %s", said)
	}
}
