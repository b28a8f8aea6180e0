package experiments

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/olafctl/olaf/results/table"
)

// mostBrief is how many numbers a list of runs shows of one table or figure.
const mostBrief = 4

// TableBrief says in a few words what a kept table found: its first row. It is empty where the document can't be read or holds none.
func TableBrief(document []byte) string {
	var t Table
	if json.Unmarshal(document, &t) != nil || len(t.Blocks) == 0 || len(t.Blocks[0].Rows) == 0 {
		return ""
	}
	b := &t.Blocks[0]
	line := &b.Rows[0]
	var cells []string
	for i := range min(len(line.Cells), len(b.Columns)) {
		cells = append(cells, b.Columns[i]+" "+value(&line.Cells[i]))
	}
	return strings.TrimRight(fmt.Sprintf("%s, %s: %s %s", b.Name, line.Name, few(cells, ", "), b.Unit), " ")
}

// FigureBrief says in a few words what a kept figure found: where the curves of its first panel end. It is empty where the document can't
// be read or has no curve.
func FigureBrief(document []byte) string {
	var f Figure
	if json.Unmarshal(document, &f) != nil || len(f.Panels) == 0 {
		return ""
	}
	p := &f.Panels[0]
	var at string
	var ends []string
	for i := range p.Series {
		s := &p.Series[i]
		if s.Name == PaperSeries || len(s.Y) == 0 || len(s.X) != len(s.Y) {
			continue
		}
		at = table.Column{Format: table.General}.Pretty(table.N(s.X[len(s.X)-1]))
		last := s.Last()
		ends = append(ends, s.Name+" "+value(&last))
	}
	if len(ends) == 0 {
		return ""
	}
	return fmt.Sprintf("%s at %s %s: %s", p.YLabel, p.XLabel, at, few(ends, "; "))
}

// few joins the first of some words.
func few(words []string, by string) string {
	if len(words) > mostBrief {
		words = append(words[:mostBrief:mostBrief], "…")
	}
	return strings.Join(words, by)
}
