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
	judgeFig10(f, rows[0], rows[1])
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

// judgeFig10 checks what the paper says of the figure.
func judgeFig10(f *experiments.Figure, fifo, control []MultiHopRow) {
	ours := paper.Ours{"olaf/fig10.fifo.s1_at_0.1": fifo[0].published(0)}
	s1, s2 := spread(fifo, 0), spread(fifo, 1)
	ours["olaf/fig10.fifo.s2_stable"] = paper.Shape(s2 < s1)
	falls := true
	for i := 1; i < len(control); i++ {
		// Within the interval of the mean is not a rise.
		before, now := control[i-1].published(0), control[i].published(0)
		falls = falls && now.Mean <= before.Mean+before.CI95
	}
	falls = falls && control[len(control)-1].published(0).Mean < control[0].published(0).Mean
	flat := spread(control, 1)
	ours["olaf/fig10.olaf_tc.s1_falls"] = paper.Shape(falls)
	ours["olaf/fig10.olaf_tc.s2_flat_and_low"] = paper.Shape(flat < 1.1 && control[0].published(1).Mean < control[0].published(0).Mean)
	f.Compare(ours)
	f.Say("the parameters that the paper does not give were fitted to Tables 2 and 3 (docs/experiments/multihop.md); this figure was not fitted")
	f.Say("stable is taken as: FIFO's S2 varies less over α (largest mean over smallest: %.2f) than its S1 (%.2f)", s2, s1)
	f.Say("flat and low is taken as: Olaf's S2 varies by less than 10 %% (%.3f) and lies below its S1 at α = 0.1", flat)
	f.Say("FIFO's S1 is not monotone in α: drop-tail locks the phases of periodic senders, at some rates out altogether (never delivered, below)")
	f.Say("Olaf with transmission control is judged with the paper's N, the active clusters; with N in senders both groups are older")
}

// spread is the largest mean of a group's published age over the smallest.
func spread(rows []MultiHopRow, group int) float64 {
	low, high := rows[0].published(group).Mean, rows[0].published(group).Mean
	for i := range rows {
		m := rows[i].published(group).Mean
		low, high = min(low, m), max(high, m)
	}
	return float64(high / low)
}
