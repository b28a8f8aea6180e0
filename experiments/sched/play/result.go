package play

import (
	"cmp"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/result"
)

// metrics lists the metrics of a job.
var metrics = result.Metrics{
	result.NewMetric("packets", "Packets", ""), result.NewMetric("planned_ns", "Planned", "ns"),
	result.NewMetric("fluid_ns", "Fluid", "ns"),
	result.NewMetric("paced_ns", "Paced", "ns"), result.NewMetric("deviation_pct", "Off the fluid", "%"),
	result.NewMetric("windowed_ns", "With windows", "ns"),
}

// Result returns the report as a table with one row per job.
func (r *Report) Result() *result.Result {
	d := result.New("simulate", "", map[string]any{"policy": r.Policy, "packets": r.Packets})
	d.Title = fmt.Sprintf("%s: %d jobs, %d packets, each for at most %.0f frames of %v on the line", r.Policy,
		len(r.Jobs), r.Packets, float64(r.Stands), line)
	windowed := "some are not done"
	if t := r.CTBTI.Windowed; t != nil {
		windowed = fmt.Sprintf("%.4f s", t.Seconds())
	}
	d.Found = []string{
		fmt.Sprintf("CT-BTI: planned %v, fluid %.4f s, packets at the planned rates %.4f s, with windows %s",
			r.CTBTI.Planned, r.CTBTI.Fluid.Seconds(), r.CTBTI.Paced.Seconds(), windowed),
		fmt.Sprintf("furthest from the fluid: %s, %.3f %% of the time in which it sends; all %d sums have every "+
			"worker once", r.Worst, float64(r.WorstPct), r.Sums),
	}
	d.Metrics, d.Statements = metrics, []string{}
	total := r.CTBTI.row("all jobs", results.Float(r.Packets), r.WorstPct)
	total.Totals = map[string]int64{"sums": int64(r.Sums), "marked": int64(r.Marked)}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		by := cmp.Or(j.INC, "server")
		if j.Part {
			by += ", server"
		}
		row := j.row(j.Job+" by "+by, results.Float(j.Packets), j.DeviationPct)
		row.Config = map[string]string{"job": j.Job, "summed_by": by}
		d.Rows = append(d.Rows, row)
	}
	d.Rows = append(d.Rows, total)
	return d
}

// row returns the times as a row of the result.
func (t *Times) row(name string, packets, deviation results.Float) result.Row {
	ns := func(d olaf.Duration) results.Float { return results.Float(d.NS()) }
	windowed := results.Missing()
	if t.Windowed != nil {
		windowed = ns(*t.Windowed)
	}
	values := []metric.Float{packets, ns(t.Planned), ns(t.Fluid), ns(t.Paced), deviation, windowed}
	return result.Row{Name: name, Runs: 1, Stats: metrics.Stats([][]metric.Float{values}, "not done")}
}
