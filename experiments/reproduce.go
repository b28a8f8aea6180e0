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

// ErrMissed reports that the verdict on a published number is worse than its claim expects.
var ErrMissed = olaf.NewError(olaf.Missed, "an expectation was missed")

// ReproduceSchema is the schema of a Reproduction's JSON form.
const ReproduceSchema = "olafctl.reproduce/v3"

// Reproduction contains every published number from a set of experiments next to our number.
type Reproduction struct {
	Schema      string             `json:"schema"`
	Provenance  results.Provenance `json:"provenance"`
	Experiments []string           `json:"experiments"` // experiments that were run, in order
	Paper       []results.PaperRow `json:"paper"`
	// Opposite lists the ids of our results that contradict the published ones. A repeated number counts once.
	Opposite []string `json:"opposite"`
	// Contradicting counts, by paper, the numbers that other numbers of the same paper rule out.
	Contradicting map[string]int `json:"contradicting"`
	// Missed lists the ids whose verdict is worse than the one recorded with their claim.
	Missed []string `json:"missed"`
	// Invalid lists the experiments with an invalid run, with the reasons.
	Invalid []string `json:"invalid"`
	// All makes WriteText also list the numbers of systems that cannot be measured here.
	All bool `json:"-"`
}

// Reproduce carries out the chosen experiments one after the other, by calling run, and compares every published number
// with ours. If the choice includes all short experiments, it also lists the numbers that no experiment measured. After
// an error it returns the results so far.
func (s Set) Reproduce(ctx context.Context, chosen Set,
	run func(context.Context, Experiment) (Judged, error)) (*Reproduction, error) {
	r := &Reproduction{Schema: ReproduceSchema, Opposite: []string{}, Contradicting: map[string]int{},
		Missed: []string{}, Invalid: []string{}}
	for _, e := range chosen {
		report, err := run(ctx, e)
		if err != nil {
			return r.fillVerdicts(), fmt.Errorf("%s: %w", e.Name, err)
		}
		r.Experiments = append(r.Experiments, e.Name)
		r.Paper = append(r.Paper, report.Paper()...)
		if err := report.Err(); err != nil {
			r.Invalid = append(r.Invalid, fmt.Sprintf("%s: %v", e.Name, err))
		}
	}
	if len(chosen) >= len(s.ShortOnes()) {
		r.addUnreached(s)
	}
	return r.fillVerdicts(), nil
}

// addUnreached adds the claims that no experiment measured. All published numbers are then listed.
func (r *Reproduction) addUnreached(all Set) {
	for _, row := range paper.Compare(nil) {
		if slices.ContainsFunc(r.Paper, func(p results.PaperRow) bool { return p.ID == row.ID }) {
			continue
		}
		name := paper.ExperimentOf(row.ID)
		_, err := all.Find(name)
		if err == nil && row.Verdict == string(paper.LeftOut) && !slices.Contains(r.Experiments, name) {
			row.Note = "its experiment was not run; run 'olafctl reproduce " + name + "'"
		}
		r.Paper = append(r.Paper, row)
	}
}

// fillVerdicts fills the fields that are computed from the rows.
func (r *Reproduction) fillVerdicts() *Reproduction {
	r.Missed = append(r.Missed, missedIDs(r.Paper)...)
	worst := worstOfRepeats(r.Paper)
	for i := range r.Paper {
		p := &r.Paper[i]
		if paper.Verdict(p.Verdict) == paper.Contradiction {
			r.Contradicting[paper.SystemOf(paper.Canonical(p.ID))]++
		}
		if p.SameAs == "" && noResult[paper.Basis(p.Basis)] == "" && worst[p.ID].Adverse() {
			r.Opposite = append(r.Opposite, p.ID)
		}
	}
	return r
}

// countResults returns the number of our results that have a verdict. A repeated number counts once.
func (r *Reproduction) countResults() (n int) {
	worst := worstOfRepeats(r.Paper)
	for i := range r.Paper {
		if p := &r.Paper[i]; p.SameAs == "" && noResult[paper.Basis(p.Basis)] == "" && worst[p.ID].Judges() {
			n++
		}
	}
	return n
}

// summarize returns three lines. They list the results that contradict the published ones, the papers that contradict
// themselves, and whether any verdict is worse than recorded.
func (r *Reproduction) summarize() []string {
	opposite := fmt.Sprintf("Opposite to what was printed: %d of %s", len(r.Opposite),
		olaf.Plural(r.countResults(), "result"))
	if len(r.Opposite) > 0 {
		opposite += ": " + strings.Join(r.Opposite, ", ")
	}
	papers := "Papers that contradict themselves: none"
	if n := len(r.Contradicting); n > 0 {
		var each []string
		for _, t := range tallySystems(r.Paper) {
			if k := r.Contradicting[t.name]; k > 0 {
				each = append(each, fmt.Sprintf("%s in %s", t.name, olaf.Plural(k, "number")))
			}
		}
		papers = fmt.Sprintf("Papers that contradict themselves: %d (%s)", n, strings.Join(each, ", "))
	}
	worse := "Worse than recorded: nothing"
	if len(r.Missed) > 0 {
		worse = fmt.Sprintf("Worse than recorded: %d: %s", len(r.Missed), strings.Join(r.Missed, ", "))
	}
	return []string{opposite, papers, worse}
}

// missedIDs returns the ids of rows whose verdict is worse than recorded.
func missedIDs(rows []results.PaperRow) []string {
	return olaf.Map(paper.FindMisses(rows), func(row results.PaperRow) string { return row.ID })
}

// CheckExpected returns an error if the verdict on a full-length result is worse than its claim expects. The error
// matches ErrMissed.
func CheckExpected(rows []results.PaperRow) error {
	if ids := missedIDs(rows); len(ids) > 0 {
		return fmt.Errorf("%w: %s", ErrMissed, strings.Join(ids, ", "))
	}
	return nil
}

// Document returns the reproduction in its JSON form, whose schema is ReproduceSchema.
func (r *Reproduction) Document() any { return r }

// WriteText prints every number of the systems implemented here, one line for each other system, the verdicts for each
// paper, and the summary. If All is set, it also lists the numbers of other systems.
func (r *Reproduction) WriteText(w io.Writer, v text.View) error {
	here := tallySystems(r.Paper)
	listed := slices.DeleteFunc(slices.Clone(r.Paper),
		func(p results.PaperRow) bool { return !r.All && !here.isTestable(paper.SystemOf(p.ID)) })
	p := text.NewPage(w, v)
	p.Paper(listed)
	here.printTallies(p, r.All)
	for _, line := range r.summarize() {
		p.Say("", "%s", line)
	}
	return p.Err()
}

// Table returns one line per published number.
func (r *Reproduction) Table() (header []string, rows [][]string) {
	header = []string{"id", "artefact", "row", "column", "unit", "ours", "ours_ci95", "published", "deviation_pct",
		"basis", "kind", "verdict", "expected", "same_as", "source", "note"}
	for i := range r.Paper {
		p := &r.Paper[i]
		rows = append(rows, []string{p.ID, p.Artefact, p.Row, p.Column, p.Unit, text.Exact(p.Ours.Mean),
			text.Exact(p.Ours.CI95),
			text.Exact(p.Published), text.Exact(p.DeviationPct), p.Basis, p.Kind, p.Verdict, p.Expected, p.SameAs,
			p.Source, p.Note})
	}
	return header, rows
}

// Err returns nil if every run was valid and every verdict is at least as good as expected.
func (r *Reproduction) Err() error {
	if len(r.Invalid) > 0 {
		return fmt.Errorf("%w: %s", bench.ErrInvalid, strings.Join(r.Invalid, "; "))
	}
	return CheckExpected(r.Paper)
}
