package olaf

import (
	"context"
	"math"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results/paper"
)

// table2 reproduces loss, age and fairness over two levels of switches with equal workers (§8.3, Table 2).
var table2 = experiments.Experiment{
	Name:      "olaf/table2",
	Artefact:  "Table 2",
	About:     "two levels of switches, ten clusters that all send every 100 ms: FIFO and Olaf",
	Needs:     "10 s",
	Simulates: true,
	Run: func(ctx context.Context, o experiments.Options) (bench.Report, error) {
		runs, seed := o.Seeds(100, 10)
		r := &MultiHopReport{Schema: MultiHopSchema, Experiment: "olaf/table2", Artefact: "Table 2", Config: MultiHop(runs, seed), Quick: o.Quick}
		r.sayReadings()
		if err := r.runVariants(ctx, &o, fifoPlain, olafPlain, olafN, olafSenders); err != nil {
			return r.report(), err
		}
		ours := r.ours("fifo", "olaf")
		ours["olaf/table2.olaf.as_with_control"] = paper.Shape(r.Rows[1].near(&r.Rows[2]))
		r.PaperRows = paper.Compare(ours, "olaf/table2")
		r.say("“as with control” is judged with the paper's N, the active clusters, where no send probability is below 8/10; as senders, N makes it 8/100 and the ages grow")
		return r, nil
	},
}

// near says whether two rows' published ages differ by at most 5 % in both groups.
func (r *MultiHopRow) near(o *MultiHopRow) bool {
	for g := range r.Groups {
		a, b := float64(r.published(g).Mean), float64(o.published(g).Mean)
		if !(math.Abs(a-b) <= 0.05*a) {
			return false
		}
	}
	return true
}
