package table

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"
)

// WriteText prints the sheet as columns that fit the page. Numbers are aligned to the right, and notes follow below.
func (s *Sheet) WriteText(w io.Writer, width int) error {
	g := Grid{}
	for _, c := range s.Columns {
		g.Columns = append(g.Columns, GridColumn{Header: c.Title(), Right: c.Format != Text, Prose: c.Prose, Spare: c.Spare})
	}
	for _, row := range s.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = s.Columns[i].Pretty(v)
		}
		g.Add(line...)
	}
	if err := g.Write(w, width); err != nil {
		return err
	}
	for _, n := range s.Notes {
		if _, err := io.WriteString(w, strings.Join(Fold(n, width), "\n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// WriteCSV writes the sheet as CSV according to RFC 4180, with a header line. Missing numbers are empty fields.
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

// MarshalJSON encodes text as a string, a number as a number, and a missing value as null.
func (v Cell) MarshalJSON() ([]byte, error) {
	switch v.Kind {
	case String:
		return json.Marshal(v.Text)
	case Number:
		return json.Marshal(v.Number)
	}
	return []byte("null"), nil
}
