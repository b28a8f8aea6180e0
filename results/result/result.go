// Package result defines the document of a finished measurement. It contains the configuration, rows of metrics, blocks
// of cells, curves, the corresponding published numbers, and remarks. Text, CSV, workbook, figures and lists of runs
// are made only from a Result.
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

// Schema is the schema name of the document of a Result.
const Schema = "olafctl.result/v1"

// Result is the result of one measurement. Everything except Provenance is determined by Config and the seeds.
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
	// Found is the answer in one or more lines. Lists of runs show its first line.
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

// New returns an empty result of an experiment with the given configuration.
func New(experiment, artefact string, config any) *Result {
	return &Result{Schema: Schema, Experiment: experiment, Artefact: artefact, Config: config}
}

// Read reads a document of this package. It also reads the tables and figures that earlier versions stored, which have
// the same members.
func Read(document []byte) (*Result, error) {
	r := new(Result)
	if err := json.Unmarshal(document, r); err != nil {
		return nil, fmt.Errorf("read a result: %w", err)
	}
	r.declare()
	return r, nil
}

// TooShort returns a line that explains that a comparison has too few seeds for a verdict. It returns "" if there are
// enough.
func TooShort(seeds, enough int) string {
	if seeds >= enough {
		return ""
	}
	return fmt.Sprintf("too short: %d of %s; no order below is judged", seeds, olaf.Plural(enough, "seed"))
}

// Say adds a statement to the result.
func (r *Result) Say(format string, args ...any) {
	r.Statements = append(r.Statements, fmt.Sprintf(format, args...))
}

// Compare adds the paper's numbers for this experiment, compared with our results.
func (r *Result) Compare(ours paper.Ours) { r.PaperRows = paper.Compare(ours, r.Experiment) }

// Fail marks the result as based on an invalid run.
func (r *Result) Fail(err error) { r.err = err }

// Document returns the value whose JSON encoding is the result's document.
func (r *Result) Document() any { return r }

// Paper returns the comparison with the published numbers.
func (r *Result) Paper() []results.PaperRow { return r.PaperRows }

// Err returns nil if all runs were complete and valid, and otherwise an error.
func (r *Result) Err() error { return r.err }

// Table returns all numbers of the result, with one number per row of the table. These are the numbers in every row and
// every cell of the result, and in every point of its curves. For a row, the column block contains its group, and the
// column named column contains the metric. For a curve, block contains the panel, row the curve, and column the value
// of x.
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

// WriteText prints first the blocks and panels, then the published numbers, and then the statements.
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
