package sheets_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

// variants returns results of every kind that books are made of.
func variants() map[string]*sheets.Result {
	invalid := example.Result(4)
	invalid.Runs[1].Invalid = []string{"the capture lost 3 frames", "another reason"}
	invalid.Bench.Rows[0].Stats[0].N = 3
	document := example.Result(3)
	document.DocumentOnly, document.Invalid, document.Runs, document.Samples = true, []string{"it must not be used"}, nil, nil
	one := example.Result(2)
	one.Bench.Rows = one.Bench.Rows[:2]
	one.Bench.Comparisons = one.Bench.Comparisons[:1]
	one.Runs, one.Samples, one.Bench.Paper = one.Runs[:4], one.Samples[:300], nil
	one.Own = []table.Sheet{{Name: "Own", Columns: []table.Column{{Header: "x"}}, Rows: [][]table.Cell{{table.S("y")}}}}
	many := example.Result(3)
	for i := range many.Bench.Rows {
		row := &many.Bench.Rows[i]
		for k := range 70 {
			row.Clusters = append(row.Clusters, results.ClusterRow{Cluster: 100 + 70*i + k, AoM: over(1, 2, 3)})
		}
		row.CDF = row.CDF[:min(len(row.CDF), 1+i)]
	}
	bare := example.Result(1)
	bare.Bench.Config, bare.Bench.Statements, bare.Bench.Provenance, bare.RawRows = json.RawMessage(`{}`), nil, results.Provenance{}, ""
	bare.Bench.Comparisons = nil
	single := example.Result(2)
	single.Bench.Rows, single.Bench.Comparisons, single.Bench.Partial = single.Bench.Rows[:1], nil, true
	single.Runs, single.Delivered = single.Runs[:2], int64(len(single.Samples))
	return map[string]*sheets.Result{"single": single, "plain": example.Result(3), "invalid": invalid, "document": document, "one-rate": one, "many-clusters": many, "bare": bare}
}

// tell writes a complete book: columns with formats, charts, notes, and every cell that is not empty.
func tell(b *bytes.Buffer, book *table.Book) {
	fmt.Fprintf(b, "%s\n", book.Title)
	for _, s := range book.Sheets {
		fmt.Fprintf(b, "== %s: %s, made by %q, raw %q\n", s.Name, s.Title, s.Command, s.RawRows)
		for i, c := range s.Columns {
			fmt.Fprintf(b, "column %d %s\n", i, golden.Fields(c))
		}
		for _, c := range s.Charts {
			fmt.Fprintf(b, "chart %s\n", golden.Fields(c))
		}
		for _, n := range s.Notes {
			fmt.Fprintf(b, "note %s\n", n)
		}
		for i, row := range s.Rows {
			if s.Name == "Events" && i >= 5 || i >= 40 && i%20 > 0 {
				continue
			}
			fmt.Fprintf(b, "%d:", i)
			for _, v := range row {
				switch {
				case v.Formula != "":
					fmt.Fprintf(b, " %v=%s", v.Number, v.Formula)
				case v.Kind == table.Number:
					fmt.Fprintf(b, " %v", v.Number)
				case v.Kind == table.String:
					fmt.Fprintf(b, " %q", v.Text)
				case v.Text != "":
					fmt.Fprintf(b, " (%s)", v.Text)
				default:
					b.WriteString(" –")
				}
			}
			b.WriteByte('\n')
		}
	}
}

// TestBooksMatchGoldenFiles compares the content of books, charts and formulas with golden files.
func TestBooksMatchGoldenFiles(t *testing.T) {
	for name, r := range variants() {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			tell(&b, sheets.Book(r))
			golden.Equal(t, "books/"+name+".txt", b.Bytes())
		})
	}
}

// TestFormulasHaveLimits checks that a workbook computes statistics over at most thirty ranges and ten thousand runs,
// and that columns beyond Z have two letters.
func TestFormulasHaveLimits(t *testing.T) {
	for _, c := range []struct {
		runs int
		some bool
	}{{59, true}, {60, true}, {61, false}} {
		r := example.Result(2)
		template := r.Runs[0]
		other := r.Runs[len(r.Runs)-1]
		r.Runs = nil
		for i := range c.runs { // every second run, so that each is a separate range
			r.Runs = append(r.Runs, template)
			if i%2 == 1 {
				r.Runs[i] = other
			}
		}
		n := (c.runs + 1) / 2
		for k := range r.Bench.Rows[0].Stats {
			st := &r.Bench.Rows[0].Stats[k].Statistic
			if v := r.Runs[0].Metrics.Of(r.Bench.Rows[0].Stats[k].Name); v.Known() {
				st.N, st.Mean, st.Min, st.Max = n, v, v, v
			}
		}
		_, first := formulas(sheets.Book(r), "Statistics")
		if (first != "") != c.some {
			t.Errorf("%d ranges: %q", n, first)
		}
	}
}

// TestFormulasEndWithTheRuns checks that a workbook of ten thousand runs has formulas, and one with more has numbers.
func TestFormulasEndWithTheRuns(t *testing.T) {
	for runs, some := range map[int]bool{9_999: true, 10_000: true, 10_001: false} {
		r := example.Result(2)
		other := results.Run{Queue: "another", Metrics: r.Runs[0].Metrics}
		for len(r.Runs) < runs {
			r.Runs = append(r.Runs, other)
		}
		if n, _ := formulas(sheets.Book(r), "Statistics"); (n > 0) != some {
			t.Errorf("%d runs: %d formulas", runs, n)
		}
	}
}

// TestSawtoothClusters checks that the drawn cluster is the smallest for which all samples have two deliveries, and
// that there is none otherwise.
func TestSawtoothClusters(t *testing.T) {
	frames := func(queue string, clusters ...olaf.ClusterID) (out []sheets.Sample) {
		for i, c := range clusters {
			out = append(out, sheets.Sample{Queue: queue, OutRateBPS: 1e9, Observation: olaf.Observation{At: olaf.Time(1000 * (i + 10)), Update: olaf.Update{Cluster: c, GenNS: uint64(i), Count: 1}}})
		}
		return out
	}
	for _, c := range []struct {
		a, b []olaf.ClusterID
		want string
	}{
		{[]olaf.ClusterID{3, 3, 5, 5}, []olaf.ClusterID{5, 3, 5, 3}, "Age of Model of cluster 3 over time, first run, first deliveries of the sample"},
		{[]olaf.ClusterID{3, 3, 5, 5}, []olaf.ClusterID{5, 3, 5}, "Age of Model of cluster 5 over time, first run, first deliveries of the sample"},
		{[]olaf.ClusterID{3, 3}, []olaf.ClusterID{5, 5}, ""},
	} {
		if s := sheets.Sawtooths(append(frames("a", c.a...), frames("b", c.b...)...)); s.Title != c.want {
			t.Errorf("%v and %v: %q", c.a, c.b, s.Title)
		}
	}
}

// TestSawtoothOfTheFirstRun checks that only the first of several runs is drawn.
func TestSawtoothOfTheFirstRun(t *testing.T) {
	var samples []sheets.Sample
	for run := range 2 {
		for i := range 3 {
			samples = append(samples, sheets.Sample{Queue: "a", OutRateBPS: 1e9, Run: run, Observation: olaf.Observation{At: olaf.Time(1000 * (i + 10 + run)), Update: olaf.Update{GenNS: uint64(i), Count: 1}}})
		}
	}
	if both, first := sheets.Sawtooths(samples), sheets.Sawtooths(samples[:3]); len(first.Columns) == 0 || !reflect.DeepEqual(both, first) {
		t.Errorf("%+v, of the first run %+v", both, first)
	}
}

// TestMissingQueueingDelay checks the cell of frames without a measured queueing delay, which differs from a delay of
// 0.
func TestMissingQueueingDelay(t *testing.T) {
	r := &sheets.Result{Bench: &results.Bench{Provenance: results.Provenance{Commit: "0123abcd", Dirty: true, RegisterMap: "1.2.0"}}}
	for _, queued := range []olaf.Duration{-1, 0, 2000} {
		r.Samples = append(r.Samples, sheets.Sample{Queue: "a", OutRateBPS: 1e9, Observation: olaf.Observation{At: 1000, Queued: queued}})
	}
	book := sheets.Book(r)
	at := slices.IndexFunc(book.Sheets, func(s table.Sheet) bool { return s.Name == "Events" })
	if at < 0 {
		t.Fatal("no events")
	}
	rows := book.Sheets[at].Rows
	if rows[0][10].Kind != table.Empty || rows[0][10].Text != "not measured" || rows[1][10] != table.N(0) || rows[2][10] != table.N(2) {
		t.Errorf("%+v, %+v, %+v", rows[0][10], rows[1][10], rows[2][10])
	}
	said := map[string]string{}
	for _, row := range book.Sheets[0].Rows {
		said[row[0].Text] = row[1].Text
	}
	if said["register map"] != "1.2.0" || said["built from commit"] != "0123abcd with local changes" {
		t.Errorf("%q", said)
	}
}

// TestNoDistribution checks that a missing distribution has no chart.
func TestNoDistribution(t *testing.T) {
	if s := sheets.CDF(&results.Bench{Rows: []results.Row{{Queue: "a", OutRateBPS: 1e9}}}); len(s.Charts)+len(s.Rows) > 0 {
		t.Errorf("%+v", s)
	}
}

// TestSpeedupsAreInOrder checks that speed-ups are ordered by rate, and lines by comparison.
func TestSpeedupsAreInOrder(t *testing.T) {
	b := &results.Bench{}
	for _, c := range []struct {
		queue string
		rate  int64
	}{{"b", 2_000_001}, {"a", 2_000_001}, {"b", 2_000_000}, {"a", 2_000_000}, {"b", 40e9}, {"a", 20e9}} {
		b.Comparisons = append(b.Comparisons, results.Comparison{Queue: c.queue, Versus: "fifo", OutRateBPS: c.rate, Speedup: results.Describe([]results.Float{1, 2}, "")})
	}
	s := sheets.Speedup(b)
	var rates []float64
	for _, row := range s.Rows {
		rates = append(rates, row[0].Number)
	}
	if !slices.IsSorted(rates) || s.Columns[1].Header != "b over fifo" || s.Columns[3].Header != "a over fifo" {
		t.Errorf("%v, %+v", rates, s.Columns)
	}
}

// TestChartsHaveLimits checks that charts have at most as many lines as can be distinguished.
func TestChartsHaveLimits(t *testing.T) {
	cluster := results.ClusterRow{Cluster: 1, AoM: over(1, 2, 3), AoMWorker: over(1, 2, 3)}
	for _, c := range []struct {
		configurations, clusters int
		drawn                    bool
	}{{1, 1, true}, {1, 0, false}, {12, 1, true}, {13, 1, false}, {1, 64, true}, {1, 65, false}} {
		b := &results.Bench{}
		for i := range c.configurations {
			row := results.Row{Queue: string(rune('a' + i)), OutRateBPS: 1e9}
			for k := range c.clusters {
				cluster.Cluster = k
				row.Clusters = append(row.Clusters, cluster)
			}
			b.Rows = append(b.Rows, row)
		}
		if s := sheets.Clusters(b); (len(s.Charts) > 0) != c.drawn {
			t.Errorf("%d clusters of %d configurations: %d charts", c.clusters, c.configurations, len(s.Charts))
		}
	}
	if s := sheets.Reductions(&results.Bench{}); len(s.Charts) > 0 {
		t.Error("a chart of no reductions")
	}
	b := &results.Bench{}
	for _, rate := range []int64{40e9, 20e9, 30e9, 25e9, 100e6, 200e6} {
		b.Comparisons = append(b.Comparisons, results.Comparison{Queue: "a", Versus: "b", OutRateBPS: rate, Speedup: over(1, 2, 3)})
	}
	s := sheets.Speedup(b)
	last := 0.0
	for _, row := range s.Rows {
		if row[0].Number <= last {
			t.Errorf("%v Gbps after %v", row[0].Number, last)
		}
		last = row[0].Number
	}
	if len(s.Rows) != 6 || len(s.Charts) != 1 {
		t.Errorf("%d rows, %d charts", len(s.Rows), len(s.Charts))
	}
}
