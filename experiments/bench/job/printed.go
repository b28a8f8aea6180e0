package job

import (
	"slices"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
)

// Printed links one of a job's results to the claim in a paper with which it is compared.
type Printed struct {
	Claim  string  `json:"claim"`  // such as iswitch/table4.dqn.isw
	Job    int     `json:"job"`    // index in the plan
	Number string  `json:"number"` // a number of the job, such as iteration_ns
	By     float64 `json:"by"`     // factor that converts the number to the published one
}

// comparePrinted compares outcomes with published numbers, in the order of the papers. A hung job is not compared.
func (p *Plan) comparePrinted(outcomes []*Outcome) (rows []results.PaperRow) {
	ours := paper.Ours{}
	var from []string
	for _, c := range p.Printed {
		if c.Job < 0 || c.Job >= len(outcomes) {
			continue
		}
		n, by := outcomes[c.Job].Number(c.Number), results.Float(c.By)
		n.Mean, n.SD, n.CI95, n.Min, n.Max = n.Mean*by, n.SD*by, n.CI95*by, n.Min*by, n.Max*by
		ours[c.Claim] = paper.Of(n)
		if e := paper.ExperimentOf(c.Claim); !slices.Contains(from, e) {
			from = append(from, e)
		}
	}
	if len(from) == 0 {
		return nil
	}
	return slices.DeleteFunc(paper.Compare(ours, from...),
		func(r results.PaperRow) bool { _, printed := ours[r.ID]; return !printed })
}
