// Package paper contains all numbers and trends that the papers published, as data. Each has its place in the paper,
// its kind, the basis of our number, and the expected verdict. The package judges results by them. Tables, workbook,
// report and the command reproduce all use this package. Each paper has a file, which is named after its system, and an
// entry in the list papers.
package paper

import (
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/olafctl/olaf/results"
)

// Basis describes what our number is based on.
type Basis string

const (
	Calibrated Basis = "calibrated" // fitted to the same numbers with which it is compared
	Predicted  Basis = "predicted"  // fitted to other numbers, or not fitted
	Input      Basis = "input"      // an input taken from the paper, so that our number proves nothing
	Arithmetic Basis = "arithmetic" // follows in any model from printed numbers or from the setup
	Timed      Basis = "measured"   // measured on a real solver, card or logic
)

// Kind is the kind of a statement in a paper: a value, a bound or a trend.
type Kind string

const (
	Value Kind = "value" // a number
	Bound Kind = "bound" // a limit that results are above or below
	Trend Kind = "trend" // a direction or shape, without a number
)

// Side is the side on which the paper's results are, relative to the number of a bound or the reference of a trend.
type Side string

const (
	Above Side = "above"
	Below Side = "below"
)

// Neighbour is the reference of a claim. If our value is far from the printed value, or no number is printed, the
// verdict depends on which side of the reference our value is. The reference is another claim or, if ID is empty, a
// number such as 1 for a speed-up.
type Neighbour struct {
	ID string
	Is float64
}

// Claim is a published number or statement with which our results are compared.
type Claim struct {
	ID       string // paper/artefact.row.column: olaf/table1.fifo.40g.received
	Was      string // id in documents from before papers had names; empty for newer claims
	Artefact string // name within the paper: table1, aom, fig6, …
	Row      string
	Column   string
	Printed  string  // as the paper prints it; empty for a trend
	Value    float64 // value of Printed; NaN if nothing is printed
	Rounding float64 // half a unit of the last printed digit
	Unit     string
	Kind     Kind
	Basis    Basis
	// Side is the side of a bound or trend. For a value it follows from the printed neighbour.
	Side      Side
	Neighbour *Neighbour
	// Unfairness means that the number is a fairness index, which is judged by its distance to 1.
	Unfairness bool
	// Seeds is the number of runs that the number needs. With fewer runs, a result is too short to judge.
	Seeds int
	// Expect is the known verdict. A worse verdict is a miss.
	Expect Verdict
	// Explanation explains why our number differs or how the statement is read. Cause is the heading about it in
	// docs/notes/reproduction.md.
	Explanation string
	Cause       string
	Source      string
	// Contradiction names the printed numbers that exclude this one.
	Contradiction string
	// Disagreement names the printed numbers that do not agree with this one but do not exclude it. The claim is judged
	// in spite of it.
	Disagreement string
	// Inconsistency describes other oddities of the publication.
	Inconsistency string
	// Untestable is the reason why this project cannot measure the claim; empty if it can. The claim then expects
	// NotTestable or TheirMachine, which becomes its verdict.
	Untestable string
	// Follows is the number that follows from printed numbers by arithmetic. It is set only for claims with the basis
	// Arithmetic.
	Follows float64
	// Renewed describes how the definition has changed since documents of the first version.
	Renewed string
}

// Paper contains the published numbers and statements of one paper.
type Paper struct {
	Name string // name of its system, and the prefix of its claims' ids
	rows []row
	// measured returns a bench's measurements for this paper's claims. It is nil if no bench measures any of them.
	measured func(*results.Bench) Ours
	// was returns a claim's id from before papers had names; nil for newer papers.
	was func(r *row, column string) string
	// names lists claims' names without a prefix, from before papers had names. They are still valid.
	names []string
}

// listPapers returns all papers. The reproduced paper is first, and the others are in order of their year.
func listPapers() []Paper {
	return []Paper{olafPaper(), iswitchPaper(), switchmlPaper(), atpPaper(), xaggPaper(), p4incPaper()}
}

// row is a line of a table or figure in a paper, with one claim per cell.
type row struct {
	artefact, row, source string
	cells                 []Claim
	id                    string // part of the claim's id; empty for the row's name
	late                  bool   // added after papers were given names
}

func (r *row) slug() string {
	if r.id != "" {
		return r.id
	}
	return slug(r.row)
}

// ListClaims returns all claims, in the order of the papers. The caller may change the slice.
func ListClaims() []Claim {
	var out []Claim
	for _, p := range listPapers() {
		for i := range p.rows {
			out = append(out, p.claims(&p.rows[i])...)
		}
	}
	return out
}

// ClaimsByID returns all claims by their IDs.
func ClaimsByID() map[string]Claim {
	all := map[string]Claim{}
	for _, c := range ListClaims() {
		all[c.ID] = c
	}
	return all
}

func (p *Paper) claims(r *row) []Claim {
	out := make([]Claim, 0, len(r.cells))
	for _, c := range r.cells {
		c.Artefact, c.Row, c.Source = r.artefact, r.row, r.source
		c.ID = p.Name + "/" + r.artefact + "." + r.slug() + "." + slug(c.Column)
		if p.was != nil {
			c.Was = p.was(r, slug(c.Column))
		}
		if n := c.Neighbour; n != nil && n.ID != "" {
			c.Neighbour = &Neighbour{ID: p.Name + "/" + n.ID}
		}
		c.Value, c.Rounding = parsePrinted(c.Printed)
		out = append(out, c)
	}
	return out
}

// parsePrinted parses a number as it is printed in a paper. It returns the value and half a unit of the last digit. The
// value is NaN if text is empty.
func parsePrinted(text string) (value, rounding float64) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN(), math.NaN()
	}
	_, decimals, _ := strings.Cut(text, ".")
	return value, 0.5 * math.Pow10(-len(decimals))
}

// canonical maps old names of experiments and claims to their current ids.
var canonical = sync.OnceValue(func() map[string]string {
	by := map[string]string{}
	for _, p := range listPapers() {
		for _, name := range p.names {
			by[name] = p.Name + "/" + name
		}
	}
	for _, c := range ListClaims() {
		if c.Was != "" {
			by[c.Was] = c.ID
		}
	}
	return by
})

// Canonical returns the current id of an experiment or claim, given its current id or its old name without a paper. For
// example, table1 and table1.olaf_40g.received are old names of olaf/table1 and olaf/table1.olaf.40g.received. Any
// other id is returned unchanged.
func Canonical(id string) string {
	if full, ok := canonical()[id]; ok {
		return full
	}
	return id
}

// FileName returns an experiment's name in a form without slashes for run ids and file names, such as table1 or
// iswitch-table4.
func FileName(experiment string) string {
	system, artefact, _ := strings.Cut(experiment, "/")
	if Canonical(artefact) == experiment {
		return artefact
	}
	return strings.TrimSuffix(system+"-"+artefact, "-")
}

// ExperimentOf returns the experiment in a claim's id, such as olaf/table1.
func ExperimentOf(claim string) string {
	experiment, _, _ := strings.Cut(claim, ".")
	return experiment
}

// SystemOf returns the system in a claim's id, such as olaf.
func SystemOf(claim string) string {
	system, _, _ := strings.Cut(claim, "/")
	return system
}
