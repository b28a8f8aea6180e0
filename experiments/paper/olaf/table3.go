package olaf

import (
	"context"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// table3 is the experiment that reproduces the setting of Table 2 with half of the clusters three times slower (§8.3,
// Table 3).
var table3 = experiments.Experiment{
	Name:      "olaf/table3",
	Artefact:  "Table 3",
	About:     "two levels of switches, clusters that send every 100 and every 300 ms: FIFO, Olaf, and Olaf with transmission control",
	Needs:     "10 s",
	Simulates: true,
	Inputs:    multiHopInputs,
	Run: func(ctx context.Context, o experiments.Options) (result.Report, error) {
		r := newMultiHopTable("olaf/table3", "Table 3", &o)
		r.config.Period2 = experiments.ScaleInput(&o, period, 300*olaf.Millisecond)
		if err := r.runVariants(ctx, &o, fifoPlain, olafPlain, olafN, olafSenders); err != nil {
			return r.report(), err
		}
		fifo, plain, clusters, senders := &r.rows[0], &r.rows[1], &r.rows[2], &r.rows[3]
		ours := paper.Ours{}
		r.storeCells(ours, "fifo", fifo, nil)
		r.storeCells(ours, "olaf", plain, nil)
		r.storeCells(ours, "olaf_tc", clusters, senders)
		narrows := clusters.narrowsFrom(plain)
		narrows.Others = []paper.Other{countingSenders(senders.narrowsFrom(plain))}
		ours["olaf/table3.olaf_tc.gap_narrows"] = narrows
		r.PaperRows = paper.Compare(ours, "olaf/table3")
		a, b := 1381.0, 5382.0
		r.Say("FIFO's printed fairness of 0.86 can't be Jain's index of ten clusters with the printed means: "+
			"those allow at most (a+b)²/(2(a²+b²)) = %.3f", (a+b)*(a+b)/(2*(a*a+b*b)))
		r.Say("with the paper's N, the active clusters, no send probability is below 8/10 and little changes; if " +
			"N counts senders, with v = 1/threshold, the gap becomes narrower but single workers become older " +
			"(last row)")
		r.Say("gap between the groups: %.1f ms without control, %.1f ms with it (N = clusters), %.1f ms (N = senders)", plain.gap(), clusters.gap(), senders.gap())
		return r.report(), nil
	},
}

// gap returns the difference between the published ages of the two groups, in ms.
func (r *multiHopRow) gap() float64 {
	return math.Abs(float64(r.publishedAge(0).Mean - r.publishedAge(1).Mean))
}

// narrowsFrom returns, seed by seed, how much smaller the gap between the groups is in r than in before.
func (r *multiHopRow) narrowsFrom(before *multiHopRow) paper.Measured {
	return paper.Over(paper.Gap(before.publishedBySeed(0), before.publishedBySeed(1)), paper.Gap(r.publishedBySeed(0), r.publishedBySeed(1)))
}
