// Package table is the neutral form of a document of tables: named sheets of typed columns, with the charts that belong
// to them. Workbook, report, text, CSV, JSON and Parquet are exporters of the same book, so they can't disagree.
package table

import (
	"math"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/internal/exactmath"
)

// Book is a document of sheets.
type Book struct {
	Title  string
	Sheets []Sheet
}

// Sheet is one table. Every row has a cell per column.
type Sheet struct {
	Name    string // at most 31 characters, unique in its book
	Title   string
	Command string // the command that makes it again; may be empty
	Columns []Column
	Rows    [][]Cell
	Notes   []string // lines below the rows
	RawRows string   // where all rows are, when an exporter can't hold them
	Charts  []Chart
}

// Column describes the cells below it.
type Column struct {
	Header string
	Unit   string // shown in brackets behind the header
	Format Format
	Prose  bool // see GridColumn
	Spare  int
}

// Title is the header with its unit.
func (c Column) Title() string {
	if c.Unit == "" {
		return c.Header
	}
	return c.Header + " [" + c.Unit + "]"
}

// Format is how the numbers of a column print.
type Format uint8

const (
	Text    Format = iota
	Integer        // 12,345
	Fixed1         // 1,234.5
	Fixed3         // 0.123
	General        // shortest
)

// Kind is what a cell holds.
type Kind uint8

const (
	Empty Kind = iota
	String
	Number
)

// Cell is one value. A number that is missing is Empty, with the reason in Text.
type Cell struct {
	Kind   Kind
	Text   string
	Number float64
	// Formula says how a workbook has Number from cells of its other sheets; empty where it is only a number.
	Formula string
}

// S is a text cell.
func S(s string) Cell { return Cell{Kind: String, Text: s} }

// N is a number cell, empty when v is not finite.
func N(v float64) Cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Cell{}
	}
	return Cell{Kind: Number, Number: v}
}

// maxExact is the largest integer that every reader of floating-point cells keeps.
const maxExact = 1 << 53

// I is an integer cell; what a float64 would round becomes text.
func I(v int64) Cell {
	if v > maxExact || v < -maxExact {
		return S(strconv.FormatInt(v, 10))
	}
	return N(float64(v))
}

// U is a 64-bit identity, such as a seed: always text, since it is not a quantity.
func U(v uint64) Cell { return S(strconv.FormatUint(v, 10)) }

// Missing is a number that is not there, and why.
func Missing(why string) Cell { return Cell{Text: why} }

// Plain prints a cell without grouping, so that it reads back: "" when empty.
func (c Column) Plain(v Cell) string {
	switch v.Kind {
	case String:
		return v.Text
	case Number:
		return strconv.FormatFloat(v.Number, 'f', -1, 64)
	}
	return ""
}

// Pretty prints a cell for people; a missing number shows as a dash.
func (c Column) Pretty(v Cell) string {
	switch v.Kind {
	case String:
		return v.Text
	case Empty:
		return "–"
	}
	switch c.Format {
	case Integer:
		return grouped(v.Number, 0)
	case Fixed1:
		return grouped(v.Number, 1)
	case Fixed3:
		return grouped(v.Number, 3)
	}
	return shortest(v.Number)
}

// shortest prints v with six digits, and never with an exponent.
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

// grouped prints v with the given decimals and a comma every three digits.
func grouped(v float64, decimals int) string {
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
