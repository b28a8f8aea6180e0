// Package result defines the document of a finished measurement: its configuration, its rows of metrics, blocks of
// cells and curves, the published numbers beside them, and remarks. Text, CSV, workbook, figures and lists of runs are
// made from a Result alone.
package result

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/text"
)

// Schema is the schema name of a Result's document.
const Schema = "olafctl.result/v1"

// Result is the result of one measurement. Everything but Provenance follows from Config and the seeds.
type Result struct {
	Schema     string              `json:"schema"`
	Provenance *results.Provenance `json:"provenance,omitempty"`
	Experiment string              `json:"experiment"`
	Artefact   string              `json:"artefact,omitempty"` // in a paper, such as Table 1
	Title      string              `json:"title,omitempty"`    // first line, in place of experiment and artefact
	Config     any                 `json:"config"`
	Seeds      []uint64            `json:"seeds,omitempty"`
	Quick      bool                `json:"quick,omitempty"`
	Short      string              `json:"short,omitempty"` // why there are too few seeds for a verdict
	Terms      []string            `json:"terms,omitempty"` // rules of a comparison, printed above it
	// Found is the answer in one or more lines; lists of runs show the first line.
	Found      []string           `json:"found,omitempty"`
	Metrics    Metrics            `json:"metrics,omitempty"` // for rows and groups
	Rows       []Row              `json:"rows,omitempty"`
	Blocks     []Block            `json:"blocks,omitempty"`
	Panels     []Panel            `json:"panels,omitempty"`
	Statements []string           `json:"statements"`
	PaperRows  []results.PaperRow `json:"paper,omitempty"`
	Partial    bool               `json:"partial,omitempty"` // stopped early
	// Closing is printed last and is not part of the document.
	Closing string `json:"-"`
	err     error
}

// New starts a result.
func New(experiment, artefact string, config any) *Result {
	return &Result{Schema: Schema, Experiment: experiment, Artefact: artefact, Config: config}
}

// Read reads a document of this package, or one of the tables and figures of earlier versions, which have the same members.
func Read(document []byte) (*Result, error) {
	r := new(Result)
	if err := json.Unmarshal(document, r); err != nil {
		return nil, fmt.Errorf("read a result: %w", err)
	}
	r.declare()
	return r, nil
}

// TooShort returns a line about a comparison with too few seeds for a verdict, or "".
func TooShort(seeds, enough int) string {
	if seeds >= enough {
		return ""
	}
	return fmt.Sprintf("too short: %d of %s; no order below is judged", seeds, olaf.Plural(enough, "seed"))
}

// Say adds a statement.
func (r *Result) Say(format string, args ...any) {
	r.Statements = append(r.Statements, fmt.Sprintf(format, args...))
}

// Compare adds the paper's numbers for this experiment beside ours.
func (r *Result) Compare(ours paper.Ours) { r.PaperRows = paper.Compare(ours, r.Experiment) }

// Fail marks a result that is based on an invalid run.
func (r *Result) Fail(err error) { r.err = err }

// Document returns the JSON form.
func (r *Result) Document() any { return r }

// Paper returns the comparison with the published numbers.
func (r *Result) Paper() []results.PaperRow { return r.PaperRows }

// Err returns nil if every run was complete and valid.
func (r *Result) Err() error { return r.err }

// Table lists every number of every row, every cell, and every point of every curve. For a row, block is its group, and column
// the metric; for a curve, block is the panel, row the curve, and column the value of x.
func (r *Result) Table() (header []string, rows [][]string) {
	header = []string{"block", "row", "column", "unit", "mean", "sd", "ci95", "min", "max", "n"}
	add := func(block, row, column, unit string, s *results.Statistic) {
		rows = append(rows, []string{block, row, column, unit, text.Exact(s.Mean), text.Exact(s.SD), text.Exact(s.CI95), text.Exact(s.Min),
			text.Exact(s.Max), fmt.Sprint(s.N)})
	}
	for _, l := range r.lines() {
		for i := range r.Rows {
			add(l.group, r.Rows[i].Name, l.metric.Name, l.metric.Unit, l.stats[i])
		}
	}
	for i := range r.Blocks {
		b := &r.Blocks[i]
		for _, line := range b.Rows {
			for k := range line.Cells {
				add(b.Name, line.Name, b.Columns[k], b.Unit, &line.Cells[k])
			}
		}
	}
	for i := range r.Panels {
		p := &r.Panels[i]
		for _, s := range p.Series {
			for k := range s.Y {
				add(p.Name, s.Name, text.Exact(results.Float(s.X[k])), p.YLabel, &s.Y[k])
			}
		}
	}
	return header, rows
}

// WriteText prints blocks and panels, then the published numbers, then the statements.
func (r *Result) WriteText(w io.Writer, v text.View) error {
	p := text.NewPage(w, v)
	quick := ""
	if r.Quick {
		quick = " (quick: fewer or shorter runs than its own)"
	}
	p.Say("", "%s%s", cmp.Or(r.Title, strings.TrimSuffix(r.Experiment+": "+r.Artefact, ": ")), quick)
	for _, line := range r.Found {
		p.Say("", "%s", line)
	}
	if r.Short != "" {
		p.Say("", "%s", r.Short)
	}
	for _, term := range r.Terms {
		p.Say("  ", "%s", term)
	}
	r.printRows(p)
	for i := range r.Blocks {
		r.Blocks[i].print(p)
	}
	for i := range r.Panels {
		r.Panels[i].print(p)
	}
	p.Printf("\n")
	p.Paper(r.PaperRows)
	for _, s := range r.Statements {
		p.Say("- ", "%s", s)
	}
	if r.Closing != "" {
		p.Say("", "%s", r.Closing)
	}
	return p.Err()
}
