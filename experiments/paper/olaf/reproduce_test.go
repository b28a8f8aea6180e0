package olaf

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/text"
)

// claimed is a report with only published numbers.
type claimed struct {
	rows []results.PaperRow
	err  error
}

func (c claimed) Document() any                        { return c.rows }
func (c claimed) WriteText(io.Writer, text.View) error { return nil }
func (c claimed) Table() ([]string, [][]string)        { return nil, nil }
func (c claimed) Paper() []results.PaperRow            { return c.rows }
func (c claimed) Err() error                           { return c.err }
func claims(o paper.Ours, artefact string) claimed     { return claimed{rows: paper.Compare(o, artefact)} }

// reproduced reproduces the chosen experiments with the claims in the table, using the given reports in place of runs.
func reproduced(t *testing.T, chosen experiments.Set, reports map[string]claimed) (*experiments.Reproduction, string, error) {
	t.Helper()
	r, err := Experiments(system.All()).Reproduce(t.Context(), chosen, func(_ context.Context, e experiments.Experiment) (experiments.Judged, error) {
		if c, ok := reports[e.Name]; ok {
			return c, c.err
		}
		return claims(nil, e.Name), nil
	})
	var page strings.Builder
	if err := r.WriteText(&page, text.View{Width: 1000}); err != nil {
		t.Fatal(err)
	}
	return r, page.String(), err
}

func TestEveryClaimHasAVerdict(t *testing.T) {
	for name, chosen := range map[string]experiments.Set{"all": Experiments(system.All()), "short": Experiments(system.All()).ShortOnes()} {
		r, text, err := reproduced(t, chosen, nil)
		if err != nil || r.Err() != nil {
			t.Errorf("%s: %v, %v", name, err, r.Err())
		}
		seen := map[string]bool{}
		for _, row := range r.Paper {
			if seen[row.ID] || row.Verdict == "" || row.Note == "" {
				t.Errorf("%s: %s twice, or without verdict or reason: %q %q", name, row.ID, row.Verdict, row.Note)
			}
			seen[row.ID] = true
		}
		if len(seen) != len(paper.ListClaims()) {
			t.Errorf("%s: %d of %d claims", name, len(seen), len(paper.ListClaims()))
		}
		for _, want := range []string{"Worse than recorded: nothing\n", "arithmetic  1 match, 2 contradiction (no model of ours is in them: no results)\n", "Papers that contradict themselves: 4 ("} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %q", name, want, text)
			}
		}
		if left := strings.Contains(text, "olafctl reproduce olaf/fig2"); left != (name == "short") {
			t.Errorf("%s: told that fig2 was left out: %v", name, left)
		}
	}
}

func TestMissedClaimsAndInterrupts(t *testing.T) {
	fig6, err := Experiments(system.All()).Find("fig6")
	if err != nil {
		t.Fatal(err)
	}
	backwards := paper.Of(results.Describe(slices.Repeat([]results.Float{-2, -3}, 15), ""))
	missing := claims(paper.Ours{"olaf/fig6.aggregations.20g_right_of_40g": backwards}, "olaf/fig6")
	r, text, err := reproduced(t, experiments.Set{fig6}, map[string]claimed{"olaf/fig6": missing})
	if err != nil || !errors.Is(r.Err(), experiments.ErrMissed) || len(r.Paper) != 2 || !strings.Contains(text, "Worse than recorded: 1: olaf/fig6.aggregations.20g_right_of_40g") {
		t.Errorf("%v, %v, %d rows, %q", err, r.Err(), len(r.Paper), text)
	}
	table1, err := Experiments(system.All()).Find("table1")
	if err != nil {
		t.Fatal(err)
	}
	r, _, err = reproduced(t, experiments.Set{table1, fig6}, map[string]claimed{"olaf/fig6": {err: context.Canceled}})
	if !errors.Is(err, context.Canceled) || len(r.Experiments) != 1 {
		t.Errorf("stopped in fig6: %v, %v", r.Experiments, err)
	}
}
