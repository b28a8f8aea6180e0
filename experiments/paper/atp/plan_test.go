package atp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/result"
)

// document returns the report's document.
func (r *Report) document(t *testing.T) string {
	t.Helper()
	d, err := json.Marshal(r.Document())
	if err != nil {
		t.Fatal(err)
	}
	return string(d)
}

// TestPlanIsReadAgain checks that a plan gives the same document and the same single runs after a round trip.
func TestPlanIsReadAgain(t *testing.T) {
	p := &Plan{Seeds: []uint64{4, 5}, Systems: system.All(), Grid: &Grid{
		Setting:  Setting{System: "atp", Model: vgg(t), Jobs: 2, Workers: 2, Fraction: 0.0005, Updates: 1},
		Sharings: []string{system.Static, system.Dynamic}, Amounts: []string{"0.5pta"}, Losses: []float64{0, 0.001},
	}}
	said := func(p *Plan) string {
		r, err := p.Run(context.Background(), nil)
		if err != nil || len(r.Configurations()) != 4 {
			t.Fatalf("%+v: %v", r, err)
		}
		return r.document(t)
	}
	document := said(p)
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	back := &Plan{Systems: p.Systems}
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	if d := said(back); d != document {
		t.Errorf("read back it gives\n%s, not\n%s", d, document)
	}
	read, err := result.Read([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	found := read.Runs()
	if err != nil || len(found) != p.Runs() {
		t.Fatalf("%d runs of %d: %v", len(found), p.Runs(), err)
	}
	for i, want := range []string{"static, 0.5pta (202), 0 % lost", "dynamic, 0.5pta (202), 0 % lost", "static, 0.5pta (202), 0.1 % lost", "dynamic, 0.5pta (202), 0.1 % lost"} {
		if a, b := found[2*i], found[2*i+1]; a.Queue != want || b.Queue != want || a.Seed != 4 || b.Seed != 5 {
			t.Errorf("%s, %d and %s, %d; want %s", a.Queue, a.Seed, b.Queue, b.Seed, want)
		}
	}
}

// TestInterruptedPlanReturnsFinishedPart checks that an interrupted plan returns its finished part with a plan for it:
// the cells with all seeds, and the first one's finished seeds. If nothing was finished, there is no report.
func TestInterruptedPlanReturnsFinishedPart(t *testing.T) {
	for runs, want := range map[int]struct{ cells, least, most int }{0: {}, 2: {1, 2, 3}, 4: {1, 4, 4}, 14: {3, 4, 4}} {
		p := &Plan{Seeds: []uint64{4, 5, 6, 7}, Systems: system.All(), Grid: &Grid{
			Setting:  Setting{System: "atp", Model: vgg(t), Jobs: 2, Workers: 2, Fraction: 0.0005, Updates: 1},
			Sharings: []string{system.Static, system.Dynamic}, Amounts: []string{"0.5pta", "1pta"}, Losses: []float64{0},
		}}
		ctx, leave := context.WithCancel(t.Context())
		if runs == 0 {
			leave()
		}
		var done atomic.Int64
		r, err := p.Run(ctx, func() {
			if int(done.Add(1)) == runs {
				leave()
			}
		})
		leave()
		switch {
		case !errors.Is(err, context.Canceled):
			t.Errorf("left after %d: %v", runs, err)
		case want.cells == 0 && r == nil:
			continue
		case r == nil || len(r.Configurations()) != want.cells || len(r.plan.Seeds) < want.least || len(r.plan.Seeds) > want.most:
			t.Errorf("left after %d: %+v", runs, r)
			continue
		}
		document := r.document(t)
		if !strings.Contains(document, `"partial":true`) || !strings.Contains(document, "of 16 runs") {
			t.Errorf("left after %d: %s", runs, document)
		}
		raw, err := json.Marshal(r.ReplayPlan())
		back := &Plan{Systems: p.Systems}
		if err = errors.Join(err, json.Unmarshal(raw, back)); err != nil {
			t.Fatal(err)
		}
		again, err := back.Run(t.Context(), nil)
		if err != nil || back.Runs() != want.cells*len(r.plan.Seeds) {
			t.Fatalf("left after %d: %d runs, %v", runs, back.Runs(), err)
		}
		if d := again.document(t); d != document {
			t.Errorf("left after %d:\n%s\nand again\n%s", runs, document, d)
		}
	}
}
