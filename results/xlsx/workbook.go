// Package xlsx writes a book of tables as an Excel workbook with native charts. The same book always produces the same
// bytes. The workbook is created by tealeg/xlsx, which does not support charts. This package therefore adds the parts
// for drawings, charts and printing, and then zips all parts in a fixed order and without times.
package xlsx

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tealeg/xlsx/v3"

	"github.com/olafctl/olaf/results/table"
)

// ErrBook is matched by errors about books that cannot be written as a workbook.
var ErrBook = errors.New("xlsx: the book can't be written")

const (
	// maxRows is the maximum number of rows per sheet. Spreadsheets become slow long before Excel's limit of 1,048,576
	// rows.
	maxRows = 50_000
	// maxText is Excel's limit for the number of characters in a cell.
	maxText             = 32_767
	minWidth, maxWidth  = 9.0, 70.0
	headerFill          = "FFDCE6F1"
	noteGrey, missingFg = "FF595959", "FF7F7F7F"
)

var formats = map[table.Format]string{
	table.Text: "general", table.Integer: "#,##0", table.Fixed1: "#,##0.0", table.Fixed3: "0.000",
}

// formatOf returns a number format that shows v with about four digits, for a column with the format General.
func formatOf(format table.Format, v float64) string {
	if format != table.General {
		return formats[format]
	}
	switch abs := math.Abs(v); {
	case v == math.Trunc(v) && abs < 1e15:
		return "#,##0"
	case abs >= 1000:
		return "#,##0.0"
	case abs >= 1:
		return "0.00"
	case abs >= 0.001:
		return "0.0000"
	}
	return "0.00E+00"
}

// Write writes b as a workbook. All charts are on an extra sheet, which precedes the first sheet that has charts.
func Write(w io.Writer, b *table.Book) error {
	file := xlsx.NewFile()
	styles := newStyles()
	placed, headings := arrangeCharts(b)
	figures := -1
	numbers := make([]int, len(b.Sheets)) // of the sheets' parts, from 1
	for i := range b.Sheets {
		if figures < 0 && len(chartsOf(&b.Sheets[i])) > 0 {
			if err := addFigures(file, headings, styles); err != nil {
				return err
			}
			figures = len(file.Sheets)
		}
		if err := addSheet(file, &b.Sheets[i], styles); err != nil {
			return err
		}
		numbers[i] = len(file.Sheets)
	}
	parts, err := file.MakeStreamParts()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBook, err)
	}
	parts["docProps/core.xml"] = coreProperties(b.Title)
	if err := setUpPages(parts, b, numbers); err != nil {
		return err
	}
	if figures > 0 {
		if err := figuresPage(parts, figures, placed); err != nil {
			return err
		}
		if err := addCharts(parts, placed, figures); err != nil {
			return err
		}
	}
	return zipParts(w, parts)
}

// setUpPages sets up how every sheet is printed.
func setUpPages(parts map[string]string, b *table.Book, numbers []int) error {
	var names []string
	for i := range b.Sheets {
		s := &b.Sheets[i]
		area, pages := printedPart(s)
		if err := appendTo(parts, numbers[i], colourScales(s)); err != nil {
			return err
		}
		if err := pageOf(parts, numbers[i], pages); err != nil {
			return err
		}
		names = append(names, definedName("Print_Area", numbers[i]-1, area), definedName("Print_Titles", numbers[i]-1,
			quoteSheet(s.Name)+"!$1:$1"))
	}
	return definedNames(parts, names)
}

// zipParts writes the parts of the workbook as a zip file, in the order of their names. This order puts the content
// types first, as streaming readers expect.
func zipParts(w io.Writer, parts map[string]string) error {
	z := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		part, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return err
		}
		if _, err := io.WriteString(part, parts[name]); err != nil {
			return err
		}
	}
	return z.Close()
}

type styles struct{ header, note, missing, text, number *xlsx.Style }

func newStyles() styles {
	plain := func() *xlsx.Style {
		s := xlsx.NewStyle()
		s.Font.Name, s.Font.Size, s.ApplyFont = "Calibri", 11, true
		return s
	}
	s := styles{plain(), plain(), plain(), plain(), plain()}
	s.header.Font.Bold = true
	s.header.Fill, s.header.ApplyFill = *xlsx.NewFill("solid", headerFill, headerFill), true
	s.header.Alignment.WrapText, s.header.Alignment.Vertical, s.header.ApplyAlignment = true, "top", true
	s.note.Font.Color = noteGrey
	s.missing.Font.Color, s.missing.Font.Italic = missingFg, true
	s.number.Alignment.Vertical, s.number.ApplyAlignment = "top", true
	s.text.Alignment.WrapText, s.text.Alignment.Vertical, s.text.ApplyAlignment = true, "top", true
	return s
}

func addSheet(file *xlsx.File, s *table.Sheet, styles styles) error {
	sheet, err := file.AddSheet(s.Name)
	if err != nil {
		return fmt.Errorf("%w: sheet %q: %w", ErrBook, s.Name, err)
	}
	sheet.SheetViews = []xlsx.SheetView{{Pane: &xlsx.Pane{YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft",
		State: "frozen"}}}
	header := sheet.AddRow()
	for _, c := range s.Columns {
		cell := header.AddCell()
		cell.SetString(c.Title())
		cell.SetStyle(styles.header)
	}
	rows := s.Rows[:min(len(s.Rows), maxRows)]
	borders := outlineBorders(s)
	for i, row := range rows {
		if len(row) != len(s.Columns) {
			return fmt.Errorf("%w: sheet %q row %d has %d cells for %d columns", ErrBook, s.Name, i, len(row), len(s.Columns))
		}
		out := sheet.AddRow()
		for k, v := range row {
			cell := out.AddCell()
			setCell(cell, v, s.Columns[k].Format, styles)
			if b := borders[[2]int{i, k}]; b != nil {
				withBorder(cell, b)
			}
		}
	}
	for _, note := range notesOf(s) {
		cell := sheet.AddRow().AddCell()
		cell.SetString(clipText(note))
		cell.SetStyle(styles.note)
	}
	widths := make([]float64, len(s.Columns))
	for k := range s.Columns {
		widths[k] = columnWidthFor(s, rows, k)
		sheet.SetColWidth(k+1, k+1, widths[k])
	}
	if err := fitHeights(sheet, s, rows, widths); err != nil {
		return fmt.Errorf("%w: sheet %q: %w", ErrBook, s.Name, err)
	}
	return nil
}

// notesOf returns the lines below the rows of a sheet. The first line is empty.
func notesOf(s *table.Sheet) []string {
	var out []string
	if more := len(s.Rows) - maxRows; more > 0 {
		where := s.RawRows
		where = cmp.Or(where, "export the result as CSV or Parquet")
		out = append(out, fmt.Sprintf("%d more rows are not shown; for all of them: %s", more, where))
	}
	if s.Title != "" {
		out = append(out, s.Title)
	}
	if s.Command != "" {
		out = append(out, "made by: "+s.Command)
	}
	out = append(out, s.Notes...)
	if len(out) > 0 {
		out = append([]string{""}, out...)
	}
	return out
}

func setCell(cell *xlsx.Cell, v table.Cell, format table.Format, styles styles) {
	switch {
	case v.Kind == table.Number:
		cell.SetFloatWithFormat(v.Number, formatOf(format, v.Number))
		if v.Formula != "" {
			cell.SetFormula(v.Formula)
		}
		cell.SetStyle(styles.number)
	case v.Kind == table.String:
		cell.SetString(clipText(v.Text))
		cell.SetStyle(styles.text)
	case v.Text != "":
		cell.SetString(clipText(v.Text))
		cell.SetStyle(styles.missing)
	}
}

// outlineBorders returns the borders that draw the outlines of a sheet's maps, by row and column of the cell.
func outlineBorders(s *table.Sheet) map[[2]int]*xlsx.Border {
	borders := map[[2]int]*xlsx.Border{}
	for i := range s.Charts {
		c := &s.Charts[i]
		for _, o := range c.Outlines {
			style := map[bool]string{true: "mediumDashed", false: "medium"}[o.Dashed]
			for _, e := range o.Edges {
				at := [2]int{e.Row, c.Series[e.Series].Column}
				if borders[at] == nil {
					borders[at] = xlsx.NewBorder("none", "none", "none", "none")
				}
				if e.Level {
					borders[at].Top = style
				} else {
					borders[at].Left = style
				}
			}
		}
	}
	return borders
}

// withBorder gives a cell its own copy of its style, with the given borders. The original style is shared with other
// cells.
func withBorder(cell *xlsx.Cell, b *xlsx.Border) {
	style := *cell.GetStyle()
	style.Border, style.ApplyBorder = *b, true
	cell.SetStyle(&style)
}

// clipText cuts text to Excel's limit, at the end of a character.
func clipText(s string) string {
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	return string([]rune(s)[:maxText-1]) + "…"
}

// headerWidth is the maximum width of a column that is due to its header. Longer headers are wrapped.
const headerWidth = 22.0

// Bold letters are wider than the digits that column widths count; lineHeight is in points.
const (
	boldWidth  = 1.2
	lineHeight = 15.0
	mostLines  = 12
)

// columnWidthFor returns the width of a column. It fits the widest cell, the header up to headerWidth, and the longest
// word in the header.
func columnWidthFor(s *table.Sheet, rows [][]table.Cell, k int) float64 {
	title := s.Columns[k].Title()
	widest := min(float64(boldWidth*float64(utf8.RuneCountInString(title)))+1, headerWidth)
	for word := range strings.FieldsSeq(title) {
		widest = max(widest, float64(boldWidth*float64(utf8.RuneCountInString(word)))+1)
	}
	for _, row := range rows {
		if row[k].Kind != table.Empty {
			widest = max(widest, float64(utf8.RuneCountInString(s.Columns[k].Pretty(row[k])))+2)
		}
	}
	return min(max(widest, minWidth), maxWidth)
}

// linesOf returns the number of lines that a text needs in a column whose width is given in letters.
func linesOf(text string, letters float64) int {
	lines, used := 1, 0.0
	for word := range strings.FieldsSeq(text) {
		n := float64(utf8.RuneCountInString(word))
		if used > 0 {
			used++ // the space
			if used+n > letters {
				lines, used = lines+1, 0
			}
		}
		lines += int((n - 1) / letters) // a word wider than the column is broken
		used += n
	}
	return min(lines, mostLines)
}

// fitHeights sets the heights of rows with wrapped text, because some programs do not do this themselves.
func fitHeights(sheet *xlsx.Sheet, s *table.Sheet, rows [][]table.Cell, widths []float64) error {
	fit := func(at, lines int) error {
		if lines < 2 {
			return nil
		}
		row, err := sheet.Row(at)
		if err == nil {
			row.SetHeight(float64(lines) * lineHeight)
		}
		return err
	}
	header := 1
	for k, c := range s.Columns {
		header = max(header, linesOf(c.Title(), (widths[k]-1)/boldWidth))
	}
	if err := fit(0, header); err != nil {
		return err
	}
	for i, row := range rows {
		lines := 1
		for k, v := range row {
			if v.Kind == table.String {
				lines = max(lines, linesOf(v.Text, widths[k]-1))
			}
		}
		if err := fit(i+1, lines); err != nil {
			return err
		}
	}
	return nil
}
