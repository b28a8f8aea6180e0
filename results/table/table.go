// Package table defines documents that consist of tables. A table is a named sheet of typed columns with charts.
// Workbook, report, text, CSV, JSON and Parquet are exported from the same book, so that they cannot disagree.
package table

import (
	"math"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/internal/exactmath"
)

// Book is a document that consists of sheets.
type Book struct {
	Title  string
	Sheets []Sheet
}

// Sheet is a table with a name and charts. Every row has one cell for each column.
type Sheet struct {
	Name    string // at most 31 characters, unique in its book
	Title   string
	Command string // command that produces it; may be empty
	Columns []Column
	Rows    [][]Cell
	Notes   []string // lines below the rows
	RawRows string   // place of all rows, if an exporter cannot include them
	Charts  []Chart
}

// Column describes a column of a sheet.
type Column struct {
	Header string
	Unit   string // shown in brackets behind the header
	Format Format
	Prose  bool // see GridColumn
	Spare  int
}

// Title returns the header of the column with its unit.
func (c Column) Title() string {
	if c.Unit == "" {
		return c.Header
	}
	return c.Header + " [" + c.Unit + "]"
}

// Format is the number format of a column.
type Format uint8

const (
	Text    Format = iota
	Integer        // 12,345
	Fixed1         // 1,234.5
	Fixed3         // 0.123
	General        // shortest
)

// Kind is the kind of content in a cell.
type Kind uint8

const (
	Empty Kind = iota
	String
	Number
)

// Cell is a value in a sheet. A missing number is Empty and has the reason in Text.
type Cell struct {
	Kind   Kind
	Text   string
	Number float64
	// Formula computes Number in a workbook from cells of its other sheets; empty for a plain number.
	Formula string
}

// S returns a cell with text.
func S(s string) Cell { return Cell{Kind: String, Text: s} }

// N returns a cell with a number. The cell is empty if v is not finite.
func N(v float64) Cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Cell{}
	}
	return Cell{Kind: Number, Number: v}
}

// maxExact is the largest integer that all programs preserve when they read it as a floating-point number.
const maxExact = 1 << 53

// I returns a cell with an integer. If v would be rounded as a float64, the cell contains it as text.
func I(v int64) Cell {
	if v > maxExact || v < -maxExact {
		return S(strconv.FormatInt(v, 10))
	}
	return N(float64(v))
}

// U returns a cell with a 64-bit number as text. It is for numbers that are identities and not quantities, such as
// seeds.
func U(v uint64) Cell { return S(strconv.FormatUint(v, 10)) }

// Missing returns a cell for a missing number, with the reason.
func Missing(why string) Cell { return Cell{Text: why} }

// Plain returns the content of a cell as text without digit grouping, so that a number can be parsed. It returns "" for
// an empty cell.
func (c Column) Plain(v Cell) string {
	switch v.Kind {
	case String:
		return v.Text
	case Number:
		return strconv.FormatFloat(v.Number, 'f', -1, 64)
	}
	return ""
}

// Pretty returns the content of a cell as text for display. A missing number is shown as a dash.
func (c Column) Pretty(v Cell) string {
	switch v.Kind {
	case String:
		return v.Text
	case Empty:
		return "–"
	}
	switch c.Format {
	case Integer:
		return groupDigits(v.Number, 0)
	case Fixed1:
		return groupDigits(v.Number, 1)
	case Fixed3:
		return groupDigits(v.Number, 3)
	}
	return shortest(v.Number)
}

// shortest returns v as text with six digits and without an exponent.
func shortest(v float64) string {
	s := strconv.FormatFloat(v, 'e', 5, 64)
	_, e, _ := strings.Cut(s, "e")
	exponent, _ := strconv.Atoi(e)
	s = strconv.FormatFloat(v, 'f', max(0, 5-exponent), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return strings.Replace(s, "-", "−", 1)
}

// groupDigits returns v as text with the given number of decimals and a comma between groups of three digits.
func groupDigits(v float64, decimals int) string {
	s := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole := len(s)
	if decimals > 0 {
		whole -= decimals + 1
	}
	out := s[whole:]
	for whole > 3 {
		out = "," + s[whole-3:whole] + out
		whole -= 3
	}
	out = s[:whole] + out
	if v < 0 && math.Abs(v) >= 0.5*exactmath.Pow(10, -float64(decimals)) {
		return "−" + out
	}
	return out
}
