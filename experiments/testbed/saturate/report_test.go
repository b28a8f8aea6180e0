package saturate

import (
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// TestReportAddsUpRuns checks that a report's counts are the sums over all its runs, including earlier and invalid
// ones: a wrong value in the first run still counts if the last run has none.
func TestReportAddsUpRuns(t *testing.T) {
	plan := &lab.Plan{Lanes: 4, Fragments: 2, Nodes: []lab.PlannedNode{{Role: lab.Aggregator}}, Adders: []lab.PlannedAdder{{}}}
	r := &Report{System: "xagg", Plan: plan, Config: Config{Vectors: 5}, Requested: 3, Runs: []*Run{
		{TookNS: 1, Sums: 10, Checked: 40, Wrong: 3, Invalid: []string{"3 of 40 values of sums are wrong"}},
		{TookNS: 1, Sums: 10, Checked: 40, Wrong: 2, Invalid: []string{"2 of 40 values of sums are wrong"}},
		{TookNS: 1, Sums: 10, Checked: 40},
	}}
	w := r.Result(results.Provenance{}).Rows[0]
	if n := w.Totals; n["values_wrong"] != 5 || n["sums"] != 30 || n["values_checked"] != 120 || w.Invalid != 2 || w.Runs != 1 {
		t.Errorf("three runs with 3, 2 and 0 wrong of 40 values each have 5 wrong of 120 in 30 sums, and 1 valid run; the report has %v, and %d", n, w.Runs)
	}
}

// TestReportCountsWhatWasAsked checks that a report counts valid runs relative to the requested ones, also if it was
// stopped early.
func TestReportCountsWhatWasAsked(t *testing.T) {
	plan := &lab.Plan{Lanes: 4, Fragments: 2, Nodes: []lab.PlannedNode{{Role: lab.Aggregator}}, Adders: []lab.PlannedAdder{{}}}
	done := func(invalid ...string) *Run { return &Run{TookNS: 1, Invalid: invalid} }
	for want, c := range map[string]struct {
		runs    []*Run
		partial bool
	}{
		"valid: 3 of 3 runs":   {[]*Run{done(), done(), done()}, false},
		"PARTIAL: 1 of 3 runs": {[]*Run{done()}, true},
		"INVALID: 2 of 3 runs": {[]*Run{done(), done("a sum is wrong"), done()}, false},
		"INVALID: 1 of 3 runs": {[]*Run{done(), done("a sum is wrong")}, true},
	} {
		r := (&Report{System: "xagg", Plan: plan, Config: Config{Vectors: 5}, Requested: 3, Runs: c.runs}).Result(results.Provenance{})
		var b strings.Builder
		if err := r.WriteText(&b, text.View{}); err != nil || !strings.Contains(b.String(), "\n"+want+", 5 vectors") {
			t.Errorf("want %s: %v\n%s", want, err, &b)
		}
		if r.Partial != c.partial {
			t.Errorf("%s: partial is %v in the document", want, r.Partial)
		}
		if err := r.Err(); errors.Is(err, ErrInvalid) != !strings.HasPrefix(want, "valid") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
