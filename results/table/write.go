package table

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteText prints the sheet as aligned columns, numbers to the right, notes below.
func (s *Sheet) WriteText(w io.Writer) error {
	lines := make([][]string, 0, len(s.Rows)+1)
	header := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		header[i] = c.Title()
	}
	lines = append(lines, header)
	for _, row := range s.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = s.Columns[i].Pretty(v)
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(s.Columns))
	for _, line := range lines {
		for i, v := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(v))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(s.alignedLine(line, widths) + "\n")
	}
	for _, n := range s.Notes {
		b.WriteString(n + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Sheet) alignedLine(line []string, widths []int) string {
	var b strings.Builder
	for i, v := range line {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(v))
		if i > 0 {
			b.WriteString("  ")
		}
		if s.Columns[i].Format == Text {
			b.WriteString(v + pad)
		} else {
			b.WriteString(pad + v)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// WriteCSV writes the sheet as RFC 4180 with a header line; missing numbers are empty fields.
func (s *Sheet) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	record := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		record[i] = c.Title()
	}
	if err := out.Write(record); err != nil {
		return err
	}
	for _, row := range s.Rows {
		for i, v := range row {
			record[i] = s.Columns[i].Plain(v)
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// MarshalJSON writes text as a string, a number as a number, and what is missing as null.
func (v Cell) MarshalJSON() ([]byte, error) {
	switch v.Kind {
	case String:
		return json.Marshal(v.Text)
	case Number:
		return json.Marshal(v.Number)
	}
	return []byte("null"), nil
}
