package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/olafctl/olaf/internal/test/raced"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/text"
)

// TestRealAndTwinAgesAgreeEverywhere checks that a stored run of real packets next to the twin has the same ages
// everywhere: in its document, as text, in a comparison, in the workbook and in the report. Withheld ages are missing
// in all of them.
func TestRealAndTwinAgesAgreeEverywhere(t *testing.T) {
	raced.SkipRaced(t)
	if !canReal() {
		t.Skip("no rights for real packets")
	}
	k := keepOne(t, "bench", "-d", "xdp:", "--rate", "4M", "--line-rate", "4M", "--out-rate", "2M", "--burst", "1", "--updates", "30",
		"--runs", "1", "--beside", "twin", "-q")
	var document results.Bench
	if err := json.Unmarshal([]byte(k.olafctl("runs", "show", "last", "-o", "json")), &document); err != nil {
		t.Fatal(err)
	}
	var sides compare.Document
	if err := json.Unmarshal([]byte(k.olafctl("runs", "compare", "last", "last", "-o", "json")), &sides); err != nil {
		t.Fatal(err)
	}
	shown := k.olafctl("runs", "show", "last")
	xlsx, html := filepath.Join(k.dir, "pair.xlsx"), filepath.Join(k.dir, "pair.html")
	k.olafctl("export", "last", "--xlsx", xlsx, "--report", html)
	report, err := os.ReadFile(html)
	if err != nil || !strings.Contains(string(report), "Beside the twin") {
		t.Errorf("the report does not show the pair, %v", err)
	}
	book, err := excelize.OpenFile(xlsx)
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	cells, err := book.GetRows("Beside the twin", excelize.Options{RawCellValue: true})
	if err != nil {
		t.Fatal(err)
	}
	pairs := 0
	for i := range document.Rows {
		r := &document.Rows[i]
		for n := range r.Stats {
			s := &r.Stats[n]
			if s.TwinComparison == nil {
				continue
			}
			if pairs++; !inBook(cells, r.Queue, s.TwinComparison) {
				t.Errorf("%s of %s is not in the workbook: %v", s.Name, r.Queue, cells)
			}
			if s.Unit != "ns" { // not an age, but computed from ages
				continue
			}
			if s.Column != "" && !holds(shown, s.Column, r.Queue, text.Duration(s.TwinComparison.Plan), text.Duration(s.TwinComparison.Twin),
				text.Duration(s.TwinComparison.Measured)) {
				t.Errorf("%s of %s is not in\n%s", s.Name, r.Queue, shown)
			}
			found := false
			for _, line := range sides.TwinAges {
				if line.Queue == r.Queue && line.Metric == s.Name {
					found = results.Difference(line.A, s.TwinComparison) == "" && results.Difference(line.B, s.TwinComparison) == ""
				}
			}
			if !found {
				t.Errorf("%s of %s: the comparison says %+v", s.Name, r.Queue, sides.TwinAges)
			}
		}
	}
	if pairs < 4 {
		t.Errorf("%d ages were set beside the twin's", pairs)
	}
}

// holds reports whether a line of the page contains all words in this order.
func holds(page string, words ...string) bool {
	for line := range strings.Lines(page) {
		for n, word := range words {
			at := strings.Index(line, word)
			if at < 0 {
				break
			}
			if line = line[at+len(word):]; n == len(words)-1 {
				return true
			}
		}
	}
	return false
}

// inBook reports whether a row of a sheet contains a queue's ages, to the last digit.
func inBook(cells [][]string, queue string, b *results.TwinComparison) bool {
	return slices.ContainsFunc(cells, func(line []string) bool {
		has := func(age results.Float) bool {
			return slices.ContainsFunc(line, func(cell string) bool {
				v, err := strconv.ParseFloat(cell, 64)
				return err == nil && math.Abs(v-float64(age)) <= 1e-12*math.Abs(v)
			})
		}
		return len(line) > 0 && strings.HasPrefix(line[0], queue) && has(b.Plan) && has(b.Twin) &&
			(has(b.Measured) || !b.Measured.Known())
	})
}
