package compare

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// WriteText prints the comparison for a terminal, as one table per configuration. The tables contain the metrics that
// differ, or all metrics if all is set. Units and precision are readable; Sheet has all digits.
func (d *Document) WriteText(w io.Writer, v text.View, all bool) error {
	p := text.NewPage(w, v)
	notes, err := d.eachTable(all, func(title string, s *table.Sheet) error {
		p.Say("", "%s", title)
		s.Notes = []string{""}
		return errors.Join(p.Err(), s.WriteText(w, v.Columns()))
	})
	for _, note := range notes {
		p.Say("", "%s", note)
	}
	return errors.Join(err, p.Err())
}

// WriteMarkdown prints the same tables as WriteText in Markdown, for a pull request.
func (d *Document) WriteMarkdown(w io.Writer, all bool) error {
	notes, err := d.eachTable(all, func(title string, s *table.Sheet) error {
		_, err := fmt.Fprintf(w, "**%s**\n\n", quoteMarkdown(title))
		cells := make([]string, len(s.Columns))
		for i, c := range s.Columns {
			cells[i] = quoteMarkdown(c.Header)
		}
		rows := [][]string{cells, slices.Repeat([]string{"---"}, len(cells))}
		for _, r := range s.Rows {
			row := make([]string, len(r))
			for i := range r {
				row[i] = quoteMarkdown(r[i].Text)
			}
			rows = append(rows, row)
		}
		for _, r := range rows {
			if err == nil {
				_, err = fmt.Fprintf(w, "| %s |\n", strings.Join(r, " | "))
			}
		}
		if err == nil {
			_, err = fmt.Fprintln(w)
		}
		return err
	})
	if err == nil {
		_, err = io.WriteString(w, quoteMarkdown(strings.Join(notes, "\n\n"))+"\n")
	}
	return err
}

// markup matches Markdown markup and the character that ends a table cell. They must be quoted, because names come from
// files. "<" before a number is not matched.
var markup = regexp.MustCompile("[\\\\|`*\\[~]|<[A-Za-z/!?]")

// quoteMarkdown quotes Markdown markup in s.
func quoteMarkdown(s string) string { return markup.ReplaceAllString(s, `\$0`) }

// eachTable calls print for the lines of every configuration and returns the notes to print below them.
func (d *Document) eachTable(all bool, print func(title string, s *table.Sheet) error) (notes []string, err error) {
	hidden := 0
	for first := 0; first < len(d.Lines); {
		end := first + 1
		for end < len(d.Lines) && d.Lines[end].Queue == d.Lines[first].Queue &&
			d.Lines[end].OutRateBPS == d.Lines[first].OutRateBPS {
			end++
		}
		var shown []*Line
		for i := first; i < end; i++ {
			if l := &d.Lines[i]; all || l.Verdict != notSeen {
				shown = append(shown, l)
			}
		}
		hidden += end - first - len(shown)
		if len(shown) > 0 {
			if err := print(titleOf(d.Lines[first:end]), sheetOf(shown)); err != nil {
				return nil, err
			}
		}
		first = end
	}
	if len(d.TwinAges) > 0 {
		if err := print("ages next to the twin's: for the plan, for the logged arrivals, and as measured",
			d.twinSheet()); err != nil {
			return nil, err
		}
	}
	left, err := d.printClusters(all, print)
	if err != nil {
		return nil, err
	}
	notes = d.notes()
	if left > 0 {
		notes = append([]string{fmt.Sprintf("%d more ages of single clusters; --all lists them", left)}, notes...)
	}
	if hidden > 0 {
		notes = append([]string{fmt.Sprintf("no difference shown in %d of %d lines; --all lists them", hidden,
			len(d.Lines))}, notes...)
	}
	return notes, nil
}

func titleOf(lines []Line) string {
	a, b := 0, 0
	for i := range lines {
		a, b = max(a, lines[i].A.N), max(b, lines[i].B.N)
	}
	return fmt.Sprintf("%s%s, runs: %d of A, %d of B", lines[0].Queue, atRate(lines[0].OutRateBPS), a, b)
}

func sheetOf(lines []*Line) *table.Sheet {
	number := table.General
	short := strings.NewReplacer("Jain's index, ", "Jain, ", "transmission control", "control")
	s := &table.Sheet{Columns: []table.Column{{Header: "METRIC", Prose: true}, {Header: "A", Format: number},
		{Header: "B", Format: number}, {Header: "CHANGE", Format: number, Spare: 1},
		{Header: "B − A, PAIRED", Format: number}, {Header: "P", Format: number}, {Header: "SIGNED RANK",
			Format: number, Spare: 2}, {Header: "VERDICT"}}}
	for _, l := range lines {
		by, unit := text.ScaleOf(l.Unit, &l.A, &l.B)
		title := short.Replace(l.Title)
		if !strings.HasPrefix(strings.ToLower(title), unit) {
			title += ", " + unit
		}
		var row []table.Cell
		for _, content := range []string{title, text.FormatRounded(&l.A, by), text.FormatRounded(&l.B, by),
			text.Percent(l.ChangePct), text.FormatRounded(&l.Difference.Statistic, by), formatP(l.PHolm),
			formatP(l.PSignedRank), l.Verdict} {
			row = append(row, table.S(content))
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// twinSheet returns a table of the ages that were compared with the twin's ages on either side. Planned and logged
// arrivals differ because of the senders, and the twin and the measured age because of the output.
func (d *Document) twinSheet() *table.Sheet {
	number := table.General
	s := &table.Sheet{Columns: []table.Column{{Header: "AGE", Prose: true}, {Header: "QUEUE"}, {Header: "OUT"},
		{Header: "RUN"}, {Header: "PLAN", Format: number},
		{Header: "TWIN", Format: number}, {Header: "MEASURED", Format: number}, {Header: "MEASURED/TWIN, %",
			Format: number, Spare: 1}}}
	for i := range d.TwinAges {
		line := &d.TwinAges[i]
		for _, side := range []struct {
			name string
			ages *results.TwinComparison
		}{{"A", line.A}, {"B", line.B}} {
			if b := side.ages; b != nil {
				s.Rows = append(s.Rows, []table.Cell{table.S(line.Title), table.S(line.Queue),
					table.S(olaf.Rate(line.OutRateBPS).String()), table.S(side.name),
					table.S(text.Duration(b.Plan)), table.S(text.Duration(b.Twin)), table.S(text.Duration(b.Measured)),
					table.S(text.FormatSigned(b.OutputPct()))})
			}
		}
	}
	return s
}

// formatP returns a p-value as text. It never returns 0, because no test has this result.
func formatP(p results.Float) string {
	switch {
	case !p.Known():
		return "–"
	case p < 0.0005:
		return "<0.001"
	}
	return text.Decimal(float64(p), 3)
}
