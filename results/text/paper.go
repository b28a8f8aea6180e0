package text

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/table"
)

// Paper prints the published numbers compared with ours, with basis and verdict, by artefact. Below each number it
// prints our results under other assumptions that change the verdict. With Explain it also prints notes and all other
// assumptions.
func (p *Page) Paper(rows []results.PaperRow) {
	if len(rows) == 0 {
		return
	}
	g := &table.Grid{Columns: []table.GridColumn{{Header: "PUBLISHED", Prose: true}, {Header: "OURS", Right: true},
		{Header: "PAPER", Right: true},
		{Header: "DIFF", Right: true}, {Header: "VERDICT", Prose: true}}}
	var notes footnotes
	more := false
	for artefact := range artefacts(rows) {
		basis := sharedBasis(artefact)
		g.Head(headOf(&artefact[0], basis))
		for i := range artefact {
			r := &artefact[i]
			verdict := r.Verdict
			if basis == "" {
				verdict += ", " + r.Basis
			}
			if p.Explain || slices.Contains(withReason, paper.Verdict(r.Verdict)) {
				verdict += notes.mark(r.Note)
			} else {
				more = more || r.Note != ""
			}
			g.Add("  "+r.Row+" "+columnOf(r), FormatRounded(&r.Ours, 1), FormatPublished(r), Percent(r.DeviationPct), verdict)
			for k := range r.Sensitivity {
				if s := &r.Sensitivity[k]; p.Explain || s.Verdict != r.Verdict {
					g.Add("    "+s.Assumption, FormatRounded(&s.Ours, 1), "", "", s.Verdict)
				}
			}
		}
	}
	p.Grid(g)
	for i, note := range notes {
		p.Say(fmt.Sprintf("[%d] ", i+1), "%s", note)
	}
	if more {
		p.Say("", "notes on each number: --explain")
	}
	p.Printf("\n")
}

// withReason lists the verdicts that must be printed with their reason, because they mean little without it.
var withReason = []paper.Verdict{paper.Contradiction, paper.TooShort, paper.LeftOut, paper.NotTestable, paper.TheirMachine}

// artefacts returns an iterator over the rows of each artefact. The rows of an artefact must be adjacent.
func artefacts(rows []results.PaperRow) iter.Seq[[]results.PaperRow] {
	return func(yield func([]results.PaperRow) bool) {
		for first, i := 0, 0; i < len(rows); i++ {
			last := i == len(rows)-1 || paper.ExperimentOf(rows[i+1].ID) != paper.ExperimentOf(rows[first].ID)
			if last && !yield(rows[first:i+1]) {
				return
			}
			if last {
				first = i + 1
			}
		}
	}
}

// sharedBasis returns the basis that all rows have, or "" if they differ.
func sharedBasis(rows []results.PaperRow) string {
	for i := range rows {
		if rows[i].Basis != rows[0].Basis {
			return ""
		}
	}
	return rows[0].Basis
}

// headOf returns the heading of an artefact, which consists of its name, its place in the paper and, if all our numbers
// have the same, their basis.
func headOf(r *results.PaperRow, basis string) string {
	head := paper.ExperimentOf(r.ID)
	if r.Source != "" {
		head += ": " + r.Source
	}
	if basis != "" {
		head += "; " + basis
	}
	return head
}

// columnOf returns a published number's column with its unit. For example, it returns "lost, %" for column lost_pct in
// per cent.
func columnOf(r *results.PaperRow) string {
	column := strings.TrimSuffix(r.Column, "_pct")
	if r.Unit == "" {
		return column
	}
	return column + ", " + r.Unit
}

// FormatPublished returns the number that a paper printed as text. A bound has its side before it.
func FormatPublished(r *results.PaperRow) string {
	number := r.Published
	if !number.Known() {
		number = r.Than
	}
	side := map[string]string{"": "", "above": "> ", "below": "< "}[r.Side]
	return side + formatPrinted(number)
}

// formatPrinted returns a number as text in the form in which a paper prints it.
func formatPrinted(f results.Float) string {
	if !f.Known() {
		return Missing
	}
	return strings.Replace(strconv.FormatFloat(float64(f), 'f', -1, 64), "-", "−", 1)
}

// footnotes collects remarks that are printed under a table, each only once.
type footnotes []string

// mark returns the reference to a footnote for the given note, or "" for an empty note.
func (f *footnotes) mark(note string) string {
	if note == "" {
		return ""
	}
	at := slices.Index(*f, note)
	if at < 0 {
		at = len(*f)
		*f = append(*f, note)
	}
	return fmt.Sprintf(" [%d]", at+1)
}
