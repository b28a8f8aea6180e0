package watch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/internal/test/raced"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/tui/queues"
)

func TestPlotsReplaceNothingWithoutForce(t *testing.T) {
	raced.SkipRaced(t)
	line := result.Series{Name: "olaf", X: []float64{1, 2}, Y: []results.Statistic{{Mean: 1, N: 1}, {Mean: 2, N: 1}}}
	figure := &result.Result{Experiment: "fig7",
		Panels: []result.Panel{{Name: "a", XLabel: "x", YLabel: "y", Series: []result.Series{line}}}}
	var said bytes.Buffer
	env := &cli.Env{Stderr: &said}
	folder := filepath.Join(t.TempDir(), "new")
	if err := RefusePlots(folder, "fig7", false); err != nil {
		t.Errorf("a folder that does not exist: %v", err)
	}
	if err := DrawFigures(env, folder, false, "fig7", figure); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "fig7-1-a.svg") || !strings.Contains(said.String(), "fig7-1-a.pdf") {
		t.Errorf("it says %q", said.String())
	}
	old := filepath.Join(folder, "fig7-1-a.svg")
	if err := os.WriteFile(old, []byte("edited"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"before": RefusePlots(folder, "fig7", false),
		"after": DrawFigures(env, folder, false, "fig7", figure)} {
		if cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s the run: %v", name, err)
		}
	}
	if err := RefusePlots(old, "fig7", false); cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("a file as the folder: %v", err)
	}
	if kept, _ := os.ReadFile(old); string(kept) != "edited" {
		t.Error("a plot was replaced")
	}
	if err := RefusePlots(folder, "fig1", false); err != nil {
		t.Errorf("another experiment's plots: %v", err)
	}
	if err := DrawFigures(env, folder, true, "fig7", figure); err != nil || RefusePlots(folder, "fig7", true) != nil {
		t.Errorf("with --force: %v", err)
	}
	if kept, _ := os.ReadFile(old); string(kept) == "edited" {
		t.Error("--force replaced nothing")
	}
}

// TestFiguresOfADashboard checks that the dashboard draws the figures of a finished experiment as export does, into a
// new folder.
func TestFiguresOfADashboard(t *testing.T) {
	raced.SkipRaced(t)
	t.Chdir(t.TempDir())
	b := new(Background)
	if _, err := b.drawFigures(t.Context()); err == nil {
		t.Error("figures of an experiment that still runs")
	}
	s := bench.DefaultSpec(system.All())
	s.Runs, s.Workload.UpdatesPerWorker = 1, 50
	report, err := bench.MeasureSpec(t.Context(), s, bench.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.report = report
	b.result.Store(&queues.Bench{Finished: true})
	for _, want := range []string{"olafctl-figures", "olafctl-figures-2"} {
		folder, err := b.drawFigures(t.Context())
		if err != nil || folder != want {
			t.Errorf("%s, %v", folder, err)
		}
		for _, name := range []string{"loss.svg", "loss.pdf", "cdf.png"} {
			if _, err := os.Stat(filepath.Join(want, name)); err != nil {
				t.Error(err)
			}
		}
	}
}
