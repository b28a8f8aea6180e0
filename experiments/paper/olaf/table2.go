package olaf

import (
	"context"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// table2 is the experiment that reproduces loss, age and fairness with two levels of switches and equal workers (§8.3,
// Table 2).
var table2 = experiments.Experiment{
	Name:      "olaf/table2",
	Artefact:  "Table 2",
	About:     "two levels of switches, ten clusters that all send every 100 ms: FIFO and Olaf",
	Needs:     "10 s",
	Simulates: true,
	Inputs:    multiHopInputs,
	Run: func(ctx context.Context, o experiments.Options) (result.Report, error) {
		r := newMultiHopTable("olaf/table2", "Table 2", &o)
		if err := r.runVariants(ctx, &o, fifoPlain, olafPlain, olafN, olafSenders); err != nil {
			return r.report(), err
		}
		fifo, plain, clusters, senders := &r.rows[0], &r.rows[1], &r.rows[2], &r.rows[3]
		ours := paper.Ours{}
		r.storeCells(ours, "fifo", fifo, nil)
		r.storeCells(ours, "olaf", plain, nil)
		alike := plain.unlike(clusters)
		alike.Others = []paper.Other{countingSenders(plain.unlike(senders))}
		ours["olaf/table2.olaf.as_with_control"] = alike
		r.PaperRows = paper.Compare(ours, "olaf/table2")
		r.Say("with the paper's N, the active clusters, no send probability is below 8/10; if N counts senders, " +
			"it is 8/100 and the ages grow")
		return r.report(), nil
	},
}

// unlike returns the difference between the published ages of two rows. It uses the group in which the difference is
// larger.
func (r *multiHopRow) unlike(o *multiHopRow) paper.Measured {
	var most paper.Measured
	for g := range r.Groups {
		if m := paper.Spread([][]results.Float{r.publishedBySeed(g), o.publishedBySeed(g)}); g == 0 || m.Mean > most.Mean {
			most = m
		}
	}
	return most
}
