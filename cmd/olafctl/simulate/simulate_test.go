package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// person simulates the dashboard's input: keys are typed when an event is reported.
type person struct {
	types chan string
	left  string
}

func (p *person) Read(b []byte) (int, error) {
	for p.left == "" {
		next, ok := <-p.types
		if !ok {
			return 0, io.EOF
		}
		p.left = next
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}

// page collects the terminal's output.
type page struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// at calls a function with every event.
type at func(bench.Event) error

func (f at) Event(e bench.Event) error { return f(e) }

// shown is a simulation with some seeds on a dashboard.
type shown struct {
	watchedRuns
	person *person
	page   *page
}

func watching(t *testing.T, runs int, heard at) *shown {
	t.Helper()
	topology, err := netsim.Preset(system.All(), "multihop", netsim.Scale{})
	if err != nil {
		t.Fatal(err)
	}
	topology.Duration = 5 * olaf.Second
	s := &shown{person: &person{types: make(chan string, 10)}, page: new(page)}
	t.Cleanup(func() { close(s.person.types) })
	s.env = &cli.Env{Stdin: s.person, Stdout: s.page, Stderr: io.Discard, Getenv: func(string) string { return "" }, Now: time.Now}
	s.view = cli.ViewFlags{Speed: "max", Ground: "dark"}
	s.simulation = &bench.Simulation{Experiment: cli.SimulateName, Networks: []bench.Network{{Name: "olaf", Topology: topology}}}
	for i := range runs {
		s.simulation.Seeds = append(s.simulation.Seeds, uint64(i)+1)
	}
	s.options.Stream = bench.NewStream(heard)
	return s
}

func deaf(bench.Event) error { return nil }

// runs shows the runs, ends a test that hangs, and checks that the terminal is restored.
func (s *shown) runs(ctx context.Context, t *testing.T) (*bench.Simulated, error) {
	t.Helper()
	hung := errors.New("the dashboard did not close")
	ctx, stop := context.WithTimeoutCause(ctx, 2*time.Minute, hung)
	defer stop()
	out, err := s.showRuns(ctx)
	if errors.Is(context.Cause(ctx), hung) {
		t.Error(hung)
	}
	taken, given := strings.Count(s.page.String(), "\x1b[?1049h"), strings.Count(s.page.String(), "\x1b[?1049l")
	if taken != given {
		t.Errorf("the terminal was taken %d times and given back %d times", taken, given)
	}
	return out, err
}

// TestWatchedRunsGiveEqualResults checks that runs on the dashboard give the same results as runs without it, also with
// closed-loop workers.
func TestWatchedRunsGiveEqualResults(t *testing.T) {
	t.Run("in queues", func(t *testing.T) { watchedAreTheSame(t, nil) })
	t.Run("waiting", func(t *testing.T) { watchedAreTheSame(t, &netsim.Waiting{System: "atp"}) })
}

func watchedAreTheSame(t *testing.T, waiting *netsim.Waiting) {
	t.Helper()
	var s *shown
	s = watching(t, 3, func(e bench.Event) error {
		if _, over := e.(bench.Finished); over {
			s.person.types <- "qy"
		}
		return nil
	})
	if topology := s.simulation.Networks[0].Topology; waiting != nil {
		topology.Queue, topology.Waiting = "fifo", waiting
	}
	out, err := s.runs(t.Context(), t)
	if err != nil || out.Partial || out.Stopped != nil {
		t.Fatalf("%v %+v", err, out)
	}
	alone, err := netsim.RunSeeds(t.Context(), s.simulation.Networks[0].Topology, s.simulation.Seeds, netsim.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(alone)
	b, _ := json.Marshal(out.Results[0])
	if !bytes.Equal(a, b) {
		t.Errorf("watched:\n%s\nalone:\n%s", b, a)
	}
}

// TestLeavingEndsPausedRun checks the result when the user leaves the dashboard while the first run is paused and the
// other runs are complete.
func TestLeavingEndsPausedRun(t *testing.T) {
	var s *shown
	done := 0
	s = watching(t, 3, func(e bench.Event) error {
		if _, ok := e.(bench.RunDone); ok {
			if done++; done == 2 {
				s.person.types <- "qy"
			}
		}
		return nil
	})
	s.view.Paused = true
	out, err := s.runs(t.Context(), t)
	if !errors.Is(err, context.Canceled) || !out.Partial || len(out.Results[0]) != 2 || out.Results[0][0].Seed != 2 {
		t.Fatalf("%v %+v", err, out)
	}
	if out.Stopped == nil || out.Stopped.Seed != 1 || out.Stopped.Time != 0 {
		t.Errorf("stopped %+v", out.Stopped)
	}
	// Complete runs are shown; without any, the stopped first one.
	report := simulation{topology: s.simulation.Networks[0].Topology}
	report.addRuns(out)
	if !report.isWhole() || !report.Partial || len(report.Runs) != 2 {
		t.Errorf("%+v", report)
	}
	out.Runs, out.Results = make([][]results.Run, 1), make([][]*netsim.Result, 1)
	report.addRuns(out)
	if report.isWhole() || len(report.Runs) != 1 || report.Runs[0] != out.Stopped {
		t.Errorf("%+v", report)
	}
}

// TestSignalClosesDashboard checks that the dashboard closes when its context is cancelled.
func TestSignalClosesDashboard(t *testing.T) {
	ctx, signal := context.WithCancel(t.Context())
	s := watching(t, 1, func(e bench.Event) error {
		if _, ok := e.(bench.RunStarted); ok {
			signal()
		}
		return nil
	})
	s.view.Paused = true
	if out, err := s.runs(ctx, t); !errors.Is(err, context.Canceled) || out == nil || !out.Partial {
		t.Errorf("%v %+v", err, out)
	}
}

// TestFailureClosesDashboard checks that a full disk, which ends the runs, closes the dashboard before the user leaves.
func TestFailureClosesDashboard(t *testing.T) {
	full := errors.New("disk full")
	s := watching(t, 2, func(e bench.Event) error {
		if d, ok := e.(bench.RunDone); ok && d.Run.Index == 1 {
			return full
		}
		return nil
	})
	s.view.Paused = true
	if out, err := s.runs(t.Context(), t); !errors.Is(err, full) || out == nil || len(out.Results[0]) != 0 {
		t.Errorf("%v %+v", err, out)
	}
}

// TestSpeedOfAWatchedRun checks the values of --speed.
func TestSpeedOfAWatchedRun(t *testing.T) {
	for speed, want := range map[string]string{"2s": "", "max": "", "": "", "fast": "--speed", "1ps": "use 1ns or more", "0s": "use 1ns or more"} {
		s := watching(t, 1, deaf)
		s.view.Speed = speed
		if _, err := watch.PaceOf(&s.view, olaf.Second); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", speed, err)
		}
	}
}

// TestLargeFrameDataNeedsKeep checks that the size of large frame data is printed, and that it is stored only with
// --keep.
func TestLargeFrameDataNeedsKeep(t *testing.T) {
	for _, c := range []struct {
		workers int
		asked   bool
		say     string
		kept    bool
	}{
		{10, false, "", true},
		{10_000, false, "the first seed's frames would take up to", false},
		{10_000, true, "the first seed's frames take up to", true},
	} {
		topology, err := netsim.Preset(system.All(), "multihop", netsim.Scale{WorkersPerCluster: c.workers})
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		f := &simulateFlags{keepAsked: c.asked}
		work := &bench.Simulation{Networks: []bench.Network{{Topology: topology}}}
		if kept := f.keepsFrames(&cli.Env{Stderr: &said}, work); kept != c.kept {
			t.Errorf("%d workers, asked %v: frames kept %v", c.workers, c.asked, kept)
		}
		if !strings.HasPrefix(said.String(), c.say) || (c.say == "") != (said.Len() == 0) {
			t.Errorf("%d workers, asked %v: %q", c.workers, c.asked, said.String())
		}
	}
}

// TestRepeatedErrorsPrintOnce checks that a repeated error is printed once.
func TestRepeatedErrorsPrintOnce(t *testing.T) {
	full := errors.New("disk full")
	if said := cli.OneLine(errors.Join(full, errors.New("two\nlines"), full)); said != "disk full; two; lines" {
		t.Error(said)
	}
}

// TestTopologyNamesAreEscaped checks the output for a topology whose name contains escape codes, and for one without a
// name.
func TestTopologyNamesAreEscaped(t *testing.T) {
	topology, err := netsim.Preset(system.All(), "multihop", netsim.Scale{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a\nb\x1b[31m": "a b[31m: queue olaf", "": "network without a name: queue olaf"} {
		topology.Name = name
		var b strings.Builder
		if err := (&simulation{topology: topology, Seeds: []uint64{1}}).WriteText(&b, text.View{}); err != nil || !strings.HasPrefix(b.String(), want) {
			t.Errorf("%q prints as %q (%v)", name, b.String(), err)
		}
	}
}

// TestErrorListLines checks that each error in a list is printed on a line of its own, unless the error adds text to
// the list.
func TestErrorListLines(t *testing.T) {
	list := olaf.ListErrors([]error{errors.New("one\nin two"), errors.New("another")})
	for _, err := range []error{list, errors.Join(list, nil)} {
		if said := cli.ErrorLines(err); !slices.Equal(said, []string{"one; in two", "another"}) {
			t.Errorf("%q", said)
		}
	}
	for _, err := range []error{errors.Join(list, errors.New("closed")), fmt.Errorf("open: %w", list), errors.New("alone")} {
		if said := cli.ErrorLines(err); len(said) != 1 {
			t.Errorf("%q", said)
		}
	}
}
