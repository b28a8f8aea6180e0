package olaf

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// fig10 is the experiment that reproduces the ages behind a switch whose output shrinks (§8.3, Fig. 10).
var fig10 = experiments.Experiment{
	Name:      "olaf/fig10",
	Artefact:  "Fig. 10",
	About:     "age of both cluster groups as SW1's output falls to a tenth of SW2's: FIFO and Olaf with transmission control",
	Needs:     "30 s",
	Simulates: true,
	Run:       runFig10,
	Inputs:    multiHopInputs,
}

// alphas lists the values of α in the figure, the ratio of SW1's output rate to SW2's.
var alphas = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}

func runFig10(ctx context.Context, o experiments.Options) (result.Report, error) {
	runs, seed := o.Seeds(100, 10)
	c := changedMultiHop(&o, runs, seed)
	f := experiments.NewResult("olaf/fig10", "Fig. 10", &o, &c)
	variants := []variant{fifoPlain, olafN, olafSenders}
	var points []point
	for _, v := range variants {
		for _, alpha := range alphas {
			at := c
			at.Alpha = alpha
			points = append(points, point{fmt.Sprintf("%s, α = %v", v.name, alpha), v, at})
		}
	}
	simulated, all, err := simulateVariants(ctx, "olaf/fig10", &o, c.Seeds, points)
	if len(all) == 0 {
		return nil, err
	}
	report := bench.OverSimulation(f, simulated)
	rows := make([][]multiHopRow, len(variants)) // by variant and α
	for v := range variants {
		rows[v] = all[v*len(alphas) : (v+1)*len(alphas)]
	}
	drawFig10(f, variants, rows)
	if err != nil {
		return report, err
	}
	judgeFig10(f, rows[0], rows[1], rows[2])
	return report, nil
}

// fig10Readings lists the possible readings of an age, per worker or per cluster. FIFO's printed age agrees with the
// reading per worker.
var fig10Readings = []struct {
	name    string
	printed bool
	of      func(r *multiHopRow, group int) results.Statistic
}{
	{"both per cluster", false, func(r *multiHopRow, g int) results.Statistic { return *r.Groups[g].Stats.Of(aomCluster) }},
	{"both per worker", true, func(r *multiHopRow, g int) results.Statistic { return *r.Groups[g].Stats.Of(aomWorker) }},
}

func drawFig10(f *result.Result, variants []variant, rows [][]multiHopRow) {
	panel := func(group, name, y string, of func(*multiHopRow) results.Statistic) {
		p := result.Panel{Name: name, Group: group, XLabel: "α", YLabel: y}
		for v := range variants {
			s := result.Series{Name: variants[v].name}
			for i := range rows[v] {
				s.X, s.Y = append(s.X, alphas[i]), append(s.Y, of(&rows[v][i]))
			}
			p.Series = append(p.Series, s)
		}
		f.Panels = append(f.Panels, p)
	}
	for _, reading := range fig10Readings {
		for g := range 2 {
			panel("age", fmt.Sprintf("S%d, %s", g+1, reading.name), "mean AoM [ms]",
				func(r *multiHopRow) results.Statistic { return reading.of(r, g) })
			if reading.printed && g == 0 {
				addPrinted(&f.Panels[len(f.Panels)-1], alphas[0], "olaf/fig10.fifo.s1_at_0.1")
			}
		}
	}
	panel("loss", "Dropped packets", "dropped [% of updates sent]",
		func(r *multiHopRow) results.Statistic { return *r.Stats.Of("loss_packets_pct") })
	panel("loss", "Workers without an age", "workers with fewer than two deliveries",
		func(r *multiHopRow) results.Statistic { return *r.Stats.Of("never_delivered") })
}

// addPrinted adds the number that the paper prints for a point to a panel.
func addPrinted(p *result.Panel, x float64, id string) {
	if c, ok := paper.ClaimsByID()[id]; ok {
		p.Series = append(p.Series, result.Series{Name: result.PaperSeries, X: []float64{x},
			Y: []results.Statistic{result.Describe([]float64{c.Value})}})
	}
}

// judgeFig10 compares the measured ages with the paper's claims about the figure.
func judgeFig10(f *result.Result, fifo, clusters, senders []multiHopRow) {
	first := paper.Of(fifo[0].publishedAge(0))
	first.Others = []paper.Other{{Assumption: perCluster.name, Statistic: fifo[0].otherAge(0), Judged: true}}
	stable := paper.Spread(overAlpha(fifo, 1, perWorker))
	stable.Others = []paper.Other{{Assumption: perCluster.name,
		Statistic: paper.Spread(overAlpha(fifo, 1, perCluster)).Statistic, Judged: true}}
	falls := paper.Falls(overAlpha(clusters, 0, perCluster))
	falls.Others = []paper.Other{countingSenders(paper.Falls(overAlpha(senders, 0, perCluster)))}
	flat := flatAndLow(clusters)
	flat.Others = []paper.Other{countingSenders(flatAndLow(senders))}
	f.Compare(paper.Ours{"olaf/fig10.fifo.s1_at_0.1": first, "olaf/fig10.fifo.s2_stable": stable,
		"olaf/fig10.olaf_tc.s1_falls": falls, "olaf/fig10.olaf_tc.s2_flat_and_low": flat})
	f.Say("the parameters that the paper does not give were fitted to Tables 2 and 3 " +
		"(docs/reference/topology-file.md); this figure was not fitted")
	f.Say("stable and flat mean the same: the highest mean over α is at most %d %% above the lowest, with its "+
		"interval over seeds", paper.FlatPct)
	f.Say("FIFO's S1 is not monotone in α, because drop-tail locks the phases of periodic senders and at some " +
		"rates locks them out completely (never delivered, below)")
	f.Say("Olaf with transmission control is judged with the paper's N, the active clusters; if N counts " +
		"senders, both groups are older")
}

// overAlpha returns the ages of a group, by α and seed.
func overAlpha(rows []multiHopRow, group int, by reading) [][]results.Float {
	values := make([][]results.Float, len(rows))
	for i := range rows {
		values[i] = rows[i].bySeed(group, by)
	}
	return values
}

// flatAndLow measures how flat the curve of S2 is. The claim is broken if S2 is not shown to be below S1, beyond the
// confidence interval, where SW1 is slowest.
func flatAndLow(rows []multiHopRow) paper.Measured {
	m := paper.Spread(overAlpha(rows, 1, perCluster))
	if low := paper.Over(rows[0].publishedBySeed(0), rows[0].publishedBySeed(1)); !(low.Mean-low.CI95 > 0) {
		m.Breaks = fmt.Sprintf("S2 is not shown to be below S1 at α = %v", alphas[0])
	}
	return m
}
