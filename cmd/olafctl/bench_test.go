package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
)

// TestBenchExitCodeFollowsVerdicts checks that a bench returns the same exit code as reproduce when a verdict is worse
// than its claim expects, and that a shortened bench does not.
func TestBenchExitCodeFollowsVerdicts(t *testing.T) {
	const id = "olaf/table1.fifo.40g.received"
	for verdict, want := range map[paper.Verdict]int{paper.Match: cli.ExitDone, paper.TooShort: cli.ExitDone, paper.Differs: cli.ExitMissed} {
		var stderr bytes.Buffer
		env := testEnvironment(io.Discard, &stderr)
		env.Published = experiments.Set{{Name: "olaf/table1", ComparePaper: func(*bench.Spec, *results.Bench) ([]results.PaperRow, []string) {
			return []results.PaperRow{{ID: id, Verdict: string(verdict), Ours: results.Statistic{N: 30}}}, nil
		}}}
		code := run(t.Context(), env, strings.Fields("bench --runs 1 --updates 5 --keep=false -q"))
		if named := strings.Contains(stderr.String(), id); code != want || named != (want == cli.ExitMissed) {
			t.Errorf("%s: exit code %d, want %d: %s", verdict, code, want, &stderr)
		}
	}
}
