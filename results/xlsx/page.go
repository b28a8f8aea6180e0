package xlsx

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf/results/table"
	"github.com/tealeg/xlsx/v3"
)

// All charts are on one sheet, two side by side in blocks of rows: a heading, the charts, and a gap. Three blocks
// fill a page.
const (
	figuresName  = "Figures"
	chartColumns = 10
	chartRows    = 20
	blockRows    = chartRows + 2
	pageBlocks   = 3
	columnWidth  = 9.5
	figuresScale = 56 // percent
)

// place is the position of a chart on the sheet with figures.
type place struct {
	sheet       *table.Sheet
	chart       table.Chart
	column, row int
}

// arrangeCharts assigns a place to every panel of every chart. It also returns the heading of each sheet by the row in
// which it is placed.
func arrangeCharts(b *table.Book) (placed []place, headings map[int]string) {
	headings = map[int]string{}
	block := 0
	for i := range b.Sheets {
		s := &b.Sheets[i]
		panels := chartsOf(s)
		if len(panels) == 0 {
			continue
		}
		headings[block*blockRows] = s.Name + ": " + s.Title
		for k := range panels {
			if k > 0 && k%2 == 0 {
				block++
			}
			placed = append(placed, place{s, panels[k], k % 2 * chartColumns, block*blockRows + 1})
		}
		block++
	}
	return placed, headings
}

// chartsOf returns the charts of a sheet that are drawn on the sheet with figures. Maps are not among them, because
// their cells are coloured instead.
func chartsOf(s *table.Sheet) (list []table.Chart) {
	for k := range s.Charts {
		if s.Charts[k].Kind != table.Map {
			list = append(list, s.Charts[k].Panels()...)
		}
	}
	return list
}

// colourScales returns the XML that colours the numbers in a sheet's maps from light to dark. In a diverging map, both
// sides of 0 have different colours.
func colourScales(s *table.Sheet) string {
	var b strings.Builder
	for k := range s.Charts {
		c := &s.Charts[k]
		if c.Kind != table.Map || len(c.Series) == 0 || len(s.Rows) == 0 {
			continue
		}
		low, high := `<cfvo type="min"/>`, `<cfvo type="max"/>`
		if c.YMax > 0 {
			low, high = `<cfvo type="num" val="0"/>`, fmt.Sprintf(`<cfvo type="num" val="%g"/>`, c.YMax)
		}
		colours := `<color rgb="FFF2F6FA"/><color rgb="FF6699CC"/>`
		if c.Diverging {
			low, colours = low+`<cfvo type="num" val="0"/>`,
				`<color rgb="FF6699CC"/><color rgb="FFF2F6FA"/><color rgb="FFD9A066"/>`
		}
		from, to := c.Series[0].Column, c.Series[len(c.Series)-1].Column
		fmt.Fprintf(&b, `<conditionalFormatting sqref="%s2:%s%d"><cfRule type="colorScale" priority="%d"><colorScale>%s%s%s</colorScale></cfRule></conditionalFormatting>`,
			xlsx.ColIndexToLetters(from), xlsx.ColIndexToLetters(to), 1+min(len(s.Rows), maxRows), k+1, low, high, colours)
	}
	return b.String()
}

// addFigures adds the sheet on which the charts are placed.
func addFigures(file *xlsx.File, headings map[int]string, styles styles) error {
	sheet, err := file.AddSheet(figuresName)
	if err != nil {
		return fmt.Errorf("%w: sheet %q: %w", ErrBook, figuresName, err)
	}
	sheet.SetColWidth(1, 2*chartColumns, columnWidth)
	for row, text := range headings {
		cell, err := sheet.Cell(row, 0)
		if err != nil {
			return fmt.Errorf("%w: sheet %q: %w", ErrBook, figuresName, err)
		}
		cell.SetString(clipText(text))
		cell.SetStyle(styles.note)
	}
	return nil
}

// The printed part of a sheet has all columns on the width of a page, and only the beginning of a sheet that is too
// long or wide for paper.
const (
	rowsOfAPage    = 70
	printedRows    = 3 * rowsOfAPage
	printedColumns = 20
)

// pageOf sets up how a sheet is printed. It has the width of one landscape page, with the sheet's name and page
// numbers.
func pageOf(parts map[string]string, number, pages int) error {
	const off, on = `<pageSetUpPr fitToPage="false">`, `<pageSetUpPr fitToPage="true">`
	name := fmt.Sprintf("xl/worksheets/sheet%d.xml", number)
	if !strings.Contains(parts[name], off) {
		return fmt.Errorf("%w: %s has no page set-up", ErrBook, name)
	}
	parts[name] = strings.Replace(parts[name], off, on, 1)
	return appendTo(parts, number, pageXML(fmt.Sprintf(`fitToWidth="1" fitToHeight="%d"`, pages)))
}

func pageXML(fit string) string {
	return `<pageMargins left="0.4" right="0.4" top="0.4" bottom="0.6" header="0.3" footer="0.3"/><pageSetup paperSize="9" orientation="landscape" ` + fit + `/>` +
		`<headerFooter><oddFooter>&amp;L&amp;A&amp;R&amp;P / &amp;N</oddFooter></headerFooter>`
}

// figuresPage sets up how the sheet with figures is printed, so that no chart is cut by the end of a page.
func figuresPage(parts map[string]string, number int, placed []place) error {
	blocks := placed[len(placed)-1].row/blockRows + 1
	var breaks strings.Builder
	n := 0
	for at := pageBlocks; at < blocks; at += pageBlocks {
		fmt.Fprintf(&breaks, `<brk id="%d" max="16383" man="1"/>`, at*blockRows)
		n++
	}
	page := pageXML(fmt.Sprintf(`scale="%d"`, figuresScale))
	if n > 0 {
		page += fmt.Sprintf(`<rowBreaks count="%d" manualBreakCount="%d">%s</rowBreaks>`, n, n, breaks.String())
	}
	return appendTo(parts, number, page)
}

// printedPart returns the range of a sheet that is printed and the number of pages that it needs.
func printedPart(s *table.Sheet) (area string, pages int) {
	rows := 1 + min(len(s.Rows), maxRows)
	pages = (rows + rowsOfAPage - 1) / rowsOfAPage
	if rows > printedRows {
		rows, pages = rowsOfAPage, 1
	} else {
		rows += len(notesOf(s))
	}
	return fmt.Sprintf("%s!$A$1:$%s$%d", quoteSheet(s.Name),
		xlsx.ColIndexToLetters(min(len(s.Columns), printedColumns)-1), rows), pages
}

func quoteSheet(sheet string) string { return "'" + strings.ReplaceAll(sheet, "'", "''") + "'" }

// definedNames sets the printed range of each sheet, and repeats the sheet's header on every page.
func definedNames(parts map[string]string, names []string) error {
	const workbook, empty = "xl/workbook.xml", "<definedNames></definedNames>"
	if !strings.Contains(parts[workbook], empty) {
		return fmt.Errorf("%w: %s has no place for names", ErrBook, workbook)
	}
	parts[workbook] = strings.Replace(parts[workbook], empty, "<definedNames>"+strings.Join(names, "")+
		"</definedNames>", 1)
	return nil
}

func definedName(name string, sheet int, ref string) string {
	return fmt.Sprintf(`<definedName name="_xlnm.%s" localSheetId="%d">%s</definedName>`, name, sheet, escapeXML(ref))
}
