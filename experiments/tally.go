package experiments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/text"
)

// systemTally counts the numbers of one paper by basis and verdict.
type systemTally struct {
	name   string
	counts map[paper.Basis]map[paper.Verdict]int
	n      int
}

// tallies are by paper, in the order of the rows.
type tallies []systemTally

func systems(rows []results.PaperRow) (all tallies) {
	for i := range rows {
		name := paper.SystemOf(paper.Canonical(rows[i].ID))
		at := slices.IndexFunc(all, func(t systemTally) bool { return t.name == name })
		if at < 0 {
			at = len(all)
			all = append(all, systemTally{name: name, counts: map[paper.Basis]map[paper.Verdict]int{}})
		}
		all[at].add(paper.Basis(rows[i].Basis), paper.Verdict(rows[i].Verdict))
	}
	return all
}

func (t *systemTally) add(b paper.Basis, v paper.Verdict) {
	if t.counts[b] == nil {
		t.counts[b] = map[paper.Verdict]int{}
	}
	t.counts[b][v]++
	t.n++
}

// tested says whether anything of a system can be judged here.
func (t *systemTally) tested() bool {
	left := t.n
	for _, verdicts := range t.counts {
		left -= verdicts[paper.NotTestable]
	}
	return left > 0
}

func (all tallies) tested(system string) bool {
	return slices.ContainsFunc(all, func(t systemTally) bool { return t.name == system && t.tested() })
}

// print prints a paper a paragraph: its systems' numbers by basis and verdict, and of a system that is not here only how many
// there are.
func (all tallies) print(p *text.Page, listed bool) {
	for i := range all {
		t := &all[i]
		if !t.tested() {
			more := " (--all lists them)"
			if listed {
				more = ""
			}
			p.Say("", "%s: %s, none testable here%s", t.name, olaf.Plural(t.n, "published number"), more)
			continue
		}
		p.Say("", "%s: %s", t.name, olaf.Plural(t.n, "published number"))
		for _, basis := range paper.Bases() {
			if verdicts := t.counts[basis]; len(verdicts) > 0 {
				p.Say(fmt.Sprintf("  %-*s", basisWidth, basis), "%s", counted(verdicts))
			}
		}
	}
}

// basisWidth is the width of the longest basis, with a gap.
const basisWidth = 12

// counted lists how many there are of each verdict, from best to worst.
func counted(verdicts map[paper.Verdict]int) string {
	var parts []string
	for _, v := range paper.Verdicts() {
		if n := verdicts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return strings.Join(parts, ", ")
}
