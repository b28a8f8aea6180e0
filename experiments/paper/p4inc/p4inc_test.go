package p4inc

import (
	"context"
	"errors"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/results/paper"
)

// TestClaimsAreReached checks that experiments reach every claimed number, and no others. One seed gives a verdict only
// for numbers without randomness; docs/notes/reproduction.md is from a run with all seeds.
func TestClaimsAreReached(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	absent := func(string) (policy.Solver, error) { return nil, policy.ErrAbsent }
	verdicts := map[string]paper.Verdict{}
	for _, e := range with(absent) {
		report, err := e.Run(context.Background(), experiments.Options{Runs: 1})
		if err != nil || report.Err() != nil {
			t.Fatal(e.Name, err, report.Err())
		}
		for _, missed := range paper.FindMisses(report.Paper()) {
			t.Errorf("%s is %s, expected %s", missed.ID, missed.Verdict, missed.Expected)
		}
		for _, row := range report.Paper() {
			verdicts[row.ID] = paper.Verdict(row.Verdict)
			if !row.Ours.Known() && row.Basis == string(paper.Predicted) && !isMILP(row.Column) {
				t.Errorf("%s has no value: %s", row.ID, row.Note)
			}
		}
	}
	for _, c := range paper.ListClaims() {
		if paper.SystemOf(c.ID) != "p4inc" {
			continue
		}
		want := paper.TooShort
		switch {
		case c.Contradiction != "":
			want = paper.Contradiction
		case c.Untestable != "" || c.Basis == paper.Arithmetic:
			want = c.Expect
		case isMILP(c.Column):
			want = paper.LeftOut
		}
		if verdicts[c.ID] != want {
			t.Errorf("%s is %q, want %q", c.ID, verdicts[c.ID], want)
		}
	}
}

func isMILP(column string) bool { return len(column) > 4 && column[:4] == "milp" }

// TestCancelledRunStops checks that a cancelled run stops.
func TestCancelledRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, e := range Experiments() {
		if e.Name == "p4inc/fig5" {
			continue // milliseconds
		}
		if _, err := e.Run(ctx, experiments.Options{Runs: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
}
