package compare

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// WriteText prints the comparison for people at a terminal: a table for each configuration, with as many digits as can be
// read, in units that suit. Sheet has all of them.
func (d *Document) WriteText(w io.Writer) error {
	for first := 0; first < len(d.Lines); {
		end := first + 1
		for end < len(d.Lines) && d.Lines[end].Queue == d.Lines[first].Queue && d.Lines[end].OutRateBPS == d.Lines[first].OutRateBPS {
			end++
		}
		if err := writeConfiguration(w, d.Lines[first:end]); err != nil {
			return err
		}
		first = end
	}
	_, err := io.WriteString(w, strings.Join(d.notes(), "\n")+"\n")
	return err
}

func writeConfiguration(w io.Writer, lines []Line) error {
	a, b := 0, 0
	for i := range lines {
		a, b = max(a, lines[i].A.N), max(b, lines[i].B.N)
	}
	if _, err := fmt.Fprintf(w, "%s at %v, runs: %d of A, %d of B\n", lines[0].Queue, olaf.Rate(lines[0].OutRateBPS), a, b); err != nil {
		return err
	}
	number := table.General
	short := strings.NewReplacer("Jain's index, ", "Jain, ", "transmission control", "control")
	s := table.Sheet{Columns: []table.Column{{Header: "METRIC"}, {Header: "A", Format: number}, {Header: "B", Format: number}, {Header: "CHANGE", Format: number},
		{Header: "B − A, PAIRED", Format: number}, {Header: "P", Format: number}, {Header: "EFFECT", Format: number}, {Header: "VERDICT"}}}
	for i := range lines {
		l := &lines[i]
		by, unit := l.scale()
		title := short.Replace(l.Title)
		if unit != "" && !strings.HasPrefix(strings.ToLower(title), unit) {
			title += ", " + unit
		}
		var row []table.Cell
		for _, content := range []string{title, text.Rounded(&l.A, by), text.Rounded(&l.B, by), change(l.ChangePct), text.Rounded(&l.Difference.Statistic, by), probability(l.P), fixed(l.Effect, 2), l.Verdict} {
			row = append(row, table.S(content))
		}
		s.Rows = append(s.Rows, row)
	}
	s.Notes = []string{""}
	return s.WriteText(w)
}

// scale is the unit in which a line prints, and what its numbers are multiplied with for it: of ns the one in which the
// larger side is above 1.
func (l *Line) scale() (by float64, unit string) {
	if l.Unit != "ns" {
		return 1, l.Unit
	}
	largest := 0.0
	for _, f := range []results.Float{l.A.Mean, l.B.Mean} {
		if f.Known() {
			largest = max(largest, math.Abs(float64(f)))
		}
	}
	for _, u := range []struct {
		worth float64
		name  string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if largest >= u.worth {
			return 1 / u.worth, u.name
		}
	}
	return 1, "ns"
}

func change(pct results.Float) string {
	switch {
	case !pct.Known():
		return "–"
	case math.Abs(float64(pct)) < 0.05:
		return "0.0 %"
	case pct > 0:
		return "+" + text.Decimal(float64(pct), 1) + " %"
	}
	return text.Decimal(float64(pct), 1) + " %"
}

func fixed(f results.Float, decimals int) string {
	if !f.Known() {
		return "–"
	}
	return text.Decimal(float64(f), decimals)
}

// probability never prints a p of nought, which no test gives.
func probability(p results.Float) string {
	if p.Known() && p < 0.0005 {
		return "<0.001"
	}
	return fixed(p, 3)
}
