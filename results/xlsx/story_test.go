package xlsx

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

// parts writes the parts of a workbook: our own parts in full, one element per line, the others by size and digest.
func parts(t *testing.T, b *bytes.Buffer, book *table.Book, full bool) {
	t.Helper()
	raw := written(t, book)
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		part, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(b, "== %s, %d bytes, %x\n", f.Name, len(text), sha256.Sum256(text))
		if full && !strings.Contains(f.Name, "theme") {
			b.WriteString(strings.ReplaceAll(string(text), "><", ">\n<") + "\n")
		}
	}
}

// small returns a book with few of each thing that a workbook can show.
func small() *table.Book {
	number := table.Column{Header: "a long header of many words", Unit: "ns", Format: table.General}
	data := table.Sheet{
		Name: "It's data", Title: "Title", Command: "olafctl <x>", RawRows: "all of it",
		Columns: []table.Column{{Header: "name"}, number, {Header: "±", Format: table.Fixed1},
			{Header: "paper", Format: table.Fixed3}, {Header: "n", Format: table.Integer}},
		Notes: []string{"a note", strings.Repeat("long ", 30)},
	}
	for i, v := range []float64{0, 1, 1.5, 0.5, 0.001, 0.0009, 999.5, 1000.5, -2000.5, 1e15, 1e15 + 2} {
		data.Rows = append(data.Rows, []table.Cell{table.S(strings.Repeat("word ", 1+9*(i%3))), table.N(v),
			table.N(0.1), table.N(v / 2), table.I(int64(i))})
	}
	data.Rows[2][1].Formula = "AVERAGE(A1:A2)"
	data.Rows[3][1], data.Rows[4][2], data.Rows[5][0] = table.Missing("not measured"), table.Cell{}, table.S("")
	data.Charts = []table.Chart{
		{Kind: table.Bars, Title: "Bars", XTitle: "x", YTitle: "y", Series: []table.Series{{Name: "one", Column: 1,
			ErrorColumn: 2, PaperColumn: 3}, {Name: "two", Column: 4}}},
		{Kind: table.Stacked, Title: "Stacked", YTitle: "y", YMax: 3, Series: []table.Series{{Name: "one", Column: 1,
			ErrorColumn: 2}, {Name: "two", Column: 3}}},
		{Kind: table.Lines, Title: "Lines", XTitle: "x", YTitle: "y", X: 4,
			Series: []table.Series{{Name: "one", Column: 1, X: 3, ErrorColumn: 2, PaperColumn: 3}, {Name: "two", Column: 2}}},
		{Kind: table.Steps, Title: "Steps", XTitle: "x", YTitle: "y", X: 4, YMax: 1,
			Series: []table.Series{{Name: "one", Column: 3}}},
	}
	colours := table.Sheet{Name: "Map", Columns: []table.Column{{Header: "y", Format: table.Integer},
		{Header: "1", Format: table.Fixed3}, {Header: "2", Format: table.Fixed3}}}
	for i := range 3 {
		colours.Rows = append(colours.Rows, []table.Cell{table.I(int64(i)), table.N(float64(i) / 3),
			table.N(1 - float64(i)/3)})
	}
	colours.Charts = []table.Chart{{Kind: table.Map, Title: "Map", ZTitle: "z", YMax: 1,
		Series: []table.Series{{Name: "1", Column: 1}, {Name: "2", Column: 2}}}}
	plain := table.Sheet{Name: "Plain", Columns: []table.Column{{Header: "text"}}, Rows: [][]table.Cell{{table.S("x")}}}
	return &table.Book{Title: "A <small> book", Sheets: []table.Sheet{plain, data, colours}}
}

// grown returns a book with sheets as long and as wide as the limits at which pages, sheets and charts are cut.
func grown() *table.Book {
	b := &table.Book{Title: "grown"}
	for _, rows := range []int{1, 69, 70, 209, 210, 211} {
		s := table.Sheet{Name: fmt.Sprint("rows ", rows), Notes: []string{"note"}}
		for k := range 2 + rows%30 {
			s.Columns = append(s.Columns, table.Column{Header: fmt.Sprint("c", k), Format: table.Integer})
		}
		for i := range rows {
			row := make([]table.Cell, len(s.Columns))
			for k := range row {
				row[k] = table.I(int64(i + k))
			}
			s.Rows = append(s.Rows, row)
		}
		for k := range min(len(s.Columns)-1, 8) {
			s.Charts = append(s.Charts, table.Chart{Kind: table.Lines, Title: fmt.Sprint("chart ", k), XTitle: "x",
				YTitle: "y", Series: []table.Series{{Name: "s", Column: k + 1}}})
		}
		b.Sheets = append(b.Sheets, s)
	}
	return b
}

// TestWorkbookParts compares the parts of workbooks with reviewed golden files.
func TestWorkbookParts(t *testing.T) {
	var b bytes.Buffer
	parts(t, &b, small(), true)
	single := small()
	single.Sheets = single.Sheets[1:2]
	single.Sheets[0].Charts = single.Sheets[0].Charts[:1]
	parts(t, &b, single, false)
	golden.Equal(t, "small.txt", b.Bytes())
	b.Reset()
	parts(t, &b, grown(), false)
	parts(t, &b, book(), false)
	parts(t, &b, sheets.Book(example.Result(3)), false)
	golden.Equal(t, "digests.txt", b.Bytes())
}

// TestWorkbookLimits checks that contents that do not fit are refused or cut, and that this is reported.
func TestWorkbookLimits(t *testing.T) {
	short := &table.Book{Sheets: []table.Sheet{{Name: "s", Columns: []table.Column{{Header: "a"}, {Header: "b"}},
		Rows: [][]table.Cell{{table.S("x")}}}}}
	if err := Write(io.Discard, short); err == nil ||
		err.Error() != `xlsx: the book can't be written: sheet "s" row 0 has 1 cells for 2 columns` {
		t.Errorf("%v", err)
	}
	twice := &table.Book{Sheets: []table.Sheet{{Name: "s", Columns: []table.Column{{Header: "a"}}},
		{Name: "s", Columns: []table.Column{{Header: "a"}}}}}
	if err := Write(io.Discard, twice); err == nil || !strings.HasPrefix(err.Error(),
		`xlsx: the book can't be written: sheet "s": `) {
		t.Errorf("%v", err)
	}
	for n, want := range map[int]int{maxText - 1: maxText - 1, maxText: maxText, maxText + 1: maxText} {
		if have := []rune(clipText(strings.Repeat("é", n))); len(have) != want ||
			(have[len(have)-1] == '…') != (n > maxText) {
			t.Errorf("%d characters become %d", n, len(have))
		}
	}
	long := table.Sheet{Name: "long", Columns: []table.Column{{Header: "a"}}, Rows: make([][]table.Cell, maxRows)}
	if n := notesOf(&long); len(n) != 0 {
		t.Errorf("%q", n)
	}
	long.Rows = make([][]table.Cell, maxRows+1)
	if n := notesOf(&long); len(n) != 2 ||
		n[1] != "1 more rows are not shown; for all of them: export the result as CSV or Parquet" {
		t.Errorf("%q", n)
	}
	long.Rows = make([][]table.Cell, maxRows+3)
	if n := notesOf(&long); len(n) != 2 ||
		n[1] != "3 more rows are not shown; for all of them: export the result as CSV or Parquet" {
		t.Errorf("%q", n)
	}
	long.RawRows = "elsewhere"
	if n := notesOf(&long); len(n) != 2 || n[1] != "3 more rows are not shown; for all of them: elsewhere" {
		t.Errorf("%q", n)
	}
	for _, c := range []struct {
		text    string
		letters float64
		want    int
	}{
		{"", 10, 1}, {"one two", 10, 1}, {"one two", 7, 1}, {"one two", 6, 2}, {"sixteenletterssx", 8, 2},
		{"sixteenletterssxy", 8, 3}, {"a sixteenletterssx b", 8, 4},
		{strings.Repeat("word ", 50), 4, 12}, {strings.Repeat("word ", 12), 4, 12}, {strings.Repeat("word ", 11), 4, 11},
	} {
		if n := linesOf(c.text, c.letters); n != c.want {
			t.Errorf("%q in %v letters: %d lines, want %d", c.text, c.letters, n, c.want)
		}
	}
	for _, c := range []struct {
		v    float64
		want string
	}{{0, "#,##0"}, {-5, "#,##0"}, {1e15 - 1, "#,##0"}, {1e15, "#,##0.0"}, {1000.5, "#,##0.0"}, {999.5, "0.00"},
		{-1.5, "0.00"}, {0.5, "0.0000"}, {0.001, "0.0000"}, {0.0009, "0.00E+00"}, {math.Pi * 1e-9, "0.00E+00"}} {
		if have := formatOf(table.General, c.v); have != c.want {
			t.Errorf("%v is shown as %s, want %s", c.v, have, c.want)
		}
	}
}

// TestForeignParts checks that parts that are not as the library makes them are refused instead of being written
// partially.
func TestForeignParts(t *testing.T) {
	for name, try := range map[string]func(map[string]string) error{
		"no end":             func(p map[string]string) error { return appendTo(p, 1, "<x/>") },
		"no page set-up":     func(p map[string]string) error { return pageOf(p, 1, 1) },
		"no place for names": func(p map[string]string) error { return definedNames(p, nil) },
		"no end for charts":  func(p map[string]string) error { return addCharts(p, []place{{sheet: &table.Sheet{}}}, 1) },
		"no end for a page":  func(p map[string]string) error { return figuresPage(p, 1, []place{{}}) },
	} {
		if err := try(map[string]string{"xl/worksheets/sheet1.xml": "<worksheet>",
			"xl/workbook.xml": ""}); !errors.Is(err, ErrBook) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestChartsOfLongSheets checks that charts and colours end where the sheet does.
func TestChartsOfLongSheets(t *testing.T) {
	s := &table.Sheet{Name: "long", Columns: []table.Column{{Header: "x", Format: table.Integer},
		{Header: "y", Format: table.Integer}}}
	for i := range maxRows + 5 {
		s.Rows = append(s.Rows, []table.Cell{table.I(int64(i)), table.I(int64(i))})
	}
	chart := table.Chart{Kind: table.Map, Series: []table.Series{{Name: "y", Column: 1}}}
	if from, to := rowsOf(s, &chart); from != 0 || to != maxRows {
		t.Errorf("rows %d to %d", from, to)
	}
	s.Charts = []table.Chart{chart}
	if scales := colourScales(s); !strings.Contains(scales, fmt.Sprintf("B%d\"", maxRows+1)) {
		t.Errorf("%.200s", scales)
	}
}

// TestChartsAtTheirLimits checks that charts show markers up to 60 points, half-widths for the second column too, and
// only rows that have numbers.
func TestChartsAtTheirLimits(t *testing.T) {
	sheet := func(rows int, kinds ...table.Kind) *table.Sheet {
		s := &table.Sheet{Name: "s", Columns: []table.Column{{Header: "x"}, {Header: "±"}, {Header: "y"}}}
		for i := range rows {
			cell := table.N(float64(i))
			if len(kinds) > i {
				cell.Kind = kinds[i]
			}
			s.Rows = append(s.Rows, []table.Cell{table.N(1), table.N(2), cell})
		}
		return s
	}
	line := table.Chart{Kind: table.Lines, Series: []table.Series{{Name: "y", Column: 2, ErrorColumn: 1}}}
	for rows, marker := range map[int]string{59: "circle", 60: "circle", 61: "none"} {
		xml, err := chartXML(sheet(rows), &line)
		if err != nil || !strings.Contains(xml, `<c:symbol val="`+marker+`"/>`) || !strings.Contains(xml,
			"<c:plus><c:numRef><c:f>&#39;s&#39;!$B$2:") {
			t.Errorf("%d points: %v; markers %q wanted, and bars from the second column: %.1500s", rows, err, marker, xml)
		}
	}
	for _, c := range []struct {
		s        *table.Sheet
		from, to int
	}{
		{sheet(0), 0, 1}, {sheet(1), 0, 1}, {sheet(3), 0, 3}, {sheet(2, table.Empty, table.String), 0, 1},
		{sheet(4, table.Empty, table.Number, table.Number, table.Empty), 1, 3}, {sheet(2, table.Number, table.Empty), 0, 1},
	} {
		if from, to := rowsOf(c.s, &line); from != c.from || to != c.to {
			t.Errorf("%v: rows %d to %d, want %d to %d", c.s.Rows, from, to, c.from, c.to)
		}
	}
	line.Series = slices.Repeat(line.Series, table.MostSeries+1)
	if xml, err := chartXML(sheet(1), &line); err != nil ||
		strings.Count(xml, `<a:ln w="22225"><a:solidFill><a:srgbClr val="0072B2"/></a:solidFill><a:prstDash val="solid"/>`) != 2 {
		t.Errorf("%v: not the first and the seventh line alone look alike", err)
	}
	for rows, want := range map[int]string{0: "",
		1: `sqref="C2:C2"><cfRule type="colorScale" priority="1"><colorScale><cfvo type="min"/><cfvo type="max"/>`,
		2: `sqref="C2:C3"`} {
		s := sheet(rows)
		s.Charts = []table.Chart{{Kind: table.Map, Series: line.Series}}
		if scales := colourScales(s); !strings.Contains(scales, want) || (scales == "") != (want == "") {
			t.Errorf("a map of %d rows: %q", rows, scales)
		}
	}
}

// TestWidths checks that a column is at least as wide as the longest word of its header, even if its cells are shorter.
func TestWidths(t *testing.T) {
	for title, want := range map[string]float64{
		"x": minWidth, "twelve chars": 1.2*12 + 1, "a header of many words": headerWidth,
		"antidisestablishmentarianism of words": 1.2*28 + 1, strings.Repeat("w", 90): maxWidth,
	} {
		s := &table.Sheet{Columns: []table.Column{{Header: title}}}
		if have := columnWidthFor(s, nil, 0); math.Abs(have-want) > 1e-9 {
			t.Errorf("%q: %v, want %v", title, have, want)
		}
	}
	s := &table.Sheet{Columns: []table.Column{{Header: "x"}}}
	if have := columnWidthFor(s, [][]table.Cell{{table.S(strings.Repeat("c", 30))},
		{table.Missing(strings.Repeat("c", 60))}}, 0); have != 32 {
		t.Errorf("a cell of 30 characters: %v", have)
	}
}
