// Package paper holds every number and trend that papers published, as data: where it stands, what kind of statement it is,
// on what ours rests and how near it is expected to come. It judges results by them. Tables, the workbook, the report and
// reproduce all read this one place. A paper is a file that is named after its system, and a row of papers.
package paper

import (
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/olafctl/olaf/results"
)

// Basis says on what our number rests.
type Basis string

const (
	Calibrated Basis = "calibrated" // fitted to the very numbers that it is set beside
	Predicted  Basis = "predicted"  // fitted to others, or to nothing
	Input      Basis = "input"      // put in as it is printed, so that ours says nothing
	Arithmetic Basis = "arithmetic" // follows from printed numbers, or from what is set up, whatever the model
	Timed      Basis = "measured"   // of a real thing: a solver, a card, logic
)

// Kind says what a paper states.
type Kind string

const (
	Value Kind = "value" // a number
	Bound Kind = "bound" // a number that results lie above or below
	Trend Kind = "trend" // a direction or shape, without a number
)

// Side is where a paper puts a result: of a bound's number, or of what a trend is set against.
type Side string

const (
	Above Side = "above"
	Below Side = "below"
)

// Neighbour is what a claim stands beside: when a value is missed by far, or no number is printed, the side of it decides.
// It is another claim, or with an empty ID a number, such as 1 for a speed-up.
type Neighbour struct {
	ID string
	Is float64
}

// Claim is one published number or statement.
type Claim struct {
	ID       string // paper/artefact.row.column: olaf/table1.fifo.40g.received
	Was      string // its id in documents of olafctl before papers had names; empty of newer claims
	Artefact string // within the paper: table1, aom, fig6, …
	Row      string
	Column   string
	Printed  string  // as the paper prints it; empty of a trend
	Value    float64 // of Printed, not a number where nothing is
	Rounding float64 // half a unit of the last printed digit
	Unit     string
	Kind     Kind
	Basis    Basis
	// Side of a bound or trend. A value is on the side of its neighbour on which the paper printed it.
	Side      Side
	Neighbour *Neighbour
	// Unfairness says that the number is a fairness index, which is judged by how much it lacks to 1.
	Unfairness bool
	// Seeds is how many runs the number takes; with fewer a result is too short to judge.
	Seeds int
	// Expect is the verdict that is known to be reached; a worse one is a miss.
	Expect Verdict
	// Why tells why ours differs, or how the statement is read. Cause is the heading in docs/notes/reproduction.md that shows what moves it.
	Why    string
	Cause  string
	Source string
	// Contradiction says which printed numbers exclude this one, so that nobody can reach both.
	Contradiction string
	// Disagreement says which printed numbers do not go with this one, without excluding it: it is judged all the same.
	Disagreement string
	// Inconsistency tells what else is odd about what was published.
	Inconsistency string
	// Untestable says why this project can't measure it; empty when it can. The claim then expects NotTestable or
	// TheirMachine, which is its verdict.
	Untestable string
	// Follows is the number that arithmetic on printed numbers gives; only of that basis.
	Follows float64
	// Renewed says what is taken otherwise than by documents of the first version, whose number is of something else.
	Renewed string
}

// Paper is what one paper published.
type Paper struct {
	Name string // of its system, and of the claims' ids before the slash
	rows []row
	// measured takes what a bench measured as values of this paper's claims; nil of a paper that no bench reaches.
	measured func(*results.Bench) Ours
	// was is the id of a claim before papers had names; nil of newer papers.
	was func(r *row, column string) string
	// names stood alone before papers had names, and always will stand for this paper's.
	names []string
}

// papers lists the papers, the reproduced one first and then by year.
func papers() []Paper {
	return []Paper{olafPaper(), iswitchPaper(), switchmlPaper(), atpPaper(), xaggPaper(), p4incPaper()}
}

// row is one line of an artefact.
type row struct {
	artefact, row, source string
	cells                 []Claim
	id                    string // of the row within ids; empty for its name
}

func (r *row) slug() string {
	if r.id != "" {
		return r.id
	}
	return slug(r.row)
}

// Claims lists every claim in the order of the papers. The slice is the caller's.
func Claims() []Claim {
	var out []Claim
	for _, p := range papers() {
		for i := range p.rows {
			out = append(out, p.claims(&p.rows[i])...)
		}
	}
	return out
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
		c.Value, c.Rounding = printed(c.Printed)
		out = append(out, c)
	}
	return out
}

// printed reads a number as a paper prints it; nothing printed is no number.
func printed(text string) (value, rounding float64) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN(), math.NaN()
	}
	_, decimals, _ := strings.Cut(text, ".")
	return value, 0.5 * math.Pow10(-len(decimals))
}

// canonical is by names that stood alone.
var canonical = sync.OnceValue(func() map[string]string {
	by := map[string]string{}
	for _, p := range papers() {
		for _, name := range p.names {
			by[name] = p.Name + "/" + name
		}
	}
	for _, c := range Claims() {
		if c.Was != "" {
			by[c.Was] = c.ID
		}
	}
	return by
})

// Canonical is the id of an experiment or a claim with its paper, of one that is named as before papers had names: table1 and
// table1.olaf_40g.received stay names of olaf/table1 and olaf/table1.olaf.40g.received. Whatever else it is given, it
// returns.
func Canonical(id string) string {
	if full, ok := canonical()[id]; ok {
		return full
	}
	return id
}

// FileName is the name of an experiment where a slash can't stand, in ids of kept runs and names of files: table1 as ever, and
// iswitch-table4.
func FileName(experiment string) string {
	system, artefact, _ := strings.Cut(experiment, "/")
	if Canonical(artefact) == experiment {
		return artefact
	}
	return strings.TrimSuffix(system+"-"+artefact, "-")
}

// ExperimentOf is the part of a claim's id that names what measures it: olaf/table1.
func ExperimentOf(claim string) string {
	experiment, _, _ := strings.Cut(claim, ".")
	return experiment
}

// SystemOf is the part of a claim's id that names its paper: olaf.
func SystemOf(claim string) string {
	system, _, _ := strings.Cut(claim, "/")
	return system
}
