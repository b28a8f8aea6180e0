package experiments

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/text"
)

// ErrMissed says that a published number came out worse than its claim expects.
var ErrMissed = olaf.NewError(olaf.Missed, "an expectation was missed")

// ReproduceSchema names the document of a Reproduction.
const ReproduceSchema = "olafctl.reproduce/v2"

// Reproduction is every published number of some experiments beside ours.
type Reproduction struct {
	Schema      string             `json:"schema"`
	Provenance  results.Provenance `json:"provenance"`
	Experiments []string           `json:"experiments"` // that were run, in order
	Paper       []results.PaperRow `json:"paper"`
	// Missed lists the ids whose verdict is below what their claim expects.
	Missed []string `json:"missed"`
	// Invalid lists the experiments with an invalid run, and why.
	Invalid []string `json:"invalid"`
	// All lists the numbers of systems that are not here as well, where it is printed.
	All bool `json:"-"`
}

// Reproduce runs the experiments one after the other, each by run, and sets every published number that they reach beside
// ours; with all short ones, also those that none of them reached. What was done before an error comes back with it.
func (s Set) Reproduce(ctx context.Context, chosen Set, run func(context.Context, Experiment) (Judged, error)) (*Reproduction, error) {
	r := &Reproduction{Schema: ReproduceSchema, Missed: []string{}, Invalid: []string{}}
	for _, e := range chosen {
		report, err := run(ctx, e)
		if err != nil {
			return r.judged(), fmt.Errorf("%s: %w", e.Name, err)
		}
		r.Experiments = append(r.Experiments, e.Name)
		r.Paper = append(r.Paper, report.Paper()...)
		if err := report.Err(); err != nil {
			r.Invalid = append(r.Invalid, fmt.Sprintf("%s: %v", e.Name, err))
		}
	}
	if len(chosen) >= len(s.Short()) {
		r.addUnreached(s)
	}
	return r.judged(), nil
}

// addUnreached lists the claims that no experiment measured, so that nothing published is passed over in silence.
func (r *Reproduction) addUnreached(all Set) {
	for _, row := range paper.Compare(nil) {
		if slices.ContainsFunc(r.Paper, func(p results.PaperRow) bool { return p.ID == row.ID }) {
			continue
		}
		name := paper.ExperimentOf(row.ID)
		if _, err := all.Find(name); err == nil && !slices.Contains(r.Experiments, name) {
			row.Note = "its experiment was left out; run 'olafctl reproduce " + name + "'"
		}
		r.Paper = append(r.Paper, row)
	}
}

func (r *Reproduction) judged() *Reproduction {
	r.Missed = append(r.Missed, missed(r.Paper)...)
	return r
}

// missed lists the ids of rows whose verdict is below what is expected.
func missed(rows []results.PaperRow) (ids []string) {
	for _, row := range paper.Misses(rows) {
		ids = append(ids, row.ID)
	}
	return ids
}

// Expected is nil when every result of full length is what its claim expects. The error matches ErrMissed.
func Expected(rows []results.PaperRow) error {
	if ids := missed(rows); len(ids) > 0 {
		return fmt.Errorf("%w: %s", ErrMissed, strings.Join(ids, ", "))
	}
	return nil
}

// Document is the JSON form, ReproduceSchema.
func (r *Reproduction) Document() any { return r }

// WriteText prints every number of the systems that are here, a line for each of the others, and how many came out how, paper
// by paper. With All the numbers of the others are listed too.
func (r *Reproduction) WriteText(w io.Writer, v text.View) error {
	here := systems(r.Paper)
	listed := slices.DeleteFunc(slices.Clone(r.Paper), func(p results.PaperRow) bool { return !r.All && !here.tested(paper.SystemOf(p.ID)) })
	p := text.NewPage(w, v)
	p.Paper(listed)
	here.print(p, r.All)
	missed := "none below what is expected"
	if len(r.Missed) > 0 {
		missed = fmt.Sprintf("%d below what is expected: %s", len(r.Missed), strings.Join(r.Missed, ", "))
	}
	p.Say("", "%s", missed)
	return p.Err()
}

// Table is one line a published number.
func (r *Reproduction) Table() (header []string, rows [][]string) {
	header = []string{"id", "artefact", "row", "column", "unit", "ours", "ours_ci95", "published", "deviation_pct", "basis", "kind", "verdict", "expected", "source", "note"}
	for i := range r.Paper {
		p := &r.Paper[i]
		rows = append(rows, []string{p.ID, p.Artefact, p.Row, p.Column, p.Unit, text.Exact(p.Ours.Mean), text.Exact(p.Ours.CI95),
			text.Exact(p.Published), text.Exact(p.DeviationPct), p.Basis, p.Kind, p.Verdict, p.Expected, p.Source, p.Note})
	}
	return header, rows
}

// Err is nil when every run was valid and nothing was missed.
func (r *Reproduction) Err() error {
	if len(r.Invalid) > 0 {
		return fmt.Errorf("%w: %s", bench.ErrInvalid, strings.Join(r.Invalid, "; "))
	}
	return Expected(r.Paper)
}
