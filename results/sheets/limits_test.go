package sheets

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/table"
)

// TestSheetsByName checks that a sheet is found at every position.
func TestSheetsByName(t *testing.T) {
	b := &table.Book{Sheets: []table.Sheet{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	for i, name := range []string{"a", "b", "c"} {
		if got := sheetNamed(b, name); got != &b.Sheets[i] {
			t.Errorf("%s is %+v", name, got)
		}
	}
	if got := sheetNamed(b, "d"); got != nil {
		t.Errorf("d is %+v", got)
	}
}

// statisticRow returns a row with a statistic at its end: mean, deviation, half-width, minimum, maximum, number.
func statisticRow(name string, mean, half, n float64) []table.Cell {
	return []table.Cell{table.S(name), table.N(mean), table.N(1), table.N(half), table.N(0), table.N(9), table.N(n)}
}

// TestSummaryReferences checks that a summary takes its numbers from the first row with the same mean, half-width and
// count, in the first sheet that has one.
func TestSummaryReferences(t *testing.T) {
	columns := make([]table.Column, 1+statisticWidth)
	one := &table.Sheet{Name: "One", Columns: columns, Rows: [][]table.Cell{
		statisticRow("a", 5, 0.5, 3), statisticRow("b", 6, 0.5, 3), statisticRow("c", 6, 0.5, 3), statisticRow("d", 6, 0.25, 3), statisticRow("e", 6, 0.25, 4),
	}}
	two := &table.Sheet{Name: "Two", Columns: columns, Rows: [][]table.Cell{statisticRow("f", 5, 0.5, 3), statisticRow("g", 7, 0.5, 3)}}
	header := func(names ...string) (c []table.Column) {
		for _, n := range names {
			c = append(c, table.Column{Header: n})
		}
		return c
	}
	for _, c := range []struct {
		ours, half, runs float64
		want             string
	}{
		{5, 0.5, 3, "One 2"}, {6, 0.5, 3, "One 3"}, {6, 0.25, 3, "One 5"}, {6, 0.25, 4, "One 6"}, {7, 0.5, 3, "Two 3"}, {5, 0.5, 4, ""}, {5, 0.25, 3, ""}, {8, 0.5, 3, ""},
	} {
		for _, sources := range [][]*table.Sheet{{one, two}, {nil, one, nil, two}} {
			s := &table.Sheet{Columns: header("ours", "95 % ±", "runs", "paper", "difference"),
				Rows: [][]table.Cell{{table.N(c.ours), table.N(c.half), table.N(c.runs), table.N(4), table.N(100 * (c.ours/4 - 1))}}}
			referTo(s, sources...)
			want := []string{"", "", "", "", "100*(A2/D2-1)"}
			if sheet, row, some := strings.Cut(c.want, " "); some {
				want[0], want[1], want[2] = fmt.Sprintf("%s!B%s", sheet, row), fmt.Sprintf("%s!D%s", sheet, row), fmt.Sprintf("%s!G%s", sheet, row)
			}
			var got []string
			for _, v := range s.Rows[0] {
				got = append(got, v.Formula)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v: %q, want %q", c, got, want)
			}
		}
	}
}

// TestSummaryRefersToStatistics checks that a summary prefers the statistics among two sheets with the same numbers.
func TestSummaryRefersToStatistics(t *testing.T) {
	columns := make([]table.Column, 1+statisticWidth)
	rows := [][]table.Cell{statisticRow("a", 5, 0.5, 3)}
	for _, order := range [][]string{{"Statistics", "Comparisons"}, {"Comparisons", "Statistics"}} {
		b := &table.Book{Sheets: []table.Sheet{{Name: "Runs"}, {Name: "Summary", Columns: []table.Column{{Header: "ours"}, {Header: "95 % ±"}, {Header: "runs"}, {Header: "paper"}, {Header: "difference"}},
			Rows: [][]table.Cell{{table.N(5), table.N(0.5), table.N(3), table.Missing("none"), table.Missing("none")}}}}}
		for _, name := range order {
			b.Sheets = append(b.Sheets, table.Sheet{Name: name, Columns: columns, Rows: rows})
		}
		addFormulas(b, &Result{Bench: &results.Bench{}})
		if got := b.Sheets[1].Rows[0][0].Formula; got != "Statistics!B2" {
			t.Errorf("with sheets %q: %s", order, got)
		}
	}
}

// TestDifferencesOfSummaries checks that a difference has a formula if it is that of the two numbers, to nine digits.
func TestDifferencesOfSummaries(t *testing.T) {
	for relative, computed := range map[float64]bool{0: true, 0.9e-9: true, -0.9e-9: true, 1.2e-9: false, -1.2e-9: false} {
		s := &table.Sheet{Columns: []table.Column{{Header: "ours"}, {Header: "95 % ±"}, {Header: "runs"}, {Header: "paper"}, {Header: "difference"}},
			Rows: [][]table.Cell{{table.N(6), table.Missing("one run"), table.N(1), table.N(4), table.N(50 * (1 + relative))}}}
		referTo(s)
		if got := s.Rows[0][4].Formula; (got != "") != computed {
			t.Errorf("off by %v: %q", relative, got)
		}
		s.Rows[0][0], s.Rows[0][4], s.Rows[0][4].Formula = table.N(4), table.N(0), ""
		if referTo(s); s.Rows[0][4].Formula != "100*(A2/D2-1)" {
			t.Errorf("no difference is %q", s.Rows[0][4].Formula)
		}
	}
}

// TestSawtoothsAreShort checks that a sawtooth is drawn up to its thirtieth delivery.
func TestSawtoothsAreShort(t *testing.T) {
	var samples []Sample
	for i := range int64(40) {
		samples = append(samples, Sample{Queue: "a", OutRateBPS: 1e9, Observation: olaf.Observation{At: olaf.Time(1000 * 10 * (i + 1)), Update: olaf.Update{GenNS: uint64(10*i + 5)}}})
	}
	for n, want := range map[int]int{2: 3, 29: 57, 30: 59, 31: 61, 40: 61} {
		if s := Sawtooths(samples[:n]); len(s.Rows) != want || s.Rows[want-1][0] != table.N(float64(10*((want+1)/2))) {
			t.Errorf("%d deliveries: %d corners, want %d, the last %v", n, len(s.Rows), want, s.Rows[len(s.Rows)-1])
		}
	}
}

// TestCellsThatAreMissing checks that a run without a metric does not enter its statistic, and that nothing is computed
// without statistics.
func TestCellsThatAreMissing(t *testing.T) {
	runs := []results.Run{{Queue: "a"}, {Queue: "a"}, {Queue: "b"}, {Queue: "a"}}
	s := &table.Sheet{Name: "Runs", Columns: []table.Column{{Header: "x"}}, Rows: [][]table.Cell{{table.N(1)}, {table.Missing("late")}, {table.N(9)}, {table.N(4)}}}
	if ref, values := cellsOf(runs, &results.Row{Queue: "a"}, s, 0); ref != "Runs!A2:A3,Runs!A5:A5" || !slices.Equal(values, []float64{1, 4}) {
		t.Errorf("%s: %v", ref, values)
	}
	b := &table.Book{Sheets: []table.Sheet{*s}}
	addFormulas(b, &Result{Runs: runs, Bench: &results.Bench{Rows: []results.Row{{Queue: "a", Stats: results.Stats{{}}}}}})
}

// TestFirstRuns checks that the first run of every configuration is shown, even if it has a single frame.
func TestFirstRuns(t *testing.T) {
	sample := func(queue string, run, n int) (list []Sample) {
		for range n {
			list = append(list, Sample{Queue: queue, OutRateBPS: 1e9, Run: run})
		}
		return list
	}
	order, frames := firstRuns(slices.Concat(sample("a", 0, 1), sample("a", 1, 3), sample("b", 2, 2), sample("c", 1, 1), sample("a", 0, 1)))
	want := []sampled{{"a", 1e9, 0}, {"b", 1e9, 2}, {"c", 1e9, 1}}
	if !slices.Equal(order, want) || len(frames[want[0]]) != 2 || len(frames[want[1]]) != 2 || len(frames[want[2]]) != 1 {
		t.Errorf("%v, %v", order, frames)
	}
}

// TestNotesOfASummary checks that the notes below a summary begin with its terms.
func TestNotesOfASummary(t *testing.T) {
	if got := Summary(&results.Bench{Terms: []string{"t", "u"}, Statements: []string{"s"}}).Notes; !slices.Equal(got, []string{"t", "u", "s"}) {
		t.Errorf("%q", got)
	}
}

// TestValidity checks the sentence about a result's validity.
func TestValidity(t *testing.T) {
	bench := func(partial bool, device string, rows ...results.Row) *results.Bench {
		return &results.Bench{Partial: partial, Rows: rows, Provenance: results.Provenance{Device: device}}
	}
	good, bad := results.Row{Queue: "a", OutRateBPS: 1e9, Valid: true}, results.Row{Queue: "b", OutRateBPS: 2e9, InvalidRuns: 3}
	for _, c := range []struct {
		r     Result
		valid bool
		want  string
	}{
		{Result{Bench: bench(false, "twin:", good)}, true, "yes: every run kept the accounting identities and lost nothing in the capture"},
		{Result{Bench: bench(false, "", good)}, true, "yes: every run kept the accounting identities"},
		{Result{Bench: bench(false, "", good), DocumentOnly: true}, true, "yes: every part was carried out to its end"},
		{Result{Bench: bench(false, "", good), Invalid: []string{"x", "y"}}, false, "no: x; y"},
		{Result{Bench: bench(false, "", good), DocumentOnly: true, Invalid: []string{"x"}}, false, "no: x"},
		{Result{Bench: bench(true, "", good)}, false, "no: stopped before all runs were done"},
		{Result{Bench: bench(true, "", good, bad)}, false, "no: stopped before all runs were done; b 2Gbps: 3 runs left out ()"},
	} {
		if got := c.r.Validity(); got != c.want || c.r.Valid() != c.valid {
			t.Errorf("%q and %t, want %q", got, c.r.Valid(), c.want)
		}
	}
}

// TestEventsSayWhatIsLeftOut checks that a sample states how many frames it leaves out, from the first on.
func TestEventsSayWhatIsLeftOut(t *testing.T) {
	for delivered, notes := range map[int64]int{1: 0, 2: 0, 3: 1, 4: 1} {
		s := events(&Result{Samples: make([]Sample, 2), Delivered: delivered, RawRows: "there"})
		if len(s.Notes) != notes || notes > 0 && s.Notes[0] != fmt.Sprintf("2 of %d frames are shown; for all of them: there", delivered) {
			t.Errorf("%d delivered: %q", delivered, s.Notes)
		}
	}
	if s := events(&Result{Delivered: 5}); len(s.Notes) > 0 {
		t.Errorf("without a frame: %q", s.Notes)
	}
}
