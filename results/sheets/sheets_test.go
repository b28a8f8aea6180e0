package sheets_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/xlsx"
)

func TestGoldenSheets(t *testing.T) {
	book := sheets.Book(example.Result(3))
	var names []string
	for i := range book.Sheets {
		s := &book.Sheets[i]
		names = append(names, s.Name)
		var b bytes.Buffer
		if err := s.WriteCSV(&b); err != nil {
			t.Fatal(err)
		}
		if s.Name != "Events" {
			golden.Equal(t, strings.ToLower(s.Name)+".csv", b.Bytes())
		}
	}
	if got, want := strings.Join(names, " "), "README Summary Paper Statistics Comparisons Reduction Clusters CDF Loss Speedup Sawtooth Runs Events"; got != want {
		t.Errorf("sheets %s, want %s", got, want)
	}
}

func TestGoldenText(t *testing.T) {
	s := sheets.Summary(example.Result(3).Bench)
	var b bytes.Buffer
	if err := s.WriteText(&b, 240); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "summary.txt", b.Bytes())
}

func TestGoldenDocument(t *testing.T) {
	b, err := json.MarshalIndent(example.Result(2).Bench, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "bench.json", append(b, '\n'))
	var back results.Bench
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(&back, "", "  ")
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("the document does not survive being read and written (%v)", err)
	}
}

func TestEveryRowHasACellPerColumn(t *testing.T) {
	r := example.Result(2)
	// A cluster that only one configuration saw, and an invalid run.
	last := &r.Bench.Rows[len(r.Bench.Rows)-1]
	last.Clusters = append(last.Clusters, results.ClusterRow{Cluster: 77})
	r.Runs[0].Invalid = []string{"the capture lost 3 frames"}
	for _, s := range sheets.Book(r).Sheets {
		for i, row := range s.Rows {
			if len(row) != len(s.Columns) {
				t.Errorf("%s row %d has %d cells for %d columns", s.Name, i, len(row), len(s.Columns))
			}
		}
		for _, c := range s.Charts {
			for _, series := range c.Series {
				if f := s.Columns[series.Column].Format; f == table.Text {
					t.Errorf("%s: chart %q draws the text column %d", s.Name, c.Title, series.Column)
				}
			}
		}
	}
}

func TestSawtoothsOfARateEndTogether(t *testing.T) {
	var samples []sheets.Sample
	for i := range 100 {
		for queue, gap := range map[string]int64{"fifo": 30_000, "olaf": 10_000} {
			at := int64(i+1) * gap
			samples = append(samples, sheets.Sample{Queue: queue, OutRateBPS: 40e9, Observation: olaf.Observation{At: olaf.Time(at), Update: olaf.Update{GenNS: uint64(at/1000) - 5, Count: 1}}})
		}
	}
	s := sheets.Sawtooths(samples)
	if len(s.Charts) != 1 || len(s.Charts[0].Series) != 2 {
		t.Fatalf("%+v", s.Charts)
	}
	var last float64
	for _, row := range s.Rows {
		for _, series := range s.Charts[0].Series {
			last = max(last, row[series.X].Number)
		}
	}
	// 60 corners are 30 falls and the first corner, so there are 31 deliveries, 10 ns apart.
	if last != 300 && last != 310 {
		t.Errorf("the slower line ends at %v ns, the faster one has its last delivery at 300 ns", last)
	}
}

func TestEmptyResult(t *testing.T) {
	book := sheets.Book(&sheets.Result{Bench: &results.Bench{Experiment: "nothing"}})
	if len(book.Sheets) != 1 || book.Sheets[0].Name != "README" {
		t.Errorf("%d sheets", len(book.Sheets))
	}
}

// BenchmarkWorkbook30Runs lays out a result of 4 configurations and 30 runs as a workbook.
func BenchmarkWorkbook30Runs(b *testing.B) {
	r := example.Result(30)
	b.ReportAllocs()
	for b.Loop() {
		var out bytes.Buffer
		if err := xlsx.Write(&out, sheets.Book(r)); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(out.Len()))
	}
}

// TestMixedReadingNeedsPublishedTraffic checks that a bench with other traffic than the paper's has no mixed reading in
// any sheet.
func TestMixedReadingNeedsPublishedTraffic(t *testing.T) {
	for _, published := range []bool{true, false} {
		b := example.Result(3).Bench
		if !published {
			b.Paper = nil
		}
		for _, s := range []table.Sheet{sheets.Comparisons(b), sheets.Reductions(b)} {
			var text bytes.Buffer
			if err := s.WriteCSV(&text); err != nil {
				t.Fatal(err)
			}
			if mixed := strings.Contains(text.String(), "per worker, olaf per cluster") || strings.Contains(text.String(), "first per cluster, other per worker"); mixed != published {
				t.Errorf("%s, published %v: mixed reading %v", s.Name, published, mixed)
			}
		}
	}
}
