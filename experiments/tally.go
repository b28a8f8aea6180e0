package experiments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/text"
)

// systemTally counts the numbers from one paper by basis and by verdict.
type systemTally struct {
	name    string
	counts  map[paper.Basis]map[paper.Verdict]int
	n       int
	repeats int // rows that repeat another row's number
}

// tallies contains one tally per paper, in the order of the rows.
type tallies []systemTally

// tallySystems counts the rows of each paper. Rows that repeat one of our numbers count once, with the worst of their
// verdicts.
func tallySystems(rows []results.PaperRow) (all tallies) {
	worst := worstOfRepeats(rows)
	for i := range rows {
		name := paper.SystemOf(paper.Canonical(rows[i].ID))
		at := slices.IndexFunc(all, func(t systemTally) bool { return t.name == name })
		if at < 0 {
			at = len(all)
			all = append(all, systemTally{name: name, counts: map[paper.Basis]map[paper.Verdict]int{}})
		}
		all[at].n++
		if rows[i].SameAs != "" {
			all[at].repeats++
			continue
		}
		all[at].add(paper.Basis(rows[i].Basis), worst[rows[i].ID])
	}
	return all
}

// worstOfRepeats returns the worst verdict of each row and its repeats, by the id of the row.
func worstOfRepeats(rows []results.PaperRow) map[string]paper.Verdict {
	worst := map[string]paper.Verdict{}
	for i := range rows {
		id, v := cmp.Or(rows[i].SameAs, rows[i].ID), paper.Verdict(rows[i].Verdict)
		if is, known := worst[id]; !known || slices.Index(paper.AllVerdicts(), v) > slices.Index(paper.AllVerdicts(), is) {
			worst[id] = v
		}
	}
	return worst
}

func (t *systemTally) add(b paper.Basis, v paper.Verdict) {
	if t.counts[b] == nil {
		t.counts[b] = map[paper.Verdict]int{}
	}
	t.counts[b][v]++
}

// isTestable reports whether any number from the paper can be judged here.
func (t *systemTally) isTestable() bool {
	left := t.n
	for _, verdicts := range t.counts {
		for v, n := range verdicts {
			if v.IsUnmeasured() {
				left -= n
			}
		}
	}
	return left > 0
}

func (all tallies) isTestable(system string) bool {
	return slices.ContainsFunc(all, func(t systemTally) bool { return t.name == system && t.isTestable() })
}

// printTallies prints a paragraph about each paper. It lists the paper's numbers by basis and verdict, or only their
// count if none of them can be judged here.
func (all tallies) printTallies(p *text.Page, listed bool) {
	for i := range all {
		t := &all[i]
		if !t.isTestable() {
			more := " (--all lists them)"
			if listed {
				more = ""
			}
			p.Say("", "%s: %s, none testable here%s", t.name, olaf.Plural(t.n, "published number"), more)
			continue
		}
		p.Say("", "%s: %s", t.name, olaf.Plural(t.n, "published number"))
		for _, basis := range paper.AllBases() {
			if verdicts := t.counts[basis]; len(verdicts) > 0 {
				p.Say(fmt.Sprintf("  %-*s", basisWidth, basis), "%s%s", countVerdicts(verdicts), noResult[basis])
			}
		}
		if t.repeats > 0 {
			p.Say("  ", "not counted again: %s with the number of another, which counts by its worst verdict",
				olaf.Plural(t.repeats, "row"))
		}
	}
}

// noResult maps some bases to a text that is printed after their names. The text explains why numbers with this basis
// are not results.
var noResult = map[paper.Basis]string{
	paper.Input:      " (put in as printed: no results)",
	paper.Arithmetic: " (no model of ours is in them: no results)",
}

// basisWidth is the width of the column with the basis: the longest name and a gap.
const basisWidth = 12

// countVerdicts returns a text with the count of each verdict, from best to worst.
func countVerdicts(verdicts map[paper.Verdict]int) string {
	var parts []string
	for _, v := range paper.AllVerdicts() {
		if n := verdicts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return strings.Join(parts, ", ")
}
