package olaf

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
)

// fig10 reproduces the ages behind a switch whose output shrinks (§8.3, Fig. 10).
var fig10 = experiments.Experiment{
	Name:      "olaf/fig10",
	Artefact:  "Fig. 10",
	About:     "age of both cluster groups as SW1's output falls to a tenth of SW2's: FIFO and Olaf with transmission control",
	Needs:     "30 s",
	Simulates: true,
	Run:       runFig10,
}

// alphas are the points of the figure: SW1's output over SW2's.
var alphas = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}

func runFig10(ctx context.Context, o experiments.Options) (bench.Report, error) {
	runs, seed := o.Seeds(100, 10)
	c := MultiHop(runs, seed)
	f := experiments.NewFigure("olaf/fig10", "Fig. 10", &o, &c)
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
	f.Over(simulated)
	rows := make([][]MultiHopRow, len(variants)) // by variant and α
	for v := range variants {
		rows[v] = all[v*len(alphas) : (v+1)*len(alphas)]
	}
	drawFig10(f, variants, rows)
	if err != nil {
		return f, err
	}
	judgeFig10(f, rows[0], rows[1], rows[2])
	return f, nil
}

func drawFig10(f *experiments.Figure, variants []variant, rows [][]MultiHopRow) {
	age := experiments.Panel{Name: "age", XLabel: "α", YLabel: "mean AoM in ms; FIFO per worker, Olaf per cluster"}
	other := experiments.Panel{Name: "other reading", XLabel: "α", YLabel: "mean AoM in ms; FIFO per cluster, Olaf per worker"}
	loss := experiments.Panel{Name: "loss", XLabel: "α", YLabel: "dropped packets in % of updates sent, and workers with fewer than two deliveries"}
	for v := range variants {
		name := variants[v].name
		curve := func(of func(*MultiHopRow) results.Statistic) (x []float64, y []results.Statistic) {
			for i := range rows[v] {
				x, y = append(x, alphas[i]), append(y, of(&rows[v][i]))
			}
			return x, y
		}
		add := func(p *experiments.Panel, name string, of func(*MultiHopRow) results.Statistic) {
			x, y := curve(of)
			p.Series = append(p.Series, experiments.Series{Name: name, X: x, Y: y})
		}
		for g := range 2 {
			group := fmt.Sprintf("%s S%d", name, g+1)
			add(&age, group, func(r *MultiHopRow) results.Statistic { return r.published(g) })
			add(&other, group, func(r *MultiHopRow) results.Statistic { return r.other(g) })
		}
		add(&loss, name+" %", func(r *MultiHopRow) results.Statistic { return *r.Stats.Of("loss_packets_pct") })
		add(&loss, name+" never", func(r *MultiHopRow) results.Statistic { return *r.Stats.Of("never_delivered") })
	}
	f.Panels = []experiments.Panel{age, other, loss}
}

// judgeFig10 measures what the paper says of the figure.
func judgeFig10(f *experiments.Figure, fifo, clusters, senders []MultiHopRow) {
	first := paper.Of(fifo[0].published(0))
	first.Others = []paper.Other{{Assumption: perCluster.name, Statistic: fifo[0].other(0), Judged: true}}
	stable := paper.Spread(overAlpha(fifo, 1, perWorker))
	stable.Others = []paper.Other{{Assumption: perCluster.name, Statistic: paper.Spread(overAlpha(fifo, 1, perCluster)).Statistic, Judged: true}}
	falls := paper.Falls(overAlpha(clusters, 0, perCluster))
	falls.Others = []paper.Other{countingSenders(paper.Falls(overAlpha(senders, 0, perCluster)))}
	flat := flatAndLow(clusters)
	flat.Others = []paper.Other{countingSenders(flatAndLow(senders))}
	f.Compare(paper.Ours{"olaf/fig10.fifo.s1_at_0.1": first, "olaf/fig10.fifo.s2_stable": stable, "olaf/fig10.olaf_tc.s1_falls": falls, "olaf/fig10.olaf_tc.s2_flat_and_low": flat})
	f.Say("the parameters that the paper does not give were fitted to Tables 2 and 3 (docs/experiments/multihop.md); this figure was not fitted")
	f.Say("stable and flat are one yardstick: the highest mean over α lies at most %d %% above the lowest, with its interval over seeds", paper.FlatPct)
	f.Say("FIFO's S1 is not monotone in α: drop-tail locks the phases of periodic senders, at some rates out altogether (never delivered, below)")
	f.Say("Olaf with transmission control is judged with the paper's N, the active clusters; with N in senders both groups are older")
}

// overAlpha are a group's ages by α and seed.
func overAlpha(rows []MultiHopRow, group int, by reading) [][]results.Float {
	values := make([][]results.Float, len(rows))
	for i := range rows {
		values[i] = rows[i].bySeed(group, by)
	}
	return values
}

// flatAndLow is how flat S2 is. That it is not shown to be below S1 where SW1 is slowest breaks it.
func flatAndLow(rows []MultiHopRow) paper.Measured {
	m := paper.Spread(overAlpha(rows, 1, perCluster))
	if low := paper.Over(rows[0].publishedBySeed(0), rows[0].publishedBySeed(1)); !(low.Mean-low.CI95 > 0) {
		m.Breaks = fmt.Sprintf("S2 is not shown to be below S1 at α = %v", alphas[0])
	}
	return m
}
