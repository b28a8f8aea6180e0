package result

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf/results/table"
)

// mostBrief is the maximum number of values per result in a list of runs.
const mostBrief = 4

// Brief returns a one-line summary of the findings. It is the answer if there is one, and otherwise one number from
// each row, the first row of the first block, or the ends of the curves in the first panel.
func (r *Result) Brief() string {
	switch {
	case len(r.Found) > 0:
		return r.Found[0]
	case len(r.lines()) > 0:
		return r.rowBrief()
	case len(r.Blocks) > 0 && len(r.Blocks[0].Rows) > 0:
		return r.Blocks[0].brief()
	case len(r.Panels) > 0:
		return r.Panels[0].brief()
	}
	return ""
}

// brief returns the first row of a block in one line.
func (b *Block) brief() string {
	line := &b.Rows[0]
	var cells []string
	for i := range min(len(line.Cells), len(b.Columns)) {
		cells = append(cells, b.Columns[i]+" "+value(&line.Cells[i]))
	}
	return strings.TrimRight(fmt.Sprintf("%s, %s: %s %s", b.Name, line.Name, few(cells, ", "), b.Unit), " ")
}

// brief returns the values at the end of each of the panel's curves in one line.
func (p *Panel) brief() string {
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

// few joins at most mostBrief words with the given separator.
func few(words []string, by string) string {
	if len(words) > mostBrief {
		words = append(words[:mostBrief:mostBrief], "…")
	}
	return strings.Join(words, by)
}
