package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/text"
)

// TestJobRejectsFlagsOfOtherNetworks checks that every flag of other networks either applies to jobs or is rejected
// with a reason.
func TestJobRejectsFlagsOfOtherNetworks(t *testing.T) {
	means := slices.Concat([]string{"preset", "system", "queue", "seed", "loss"}, cli.WaitNames)
	network := &cobra.Command{Use: "network"}
	new(topologyFlags).add(network)
	presets := jobPresets()
	presets = append(presets, *sharedCluster())
	network.Flags().VisitAll(func(f *pflag.Flag) {
		for i := range presets {
			err := presets[i].refuseFlag(f.Name)
			if slices.Contains(means, f.Name) {
				if err != nil && presets[i].name != sharedPreset {
					t.Error(err)
				}
				continue
			}
			if refused := new(cli.Exit); !errors.As(err, &refused) || refused.Kind != olaf.Usage || strings.HasSuffix(err.Error(), ": ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("--preset %s --%s: %v", presets[i].name, f.Name, err)
			}
		}
	})
}

// TestWatchedJob checks a job on the dashboard when the user leaves after all runs, or before the first is complete.
func TestWatchedJob(t *testing.T) {
	for name, c := range map[string]struct {
		line []string
		stay bool
	}{
		"a job":                {[]string{"--preset", "isw-lab", "--model", "ppo", "--updates", "2", "--versus", "ps", "--runs", "2"}, true},
		"jobs that share":      {[]string{"--preset", "atp-lab", "--fraction", "0.0005"}, true},
		"servers of a tree":    {[]string{"--preset", "isw-lab", "--system", "xagg", "--model", "ppo", "--updates", "2"}, true},
		"before a run is done": {[]string{"--preset", "isw-lab", "--model", "ppo"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			person, page := &person{types: make(chan string, 1)}, new(page)
			t.Cleanup(func() { close(person.types) })
			env := &cli.Env{Stdin: person, Stdout: page, Stderr: io.Discard, Terminal: true, Getenv: func(string) string { return "xterm" }, Now: time.Now,
				Hostname: func() (string, error) { return "here", nil }, Systems: system.All()}
			f, work := jobAsked(t, env, c.line)
			f.tui, f.view = true, cli.ViewFlags{Speed: "max", Ground: "dark", Paused: !c.stay}
			alone, err := work.play(t.Context(), func() {})
			if err != nil {
				t.Fatal(err)
			}
			play := work.play
			work.play = func(ctx context.Context, done func()) (jobReport, error) {
				if !c.stay {
					person.types <- "qy"
					<-ctx.Done()
					return nil, ctx.Err()
				}
				defer func() { person.types <- "qy" }()
				return play(ctx, done)
			}
			watched, err := f.playOrWatch(t.Context(), env, work)
			if gone := new(cli.Exit); !c.stay {
				if !errors.As(err, &gone) || gone.Kind != olaf.Interrupted {
					t.Errorf("left early: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a, b := printed(t, watched), printed(t, alone); a != b {
				t.Errorf("watched:\n%s\nalone:\n%s", a, b)
			}
			if taken, given := strings.Count(page.String(), "\x1b[?1049h"), strings.Count(page.String(), "\x1b[?1049l"); taken != 1 || given != 1 {
				t.Errorf("the terminal was taken %d times and given back %d times", taken, given)
			}
		})
	}
}

// TestInterruptedJobsPrintCompleteRuns checks that after an interruption the complete runs are printed, and that
// nothing is printed if there are none.
func TestInterruptedJobsPrintCompleteRuns(t *testing.T) {
	for name, line := range map[string][]string{
		"a job":           {"--preset", "isw-lab", "--model", "ppo", "--updates", "2", "--versus", "ps"},
		"jobs that share": {"--preset", "atp-lab", "--fraction", "0.0005"},
	} {
		env := &cli.Env{Getenv: func(string) string { return "" }, Now: time.Now, Hostname: func() (string, error) { return "here", nil }, Systems: system.All()}
		_, work := jobAsked(t, env, line)
		ctx, leave := context.WithCancel(t.Context())
		report, err := work.play(ctx, leave)
		leave()
		if !errors.Is(err, context.Canceled) || report == nil || !strings.Contains(printed(t, report), fmt.Sprintf("partial: it was stopped early, and this is 1 of %d runs", work.runs())) {
			t.Errorf("%s, left after a run: %v, %v", name, report, err)
		}
		if report, err = work.play(ctx, leave); report != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%s, left before a run: %v, %v", name, report, err)
		}
	}
}

func printed(t *testing.T, r jobReport) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b, text.View{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// jobAsked returns the jobs for a command line.
func jobAsked(t *testing.T, env *cli.Env, line []string) (*simulateFlags, *jobWork) {
	t.Helper()
	f, cmd := new(simulateFlags), &cobra.Command{}
	f.waits.set, f.job.waitFlags = env.Systems, &f.waits
	f.topologyFlags.add(cmd)
	f.job.add(cmd)
	f.sharing.add(cmd)
	f.addRuns(cmd)
	if err := cmd.ParseFlags(line); err != nil {
		t.Fatal(err)
	}
	plan := f.sharedWork
	if f.job.preset = findJobPreset(f.preset); f.job.preset != nil {
		plan = f.jobPlan
	}
	work, err := plan(cmd, env)
	if err != nil {
		t.Fatal(err)
	}
	return f, work
}
