package xlsx

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/olafctl/olaf/internal/test/peer"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

func book() *table.Book {
	clusters := table.Sheet{Name: "Clusters", Title: "AoM per cluster", Command: "olafctl bench --queue olaf",
		Columns: []table.Column{{Header: "cluster"},
			{Header: "fifo 40G", Unit: "ns", Format: table.Fixed1}, {Header: "fifo 40G ±95 %", Unit: "ns",
				Format: table.Fixed1}, {Header: "olaf 40G", Unit: "ns", Format: table.Fixed1}}}
	for i := range 9 {
		clusters.Rows = append(clusters.Rows, []table.Cell{table.S(strconv.Itoa(i)), table.N(4000 + 10*float64(i)),
			table.N(100), table.N(1200 + float64(i))})
	}
	clusters.Charts = []table.Chart{{Kind: table.Bars, Title: "AoM per cluster <&>", XTitle: "cluster",
		YTitle: "AoM [ns]", X: 0,
		Series: []table.Series{{Name: "fifo 40G", Column: 1, ErrorColumn: 2}, {Name: "olaf 40G", Column: 3}}}}
	cdf := table.Sheet{Name: "CDF", Columns: []table.Column{{Header: "aggregations"},
		{Header: "olaf 40G", Format: table.Fixed3}},
		Charts: []table.Chart{{Kind: table.Steps, YMax: 1, Title: "CDF", XTitle: "aggregations", YTitle: "share",
			Series: []table.Series{{Name: "olaf 40G", Column: 1}}}}}
	cdf.Columns[0].Format = table.Integer
	for i := range 20 {
		cdf.Rows = append(cdf.Rows, []table.Cell{table.I(int64(i)), table.N(1 - math.Exp(-float64(i+1)/3))})
	}
	odd := table.Sheet{Name: "Odd", Columns: []table.Column{{Header: "text"},
		{Header: "number", Format: table.General}}, Rows: [][]table.Cell{
		{table.S("=1+1"), table.N(math.NaN())}, {table.S(strings.Repeat("é", 40_000)), table.Missing("needs provenance")},
		{table.U(math.MaxUint64), table.I(math.MaxInt64)}, {table.S("tab\tand \x01 control"), table.N(0.1)}}}
	return &table.Book{Title: "A test", Sheets: []table.Sheet{clusters, cdf, odd}}
}

func written(t *testing.T, b *table.Book) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, b); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestSameBookSameBytes(t *testing.T) {
	if !bytes.Equal(written(t, book()), written(t, book())) {
		t.Error("two writings differ")
	}
}

func TestEveryPartIsWellFormed(t *testing.T) {
	raw := written(t, book())
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	charts := 0
	for _, f := range z.File {
		part, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(part); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
		if strings.HasPrefix(f.Name, "xl/charts/") {
			charts++
		}
	}
	if charts != 2 {
		t.Errorf("%d charts, want 2", charts)
	}
}

func TestExcelizeReadsEveryCell(t *testing.T) {
	b := book()
	f, err := excelize.OpenReader(bytes.NewReader(written(t, b)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range b.Sheets {
		for i, row := range s.Rows {
			for k, v := range row {
				name, _ := excelize.CoordinatesToCellName(k+1, i+2)
				got, err := f.GetCellValue(s.Name, name, excelize.Options{RawCellValue: true})
				if err != nil {
					t.Fatal(err)
				}
				if err := sameCell(got, v); err != nil {
					t.Errorf("%s!%s: %v", s.Name, name, err)
				}
			}
		}
		panes, err := f.GetPanes(s.Name)
		if err != nil || !panes.Freeze || panes.YSplit != 1 {
			t.Errorf("%s: header row is not frozen: %+v %v", s.Name, panes, err)
		}
	}
	if props, err := f.GetDocProps(); err != nil || props.Title != "A test" {
		t.Errorf("%+v %v", props, err)
	}
}

// TestOutlinesAreBorders checks that a cell on an outline of a map has a line on that side, and keeps its number and
// its alignment.
func TestOutlinesAreBorders(t *testing.T) {
	s := table.Sheet{Name: "Map", Columns: []table.Column{{Header: "slots"}, {Header: "1", Format: table.General},
		{Header: "2", Format: table.General}},
		Rows: [][]table.Cell{{table.S("2"), table.N(1), table.N(2)}, {table.S("4"), table.N(3), table.S("[4]")}}}
	s.Charts = []table.Chart{{Kind: table.Map, Series: []table.Series{{Name: "1", Column: 1},
		{Name: "2", Column: 2}}, Outlines: []table.Outline{
		{Edges: []table.Edge{{Row: 0, Series: 1}, {Row: 1, Series: 1}, {Row: 1, Series: 1, Level: true}}},
		{Dashed: true, Edges: []table.Edge{{Row: 1, Series: 0, Level: true}}}}}}
	f, err := excelize.OpenReader(bytes.NewReader(written(t, &table.Book{Sheets: []table.Sheet{s}})))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const medium, dashed = 2, 8 // excelize's numbers
	for cell, want := range map[string]map[string]int{"B2": {}, "C2": {"left": medium}, "C3": {"left": medium,
		"top": medium}, "B3": {"top": dashed}} {
		at, err := f.GetCellStyle("Map", cell)
		if err != nil {
			t.Fatal(err)
		}
		style, err := f.GetStyle(at)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, b := range style.Border {
			if b.Style > 0 {
				got[b.Type] = b.Style
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || style.Alignment == nil || style.Alignment.Vertical != "top" {
			t.Errorf("%s: %s %+v", cell, diff, style.Alignment)
		}
	}
	if got, err := f.GetCellValue("Map", "C2", excelize.Options{RawCellValue: true}); got != "2" || err != nil {
		t.Error(got, err)
	}
}

func sameCell(got string, want table.Cell) error {
	switch want.Kind {
	case table.Number:
		v, err := strconv.ParseFloat(got, 64)
		if err != nil || v != want.Number {
			return fmt.Errorf("%q, want %v", got, want.Number)
		}
		return nil
	case table.String:
		text := clipText(strings.ReplaceAll(want.Text, "\x01", "\uFFFD"))
		if got != text {
			return fmt.Errorf("%.40q, want %.40q", got, text)
		}
		return nil
	}
	if got != want.Text {
		return fmt.Errorf("%q, want the reason %q", got, want.Text)
	}
	return nil
}

func TestRowsAreCapped(t *testing.T) {
	s := table.Sheet{Name: "Events", RawRows: "see observations.parquet",
		Columns: []table.Column{{Header: "n", Format: table.Integer}}}
	for i := range maxRows + 5 {
		s.Rows = append(s.Rows, []table.Cell{table.I(int64(i))})
	}
	got := notesOf(&s)
	if len(got) != 2 || got[1] != "5 more rows are not shown; for all of them: see observations.parquet" {
		t.Errorf("%q", got)
	}
}

func TestBadBooksAreRefused(t *testing.T) {
	for name, b := range map[string]*table.Book{
		"no sheets":  {},
		"sheet name": {Sheets: []table.Sheet{{Name: "a/b"}}},
		"same name":  {Sheets: []table.Sheet{{Name: "a"}, {Name: "a"}}},
		"ragged sheet": {Sheets: []table.Sheet{{Name: "a", Columns: make([]table.Column, 2),
			Rows: [][]table.Cell{{table.S("x")}}}}},
	} {
		if err := Write(io.Discard, b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestLibreOfficeOpensWorkbook opens a bench's workbook, without the results of its formulas, with a real office suite.
// It checks that the results are computed again, that every chart is drawn, and that the whole has only a few pages.
func TestLibreOfficeOpensWorkbook(t *testing.T) {
	office := peer.NeedProgram(t, "soffice")
	dir := t.TempDir()
	if keep := os.Getenv("OLAF_KEEP"); keep != "" {
		dir = keep
	}
	b := sheets.Book(example.Result(6))
	path := filepath.Join(dir, "book.xlsx")
	if err := os.WriteFile(path, withoutResults(t, written(t, b)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, format := range []string{"pdf", "html",
		"csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1"} {
		cmd := exec.CommandContext(ctx, office, "--headless", "-env:UserInstallation=file://"+
			filepath.Join(dir, "profile"), "--convert-to", format, "--outdir", dir, path)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	pdf, err := os.ReadFile(filepath.Join(dir, "book.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	if pages := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(pdf, -1)); pages < len(b.Sheets) || pages > 22 {
		t.Errorf("%d pages", pages)
	}
	placed, _ := arrangeCharts(b)
	// Conversion to a web page draws every chart into a separate picture.
	pictures, err := filepath.Glob(filepath.Join(dir, "book_html_*.png"))
	if err != nil || len(pictures) != len(placed) {
		t.Errorf("LibreOffice drew %d charts, want %d (%v)", len(pictures), len(placed), err)
	}
	for _, p := range pictures {
		if info, err := os.Stat(p); err != nil || info.Size() < 4000 {
			t.Errorf("the picture of a chart has %d bytes: it is empty (%v)", info.Size(), err)
		}
	}
	formulas := 0
	for _, s := range b.Sheets {
		formulas += computedAgain(t, &s, filepath.Join(dir, "book-"+s.Name+".csv"))
	}
	if formulas < 100 {
		t.Errorf("%d formulas", formulas)
	}
}

// withoutResults removes the results of formulas from a workbook, so that any program that opens it must compute them.
func withoutResults(t *testing.T, raw []byte) []byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, f := range z.File {
		part, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		parts[f.Name] = regexp.MustCompile(`(<f>[^<]*</f>)<v>[^<]*</v>`).ReplaceAllString(string(text), "$1")
	}
	var out bytes.Buffer
	if err := zipParts(&out, parts); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// computedAgain compares the results of a sheet's formulas with those in a file, and counts them.
func computedAgain(t *testing.T, s *table.Sheet, path string) (formulas int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range s.Rows {
		for k, v := range row {
			if v.Formula == "" {
				continue
			}
			formulas++
			got, err := strconv.ParseFloat(lines[i+1][k], 64)
			if err != nil || math.Abs(got-v.Number) > 1e-6*math.Abs(v.Number) {
				t.Errorf("%s row %d, %s: =%s is %s, want %v", s.Name, i+2, s.Columns[k].Title(), v.Formula, lines[i+1][k], v.Number)
			}
		}
	}
	return formulas
}

// TestWrappedTextFits checks widths and heights for headers that wrap and words that must not be cut.
func TestWrappedTextFits(t *testing.T) {
	for _, c := range []struct {
		text    string
		letters float64
		want    int
	}{
		{"", 9, 1}, {"aggregations", 14, 1}, {"olaf 40Gbps per worker", 12, 2}, {"a b c d", 3, 2},
		{strings.Repeat("x", 25), 10, 3}, {strings.Repeat("word ", 500), 20, mostLines},
	} {
		if got := linesOf(c.text, c.letters); got != c.want {
			t.Errorf("%.20q on %v letters: %d lines, want %d", c.text, c.letters, got, c.want)
		}
	}
	s := table.Sheet{Columns: []table.Column{{Header: "aggregations"},
		{Header: "olaf 40Gbps per worker over all of its runs"}}}
	if w := columnWidthFor(&s, nil, 0); w < 12*boldWidth {
		t.Errorf("a word of 12 letters in a column of %v", w)
	}
	if w := columnWidthFor(&s, nil, 1); w != headerWidth {
		t.Errorf("a long header makes its column %v wide, want %v", w, headerWidth)
	}
}
