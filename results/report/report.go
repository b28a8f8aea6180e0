// Package report writes a result as a single self-contained HTML file. The file contains verdicts, figures with their
// data and the command that made them, and the origin of the result. It needs no network and no script, follows the
// reader's light or dark setting, and can be printed. The same result always produces the same bytes.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

//go:embed report.html
var page string

// shownRows is the maximum number of rows of a table in the report. The workbook and the exports contain all rows.
const shownRows = 400

type model struct {
	Title, Experiment, Device, Started, Command string
	Valid                                       bool
	Validity                                    string
	Real                                        [][2]string // for runs on real wires: topic and text
	Statements                                  []string
	Window                                      string
	Parameters                                  [][2]string
	Paper                                       []claim
	Counts                                      []count
	Figures                                     []section
	Tables                                      []section
}

// count is the number of claims that have a certain verdict.
type count struct {
	Verdict, Class string
	N              int
}

type claim struct {
	Where, What, Source, Note string
	Ours, Half, Published     string
	Difference                string
	Verdict, Class            string
}

// section is a part of the report with a figure and its table, or with only a table.
type section struct {
	ID, Title, Caption string
	Figure             template.HTML
	Wide               bool // the figure spans the page
	Table              *rendered
	Open               bool
}

type rendered struct {
	Header []cell
	Rows   [][]cell
	Notes  []string
}

type cell struct {
	Text   string
	Number bool
	Title  string // tooltip with the reason why a value is missing
}

// Write writes the report of r to w.
func Write(w io.Writer, r *sheets.Result) error {
	t, err := template.New("report").Parse(page)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	m, err := modelOf(r)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return t.Execute(w, m)
}

func modelOf(r *sheets.Result) (*model, error) {
	b := r.Bench
	m := &model{Title: "olafctl " + b.Experiment, Experiment: b.Experiment, Device: b.Provenance.Device,
		Started: formatTime(b.Provenance.Started),
		Command: strings.Join(b.Provenance.Command, " "), Valid: r.Valid(), Statements: slices.Concat(b.Terms, b.Statements), Window: b.Window}
	_, m.Validity, _ = strings.Cut(r.Validity(), ": ")
	m.Real, m.Parameters = sheets.Real(b), parametersOf(b)
	for i := range b.Paper {
		m.Paper = append(m.Paper, claimOf(&b.Paper[i]))
	}
	m.Counts = countsOf(m.Paper)
	for _, s := range sheets.Book(r).Sheets {
		section, err := sectionOf(&s)
		if err != nil {
			return nil, err
		}
		switch {
		case s.Name == "Summary" || s.Name == "Events":
			// Verdicts have a separate table, and frames are only in the workbook.
		case section.Figure != "":
			m.Figures = append(m.Figures, section)
		default:
			section.Open = s.Name == "Comparisons"
			m.Tables = append(m.Tables, section)
		}
	}
	return m, nil
}

// formatTime formats an RFC 3339 time without seconds.
func formatTime(when string) string {
	at, err := time.Parse(time.RFC3339Nano, when)
	if err != nil {
		return when
	}
	return at.UTC().Format("2 January 2006, 15:04 UTC")
}

// mostParameters is the maximum number of parameters at the top of a report. The workbook's README sheet contains all
// of them.
const mostParameters = 32

// parametersOf returns the scalar values in a bench's configuration, with the last key of their path. It omits lists,
// such as seeds.
func parametersOf(b *results.Bench) (list [][2]string) {
	for _, leaf := range results.ListLeaves(b.Config) {
		if name := leaf[0][strings.LastIndex(leaf[0], ".")+1:]; !strings.Contains(leaf[0], "[") &&
			name != "experiment" && leaf[1] != "" && len(list) < mostParameters {
			list = append(list, [2]string{strings.ReplaceAll(name, "_", " "), leaf[1]})
		}
	}
	return list
}

func claimOf(p *results.PaperRow) claim {
	c := claim{Where: paper.ExperimentOf(p.ID), What: p.Row + ", " + p.Column, Source: p.Source,
		Note:      strings.TrimPrefix(p.Basis+"; "+p.Note, "; "),
		Published: text.FormatPublished(p), Verdict: p.Verdict, Class: string(paper.Verdict(p.Verdict).Grade())}
	if p.Ours.Known() {
		c.Ours, c.Half = text.FormatRoundedParts(&p.Ours, 1)
	}
	if p.Unit != "" {
		c.What += " [" + p.Unit + "]"
	}
	if p.DeviationPct.Known() {
		c.Difference = table.Column{Format: table.Fixed1}.Pretty(table.N(float64(p.DeviationPct))) + " %"
	}
	return c
}

// countsOf counts the claims with each verdict. The verdicts are in the order of the first claim that has them.
func countsOf(claims []claim) (counts []count) {
	at := map[string]int{}
	for _, c := range claims {
		i, ok := at[c.Verdict]
		if !ok {
			i = len(counts)
			at[c.Verdict] = i
			counts = append(counts, count{Verdict: c.Verdict, Class: c.Class})
		}
		counts[i].N++
	}
	return counts
}

func sectionOf(s *table.Sheet) (section, error) {
	out := section{ID: strings.ToLower(s.Name), Title: s.Name, Caption: s.Title, Table: renderedOf(s)}
	if figure.HasData(s) {
		var svg strings.Builder
		if err := figure.SVG(&svg, s); err != nil {
			return out, err
		}
		out.Wide = figure.IsWide(s)
		out.Figure = template.HTML(svg.String()) // the figure escapes its own text
	}
	return out, nil
}

func renderedOf(s *table.Sheet) *rendered {
	out := &rendered{}
	for _, c := range s.Columns {
		out.Header = append(out.Header, cell{Text: c.Title(), Number: c.Format != table.Text})
	}
	for _, row := range s.Rows[:min(len(s.Rows), shownRows)] {
		line := make([]cell, len(row))
		for k, v := range row {
			line[k] = cell{Text: s.Columns[k].Pretty(v), Number: s.Columns[k].Format != table.Text}
			if v.Kind == table.Empty {
				line[k].Title = v.Text
			}
		}
		out.Rows = append(out.Rows, line)
	}
	if more := len(s.Rows) - shownRows; more > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d more rows are in the workbook and in the exports.", more))
	}
	return out
}
