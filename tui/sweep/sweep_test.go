package sweep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/theme"
	"github.com/olafctl/olaf/tui/tuitest"
)

// running is a sweep of 40 cells that stores two results per second, fails one cell, and ends after 20 s.
type running struct {
	done   int
	report *tui.Report
}

func (r *running) progress() sweep.Progress {
	p := sweep.Progress{Cells: 40, Done: r.done, Lots: 40, LotsDone: r.done, Found: 4, Working: map[string]string{}}
	if r.done > 10 {
		p.Failed, p.Failures = 1, []sweep.Failure{{Cell: "slots=13 out-rate=5Gbps", Error: "13 brings bad luck"}}
		p.Done--
	}
	if r.done < 40 {
		p.Working["lab-1 process 1"], p.Working["lab-2 process 1"] = "slots=8 out-rate=20Gbps", "slots=64 out-rate=5Gbps"
	}
	return p
}

// watch opens a dashboard of a given size and watches for some seconds.
func (r *running) watch(width, height, seconds int) (*tui.Frame, *tuitest.Clock) {
	clock := &tuitest.Clock{Now: time.Unix(0, 0)}
	f := tui.New(New(Options{ID: "20260102-030405-sweep-bench", What: "8 × slots, 5 × out-rate of bench",
		Progress: r.progress, Report: func() *tui.Report { return r.report }}),
		tui.Options{Tick: clock.Tick, Theme: theme.New(theme.Options{})})
	tuitest.SendMessage(f, tea.WindowSizeMsg{Width: width, Height: height})
	for range seconds {
		r.done = min(r.done+2, 40)
		clock.Advance(f, time.Second)
	}
	return f, clock
}

// TestPages checks the content of every page in every supported size.
func TestPages(t *testing.T) {
	for _, size := range [][2]int{{60, 16}, {80, 24}, {120, 40}} {
		r := new(running)
		f, clock := r.watch(size[0], size[1], 8)
		for _, page := range []struct{ key, name, want string }{
			{"1", "progress", "2 results/s"}, {"2", "workers", "lab-2 process 1"},
			{"3", "failures", "13 brings bad luck"}, {"4", "results", "once all cells are done"},
		} {
			tuitest.PressKeys(f, page.key)
			clock.Advance(f, tui.FrameInterval)
			if text := f.Text(); !strings.Contains(text, page.want) || size[0] >= 80 && !strings.Contains(text, "15/40 cells") {
				t.Errorf("%v, %s: no %q in\n%s", size, page.name, page.want, text)
			}
			if size[0] == 80 {
				golden.Equal(t, fmt.Sprintf("TestPages/%s-80x24.golden", page.name), []byte(f.Text()))
			}
		}
	}
}

// TestViewOfAFinishedSweep checks that the end, the remaining steps and the report are shown.
func TestViewOfAFinishedSweep(t *testing.T) {
	r := new(running)
	f, clock := r.watch(100, 30, 10)
	if text := f.Text(); !strings.Contains(text, "0:10 left") {
		t.Errorf("the time left is not told in\n%s", text)
	}
	for range 10 {
		r.done += 2
		clock.Advance(f, time.Second)
	}
	r.report = tui.NewReport(func(int) []string { return []string{"digest 0123"} })
	clock.Advance(f, time.Second)
	tuitest.PressKeys(f, "4")
	clock.Advance(f, tui.FrameInterval)
	if text := f.Text(); !strings.Contains(text, "DONE") || !strings.Contains(text, "digest 0123") {
		t.Errorf("the end is not told in\n%s", text)
	}
}

// TestHistoryIsBounded checks that a history of hours stays bounded and in order.
func TestHistoryIsBounded(t *testing.T) {
	r := new(running)
	s := &session{options: Options{Progress: r.progress}, every: firstEvery}
	for i := range 20_000 {
		s.Look(time.Unix(int64(i), 0))
	}
	if n := len(s.history); n < mostSamples/4 || n > mostSamples {
		t.Errorf("%d samples", n)
	}
	for i := 1; i < len(s.history); i++ {
		if !s.history[i].at.After(s.history[i-1].at) {
			t.Fatal("out of order")
		}
	}
}
