package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/report"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/text"
)

// TestRunsOfAnOlderBuildVerify checks that stored runs stay valid. testdata/kept is a store written by olafctl when
// metrics had no rows: a bench with an exported report, and a simulation.
func TestRunsOfAnOlderBuildVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "kept"))); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for id, want := range map[string]archive.Proof{
		"20261122-043657-bench": {Files: 6, Observations: 10668, Runs: 2, Rows: 2, Comparisons: 1, Paper: 6, Anew: 6, Dropped: 2,
			Raw: true},
		"20261122-043657-simulate": {Files: 9, Observations: 723, Runs: 1, Rows: 1, Raw: true},
	} {
		f, err := s.Load(id)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := archive.Verify(f, system.All().FindDeclaration)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		got := *proof
		got.New = nil // fields that were added later
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %s, want %s", id, a, b)
		}
		if runs, err := RepeatStored(t.Context(), system.All(), f, NewStream()); err != nil || runs != want.Runs {
			t.Errorf("%s: %d runs repeated: %v", id, runs, err)
		}
		others := strings.Count(id, "bench") // a bench has one report, from a build without a version
		if made, not, err := archive.VerifyExports(s, f, "(devel)", system.All().FindDeclaration, nil); err != nil || made != 0 ||
			not != others {
			t.Errorf("%s: %d exports made again, %d of another build: %v", id, made, not, err)
		}
	}
}

// TestRunsOfAnOlderBuildAreJudgedAnew checks that an export of a run with older verdicts uses today's words, with a
// note.
func TestRunsOfAnOlderBuildAreJudgedAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "kept"))); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for id, want := range map[string]int{"20261122-043657-bench": 6, "20261122-043657-simulate": 0} {
		f, err := s.Load(id)
		if err != nil {
			t.Fatal(err)
		}
		r, err := archive.Load(f, system.All().FindDeclaration)
		if err != nil {
			t.Fatal(err)
		}
		if r.Bench.Schema != results.BenchSchema || len(r.Bench.Paper) != want {
			t.Errorf("%s: %s with %d lines beside the paper", id, r.Bench.Schema, len(r.Bench.Paper))
		}
		for _, row := range r.Bench.Paper {
			known := row.Verdict == string(paper.TooShort) && strings.HasPrefix(row.Note, "1 of 30 runs; ") ||
				row.Verdict == string(paper.Contradiction)
			if !known || row.Basis != string(paper.Calibrated) || !strings.HasPrefix(row.ID, "olaf/") {
				t.Errorf("%s: %s, %s, %q", row.ID, row.Basis, row.Verdict, row.Note)
			}
		}
		if said := slices.ContainsFunc(r.Bench.Statements,
			func(s string) bool { return strings.Contains(s, "judged again") }); said != (want > 0) {
			t.Errorf("%s: said that it is judged again: %v", id, said)
		}
	}
}

// longest returns a metric that the Collector measures and no statistic uses: once declared, it is shown everywhere.
func longest() *metric.Declaration {
	d := *system.QueueDeclaration()
	d.Metrics = slices.Clone(d.Metrics)
	at := slices.IndexFunc(d.Metrics, func(m *metric.Metric) bool { return m.Name == "queue_delay_ns" })
	d.Metrics = slices.Insert(d.Metrics, at, &metric.Metric{Name: "longest_wait_ns", Title: "Longest wait", Unit: "ns",
		Column: "LONGEST",
		Doc:    "the longest queue delay", Of: func(m *metric.Measured) results.Float { return m.DelayMax }})
	return &d
}

// TestAMetricIsOneRow checks that a new metric appears wherever metrics are shown, and that a run stored without it
// verifies.
func TestAMetricIsOneRow(t *testing.T) {
	m, err := MeasureSpec(t.Context(), smallSpecOf(t), Options{Declared: longest()})
	if err != nil {
		t.Fatal(err)
	}
	if s := m.Bench.Rows[0].Stats.Of("longest_wait_ns"); !s.Known() || s.Mean < m.Bench.Rows[0].Stats.Of("queue_delay_ns").Mean {
		t.Errorf("%+v", s)
	}
	document, err := json.Marshal(m.Document())
	if err != nil {
		t.Fatal(err)
	}
	var table, all, page bytes.Buffer
	if err := m.WriteText(&table, text.View{}); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteText(&all, text.View{Explain: true}); err != nil {
		t.Fatal(err)
	}
	if err := report.Write(&page, m.Result()); err != nil {
		t.Fatal(err)
	}
	header, _ := m.Table()
	shown := map[string]string{"JSON": string(document), "the first table": table.String(), "all statistics": all.String(),
		"report": page.String(), "CSV": strings.Join(header, ",")}
	for _, s := range sheets.Book(m.Result()).Sheets {
		var b bytes.Buffer
		if err := s.WriteCSV(&b); err != nil {
			t.Fatal(err)
		}
		shown[s.Name] = b.String()
	}
	for where, what := range map[string]string{"JSON": `"longest_wait_ns":{"mean":`, "the first table": "LONGEST",
		"all statistics": "longest_wait_ns", "report": "Longest wait",
		"CSV": "longest_wait_ns,longest_wait_ns_ci95", "Statistics": "Longest wait,longest_wait_ns,ns", "Runs": "Longest wait [ns]"} {
		if !strings.Contains(shown[where], what) {
			t.Errorf("%s does not show it:\n%s", where, shown[where])
		}
	}

	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for name, declared := range map[string][2]*metric.Declaration{"kept without it": {nil, longest()},
		"kept with it": {longest(), system.QueueDeclaration()}} {
		k := NewKeeper(st, time.Unix(1_700_000_000, 0))
		m, err := MeasureSpec(t.Context(), smallSpecOf(t), Options{Declared: declared[0], Stream: NewStream(k)})
		if err != nil {
			t.Fatal(err)
		}
		id, err := k.Finish(m)
		if err != nil {
			t.Fatal(err)
		}
		f, err := st.Load(id)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := archive.Verify(f, func(string) *metric.Declaration { return declared[1] })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if told := proof.New; declared[0] == nil && !slices.Equal(told, []string{"longest_wait_ns"}) {
			t.Errorf("%s: new are %q", name, told)
		}
		if told := proof.Unknown; declared[0] != nil && !slices.Equal(told, []string{"longest_wait_ns"}) {
			t.Errorf("%s: unknown are %q", name, told)
		}
	}
}
