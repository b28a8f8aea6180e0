package iswitch

import (
	"context"
	"strconv"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

func runFig12(ctx context.Context, l *lab, o experiments.Options) (result.Report, error) {
	t := experiments.NewResult("iswitch/fig12", "Fig. 12", &o, Models())
	approaches := []approach{syncPS, allReduce, syncSwitch}
	columns := columnsOf(approaches)
	share := result.Block{Name: "gradient aggregation of an iteration", Unit: "%", Columns: columns}
	relative := result.Block{Name: "iteration of that of the server", Unit: "%", Columns: columns}
	var overPS, overAR, lessPS, lessAR []float64
	for _, m := range Models() {
		shares, times := result.Line{Name: m.Name}, result.Line{Name: m.Name}
		iteration, aggregation := make([]float64, len(approaches)), make([]float64, len(approaches))
		for k, a := range approaches {
			run, err := l.run(ctx, a, m, LabWorkers, false)
			if err != nil {
				return nil, err
			}
			iteration[k], aggregation[k] = float64(run.Number("iteration_ns").Mean), float64(run.Number("aggregation_ns").Mean)
			shares.Cells = append(shares.Cells, results.Exactly(100*aggregation[k]/iteration[k]))
			times.Cells = append(times.Cells, results.Exactly(100*iteration[k]/iteration[0]))
		}
		share.Rows, relative.Rows = append(share.Rows, shares), append(relative.Rows, times)
		overPS, overAR = append(overPS, 100*(1-iteration[2]/iteration[0])), append(overAR, 100*(1-iteration[2]/iteration[1]))
		lessPS, lessAR = append(lessPS, 100*(1-aggregation[2]/aggregation[0])), append(lessAR, 100*(1-aggregation[2]/aggregation[1]))
	}
	t.Blocks = append(t.Blocks, share, relative)
	ours := paper.Ours{}
	for _, r := range []struct {
		row    string
		values []float64
	}{{"iteration_below_ps", overPS}, {"iteration_below_ar", overAR}, {"aggregation_below_ps", lessPS}, {"aggregation_below_ar", lessAR}} {
		low, high := bounds(r.values)
		ours[claim("fig12", r.row, "least")] = paper.Of(results.Exactly(low))
		ours[claim("fig12", r.row, "most")] = paper.Of(results.Exactly(high))
	}
	t.Compare(ours)
	sayBasis(t)
	return t, nil
}

func bounds(values []float64) (low, high float64) {
	low, high = values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// scales lists the cluster sizes in Fig. 15, as numbers of workers.
var scales = []int{4, 6, 9, 12}

func runFig15(ctx context.Context, l *lab, o experiments.Options) (result.Report, error) {
	f := experiments.NewResult("iswitch/fig15", "Fig. 15", &o, Models())
	ours := paper.Ours{}
	for _, name := range []string{"ppo", "ddpg"} {
		m, err := FindModel(name)
		if err != nil {
			return nil, err
		}
		panel := result.Panel{Name: m.Title, XLabel: "workers", YLabel: "speed-up of training over 4 workers of the same approach"}
		last := map[approach]float64{}
		for _, a := range []approach{syncPS, allReduce, syncSwitch, asyncPS, asyncSwitch} {
			s := result.Series{Name: a.paper + " " + a.mode}
			var first results.Statistic
			for _, workers := range scales {
				time, err := l.iteration(ctx, a, m, workers, false)
				if err != nil {
					return nil, err
				}
				if workers == scales[0] {
					first = time
				}
				speedup := float64(first.Mean) / float64(time.Mean) * float64(gradientsPerUpdate(a,
					workers)) / float64(gradientsPerUpdate(a, scales[0]))
				s.X, s.Y = append(s.X, float64(workers)), append(s.Y, results.Exactly(speedup))
				last[a] = speedup
			}
			panel.Series = append(panel.Series, s)
		}
		f.Panels = append(f.Panels, panel)
		ours[claim("fig15", name, "isw_over_ps")] = paper.Of(results.Exactly(last[syncSwitch] - last[syncPS]))
		ours[claim("fig15", name, "ps_over_ar")] = paper.Of(results.Exactly(last[syncPS] - last[allReduce]))
	}
	f.Compare(ours)
	f.Say("the number of iterations is assumed to fall with the gradients per update (1 / workers), except for " +
		"the asynchronous server, which applies one at a time")
	f.Say("racks of %s workers below a root; the paper emulates these scales", strconv.Itoa(LabRack))
	return f, nil
}

// gradientsPerUpdate returns the number of gradients that one update contains.
func gradientsPerUpdate(a approach, workers int) int {
	if a == asyncPS {
		return 1
	}
	return workers
}
