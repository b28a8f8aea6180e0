package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

var (
	style   = regexp.MustCompile(`(?s)<style>.*?</style>`)
	drawing = regexp.MustCompile(`(?s)<svg.*?</svg>`)
)

// TestPages compares pages with golden files, and figures with their digests.
func TestPages(t *testing.T) {
	invalid := example.Result(2)
	invalid.Runs[0].Invalid = []string{"the capture lost 3 frames"}
	invalid.Bench.Paper = nil
	for i, v := range []paper.Verdict{paper.Match, paper.Near, paper.BoundMet, paper.WithinTwo, paper.TrendOnly, paper.Differs, paper.Opposite, paper.BoundMissed, "other", paper.Match} {
		row := results.PaperRow{ID: fmt.Sprintf("olaf/table1.%d", i), Row: "r", Column: "c", Verdict: string(v), Published: results.Float(i), Ours: results.Describe([]results.Float{1, 2, 3}, ""), Source: "Table 1", Basis: "basis", Note: "note",
			DeviationPct: results.Float(i) * 1.25, Unit: "%"}
		if i%3 == 0 {
			row.Unit, row.Basis, row.DeviationPct, row.Ours = "", "", results.Missing(), results.Describe(nil, "none")
		}
		if i%4 == 0 {
			row.Note = ""
		}
		invalid.Bench.Paper = append(invalid.Bench.Paper, row)
	}
	long := example.Result(2)
	parameters := map[string]any{"experiment": "x", "list": []int{1, 2}, "empty": ""}
	for i := range 40 {
		parameters[fmt.Sprintf("outer_%02d", i)] = map[string]int{"inner_name": i}
	}
	var err error
	if long.Bench.Config, err = json.Marshal(parameters); err != nil {
		t.Fatal(err)
	}
	long.Bench.Provenance.Started = "yesterday"
	for _, n := range []int{shownRows, shownRows + 1} {
		s := table.Sheet{Name: fmt.Sprint("Own ", n), Title: "rows", Columns: []table.Column{{Header: "name"}, {Header: "n", Format: table.Integer, Unit: "B"}}}
		for i := range n {
			s.Rows = append(s.Rows, []table.Cell{table.S("x"), table.I(int64(i))})
		}
		s.Rows[1][1] = table.Missing("not measured")
		long.Own = append(long.Own, s)
	}
	for name, r := range map[string]*sheets.Result{"plain": example.Result(3), "invalid": invalid, "long": long} {
		page := drawing.ReplaceAllFunc([]byte(written(t, r)), func(svg []byte) []byte { return fmt.Appendf(nil, "<svg %x>", sha256.Sum256(svg)) })
		page = style.ReplaceAllFunc(page, func(css []byte) []byte { return fmt.Appendf(nil, "<style %x>", sha256.Sum256(css)) })
		golden.Equal(t, name+".html.txt", page)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestFailedWriteIsReported(t *testing.T) {
	if err := Write(broken{}, example.Result(1)); err == nil || !bytes.Contains([]byte(err.Error()), []byte("no room")) {
		t.Errorf("%v", err)
	}
}
