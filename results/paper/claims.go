// Package paper holds every number and ordering that papers published, as data: where it stands, how near a reproduction can
// come and why, and what is known to be odd about it. Tables, the workbook, the report and reproduce all read this one
// place. A paper is a file that is named after its system, and a row of papers.
package paper

import (
	"math"
	"strings"
	"sync"

	"github.com/olafctl/olaf/results"
)

// Verdict says how a result stands to what was published.
type Verdict string

const (
	Reproduced    Verdict = "reproduced"
	SameDirection Verdict = "same direction"
	Deviates      Verdict = "deviates"
	NotTestable   Verdict = "not testable here"
)

// Relation is how a published value binds a result.
type Relation string

const (
	Equals  Relation = "="     // within the tolerance
	AtLeast Relation = "≥"     // a bound from below
	AtMost  Relation = "≤"     // a bound from above
	Holds   Relation = "holds" // an ordering or shape: the result is 1 when it holds, else 0
)

// Claim is one published number or statement.
type Claim struct {
	ID       string // paper/artefact.row.column: olaf/table1.fifo.40g.received
	Was      string // its id in documents of olafctl before papers had names; empty of newer claims
	Artefact string // within the paper: table1, aom, fig6, …
	Row      string
	Column   string
	Value    float64 // not a number where the paper only draws or says it
	Unit     string
	Relation Relation
	// TolerancePct is how far a reproduced value may lie, relative to Value, and Why it is that far.
	TolerancePct float64
	Why          string
	Source       string
	// Against is the id of the claim that this one is set beside in the paper: a result that misses the tolerance but lies on
	// the same side of that one's result is in the same direction.
	Against string
	// Inconsistency tells what is odd about the published value.
	Inconsistency string
	// Untestable says why this project can't measure it; empty when it can.
	Untestable string
	// Elsewhere is the command that measures it where no experiment does; empty when one does.
	Elsewhere string
	// Expect is the best verdict that the reproduction study found reachable; a worse one is a miss.
	Expect Verdict
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
func papers() []Paper { return []Paper{olafPaper(), iswitchPaper(), xaggPaper(), aoiPaper()} }

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
		if c.Against != "" {
			c.Against = p.Name + "/" + c.Against
		}
		out = append(out, finished(c))
	}
	return out
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

// finished fills what most claims share.
func finished(c Claim) Claim {
	if c.Relation == "" {
		c.Relation = Equals
	}
	if c.Relation == Holds {
		c.Value, c.Why = math.NaN(), whyShape
	}
	if c.Expect == "" {
		c.Expect = Reproduced
	}
	if c.Untestable != "" {
		c.Expect = NotTestable
	}
	return c
}
