package olaf

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// TestFig7HasThePapersShape checks that Olaf gains more the narrower the output is, and the fewer clusters are active.
func TestFig7HasThePapersShape(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	report, err := fig7.Run(context.Background(), experiments.Options{Quick: true, Runs: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := report.(*result.Result)
	for _, s := range f.Panels[0].Series[:3] {
		if narrow, wide := s.Y[0].Mean, s.Y[len(s.Y)-1].Mean; narrow <= wide || narrow < 1 {
			t.Errorf("%s: speed-up %.2f at 5 Gbps, %.2f at 50 Gbps", s.Name, narrow, wide)
		}
	}
	if all, nine := f.Panels[0].Series[0].Y[0].Mean, f.Panels[0].Series[2].Y[0].Mean; nine <= all {
		t.Errorf("speed-up %.2f with 9 active clusters, %.2f with all", nine, all)
	}
	if header, rows := f.Table(); len(rows) == 0 || len(rows[0]) != len(header) {
		t.Errorf("the table has %d rows for %d columns", len(rows), len(header))
	}
	var page strings.Builder
	if err := f.WriteText(&page, text.View{}); err != nil || !strings.Contains(page.String(), "closed loop") {
		t.Errorf("text %q, %v", page.String(), err)
	}
}

func TestFig7IsDeterministic(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	var first string
	for i := range 2 {
		report, err := fig7.Run(context.Background(), experiments.Options{Quick: true, Runs: 1, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := json.Marshal(report.Document())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = string(doc)
		} else if string(doc) != first {
			t.Error("the same seed gave two documents")
		}
	}
}

func TestInterruptedFigureIsPartial(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	report, err := fig7.Run(ctx, experiments.Options{Quick: true})
	if !errors.Is(err, context.Canceled) || report == nil || !report.(*result.Result).Partial {
		t.Errorf("report %v, error %v", report, err)
	}
}
