package job

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// TestMissingNumbersSayWhy checks that a missing number has its own reason, and only for hung runs that they hung.
func TestMissingNumbersSayWhy(t *testing.T) {
	async := func(s *Spec) { s.Mode = &s.System.Modes[1] }
	one := func(s *Spec) { s.Job.Updates = 1 }
	const noTable = "no switch has a table"
	for _, c := range []struct {
		system string
		change func(*Spec)
		want   map[string]string // by the missing number's name
	}{
		{"iswitch", async, map[string]string{"aggregation_ns": "no worker waits for the sum of all",
			"summed_ns": "no sum of all is made at a root or a server", "served": "there is no server"}},
		{"ring", func(*Spec) {}, map[string]string{"summed_ns": "no sum of all is made at a root or a server",
			"served":     "there is no server",
			"slots_held": noTable, "slots_held_peak": noTable, "held_bytes": noTable, "memory_bytes": noTable}},
		{"iswitch", one, map[string]string{"iteration_ns": "the time between updates takes two of a host",
			"gradient_ns": "the time between updates takes two of a host", "served": "there is no server",
			"aom_newest_ns": "an age takes two updates of a worker", "aom_mean_ns": "an age takes two updates of a worker",
			"aom_oldest_ns": "an age takes two updates of a worker"}},
	} {
		s := jobOf(t, c.system, system.Options{}, 0, 0)
		c.change(s)
		o, err := Run(context.Background(), s, []uint64{1, 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range closedloop.ListRows() {
			if got := o.Numbers[i].Reason; got != c.want[row.Name] || o.Numbers[i].Known() != (got == "") {
				t.Errorf("%s: %s is %v because %q, want %q", s.Name(), row.Name, o.Numbers[i].Mean, got, c.want[row.Name])
			}
		}
	}
	hung := jobOf(t, "iswitch", system.Options{}, 0, 0)
	hung.Job.Limit = olaf.Microsecond
	o, err := Run(context.Background(), hung, []uint64{1}, nil)
	if err != nil || o.Hung != 1 || o.Number("served").Reason != "no run finished" ||
		o.Number("iteration_ns").Reason != "no run finished" {
		t.Errorf("%v, hung %d: %+v", err, o.Hung, o.Numbers)
	}
}

// TestGoodputIsShownWithCeiling checks that goodput is always shown with its ceiling: 366 values of 4 bytes in a frame
// of 1,514 plus 24 are 95.2 % of a link.
func TestGoodputIsShownWithCeiling(t *testing.T) {
	s := jobOf(t, "iswitch", system.Options{}, 0, 0)
	s.Job.Compute = 0
	p := &Plan{Title: "one", Seeds: []uint64{1}, Jobs: []*Spec{s}}
	r, err := p.Run(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(r.Document())
	if err != nil {
		t.Fatal(err)
	}
	most, goodput := r.Outcomes[0].Ceiling, r.Outcomes[0].Number("goodput_bps")
	if most != 9518855656 || !(goodput.Mean > 0 && float64(goodput.Mean) < float64(most)) {
		t.Errorf("a goodput of %v below a ceiling of %d", goodput.Mean, most)
	}
	_, rows := r.Table()
	at := slices.IndexFunc(rows, func(row []string) bool { return row[2] == "goodput_bps" })
	if next := rows[at+1]; next[2] != "ceiling_bps" || next[4] != "9.518855656e+09" || next[5] != "" {
		t.Errorf("beside goodput stands %v", next)
	}
	all, err := result.Sheets(document)
	if err != nil || all[0].Rows[at+1][0].Text != "ceiling_bps" {
		t.Errorf("%v: the workbook has %v beside goodput", err, all[0].Rows[at+1])
	}
}

// TestTableIsOfOneRun checks that every line of the table describes one run: two equal runs give the same as one, and
// different ones their mean. Hung runs count only if all did.
func TestTableIsOfOneRun(t *testing.T) {
	counted := func(seeds ...uint64) (*Report, string) {
		t.Helper()
		p := &Plan{Title: "one", Seeds: seeds, Jobs: []*Spec{jobOf(t, "switchml", system.Options{}, 0, 0.02)}}
		r, err := p.Run(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r, printed(t, r)
	}
	r, one := counted(1)
	of := func(r *Report, i int) int64 { return r.Outcomes[0].Runs[i].Endpoints.Of("packets_resent") }
	if _, twice := counted(1, 1); line(twice, "Packets sent") != line(one, "Packets sent") ||
		line(twice, "Frames lost") != line(one, "Frames lost") ||
		!strings.Contains(twice, "MEAN OF A RUN") || strings.Contains(one, "MEAN") || of(r, 0) == 0 {
		t.Errorf("one run:\n%s\nand twice:\n%s", one, twice)
	}
	r, both := counted(1, 2)
	n := r.Outcomes[0].countOf(func(run *closedloop.Result) *olaf.Counts { return &run.Endpoints }, "packets_resent")
	if a, b := of(r, 0), of(r, 1); a == b || float64(n.Mean) != float64(a+b)/2 || line(both, "Packets resent") != result.Cell("", &n) {
		t.Errorf("%d and %d were sent again, %v in the mean, which the table says as %q", a, b, n.Mean, line(both, "Packets resent"))
	}
	r.Outcomes[0].Runs[1].Hung, r.Outcomes[0].Hung = true, 1
	r = r.Plan.report(r.Outcomes)
	if got := line(printed(t, r), "Packets resent"); got != fmt.Sprint(of(r, 0)) {
		t.Errorf("beside a run that hung %d were sent again, which the table says as %q", of(r, 0), got)
	}
}

func printed(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b, text.View{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// line returns a line of the table by its title.
func line(table, title string) string {
	for one := range strings.Lines(table) {
		if rest, found := strings.CutPrefix(one, title+"  "); found {
			return strings.TrimSpace(rest)
		}
	}
	return "nothing"
}
