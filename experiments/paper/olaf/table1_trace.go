package olaf

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// table1Trace returns an experiment that compares Table 1 for the traffic of a real training run with Table 1 for the
// fitted bursts.
func table1Trace(set system.Set) experiments.Experiment {
	return experiments.Experiment{
		Name:     "olaf/table1-trace",
		Artefact: "Table 1 from recorded training",
		About:    "Table 1's testbed under traffic scaled from a real recording, beside the fitted bursts and the paper",
		Needs:    "10 s",
		OnDevice: true,
		Run:      experiments.On(set, runTable1Trace),
		Parts: experiments.BenchParts(set, func(o *experiments.Options) (all []bench.Spec, err error) {
			base := table1TraceBase(set, o)
			for _, v := range traceVariants() {
				s, err := v.spec(base)
				if err != nil {
					return nil, err
				}
				all = append(all, s)
			}
			return all, nil
		}),
	}
}

// traceVariant is one kind of traffic with a mean rate of 60 Gbps: the fitted bursts, or a scaled trace.
type traceVariant struct {
	Name      string  `json:"name"`
	Averaging string  `json:"averaging,omitempty"`
	Spread    float64 `json:"spread,omitempty"`
	// MaxDeparture is larger if the trace temporarily exceeds the port's line rate.
	MaxDeparture olaf.Duration `json:"max_departure,omitempty"`
}

// traceVariants returns the bursts of table1 and three ways to scale a trace to 60 Gbps. The spread of the last way was
// chosen so that FIFO's losses agree with the paper if the port's line rate is ignored. Its traffic starts at three
// times the mean rate, which a 100 Gbps port slows down.
func traceVariants() []traceVariant {
	return []traceVariant{
		{Name: "fitted bursts"},
		{"trace, stationary", trace.Stationary, 1, 2 * olaf.Microsecond},
		{"trace, whole run", trace.WholeRun, 1, 2 * olaf.Microsecond},
		{"trace, whole run, spread 7, paced", trace.WholeRun, 7, olaf.Millisecond},
	}
}

// table1Cells lists the numbers that are compared, in per cent of the updates sent.
var table1Cells = []struct {
	name, queue, claim string
	of                 func(olaf.Counts) float64
	published          func(float64) float64
}{
	{"FIFO lost", "fifo", "lost_pct", lostPct, same},
	{"Olaf delivered frames", "olaf", "received", func(c olaf.Counts) float64 { return pct(c.Of("delivered"), c) }, ofSent},
	{"Olaf aggregated", "olaf", "aggregated", func(c olaf.Counts) float64 { return pct(c.Of("aggregated"), c) }, ofSent},
	{"Olaf lost", "olaf", "lost_pct", lostPct, same},
}

func pct(n int64, c olaf.Counts) float64 { return 100 * float64(n) / float64(c.SumOffered()) }
func lostPct(c olaf.Counts) float64      { return pct(c.SumLost(), c) }
func same(v float64) float64             { return v }

// ofSent converts a published count to a percentage of the 13,500 updates that the testbed sent.
func ofSent(v float64) float64 { return v / 135 }

// table1TraceBase returns the settings that all variants have in common.
func table1TraceBase(set system.Set, o *experiments.Options) bench.Spec {
	base := Table1(set)
	base.Runs, base.Seed = o.Seeds(30, 6)
	return base
}

// spec returns the bench specification for a variant.
func (v *traceVariant) spec(base bench.Spec) (bench.Spec, error) {
	if v.Averaging == "" {
		return base, nil
	}
	t, err := trace.NewTraffic(trace.Builtin+"lander8", &base.Workload)
	if err != nil {
		return base, err
	}
	t.Averaging, t.Spread, t.MaxDeparture = v.Averaging, v.Spread, v.MaxDeparture
	base.Trace = t
	return base, nil
}

func runTable1Trace(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	base := table1TraceBase(set, &o)
	runs := base.Runs
	variants := traceVariants()
	f := experiments.NewResult("olaf/table1-trace", "Table 1 from recorded training", &o, struct {
		Spec     bench.Spec     `json:"spec"`
		Trace    string         `json:"trace"`
		Variants []traceVariant `json:"variants"`
	}{base, trace.Builtin + "lander8", variants})
	f.Panels = make([]result.Panel, len(table1Cells))
	for i, cell := range table1Cells {
		f.Panels[i] = result.Panel{Name: cell.name, Group: "cells", XLabel: "output rate [Gbps]",
			YLabel: "% of the updates sent", Series: []result.Series{publishedCells(i)}}
	}
	for i, v := range variants {
		spec, err := v.spec(base)
		if err != nil {
			return nil, err
		}
		report, err := o.Measure(ctx, spec, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		if err := report.Err(); err != nil {
			f.Fail(fmt.Errorf("%s: %w", v.Name, err))
		}
		for c := range table1Cells {
			f.Panels[c].Series = append(f.Panels[c].Series, measuredCells(v.Name, c, report.Outcome))
		}
		o.ReportProgress(i+1, len(variants))
	}
	f.Say("27 workers in 9 clusters, 500 updates each, 60 Gbps offered, %d seeds; lost = sent − delivered − "+
		"aggregated, as the paper prints it", runs)
	f.Say("a resampled recording of a training run offers smooth traffic: at 60 Gbps FIFO loses about 1 − " +
		"output/60, less than the paper prints; if the rate is averaged over a run whose fast workers end early, " +
		"it loses more")
	f.Say("with the slowest cluster 7 times as slow as the fastest, the first workers together ask for about 180 " +
		"Gbps; the port paces them to 100 Gbps, so departures lag the trace by up to about a fifth of the run, " +
		"which the other variants would count as invalid")
	f.Say("the bursts were fitted to the paper's numbers, but the trace was not")
	return f, nil
}

// publishedCells returns the curve with the paper's numbers for a cell.
func publishedCells(cell int) result.Series {
	c := &table1Cells[cell]
	s := result.Series{Name: result.PaperSeries}
	for _, rate := range []int{20, 40} {
		if claim, ok := paper.ClaimsByID()[fmt.Sprintf("olaf/table1.%s.%dg.%s", c.queue, rate, c.claim)]; ok {
			s.X, s.Y = append(s.X, float64(rate)), append(s.Y, result.Describe([]float64{c.published(claim.Value)}))
		}
	}
	return s
}

// measuredCells returns the curve with our numbers for a cell, over ascending output rates.
func measuredCells(name string, cell int, o *bench.Outcome) result.Series {
	s := result.Series{Name: name}
	for i := len(o.Plan.Configs) - 1; i >= 0; i-- {
		config := &o.Plan.Configs[i]
		if config.Queue != table1Cells[cell].queue {
			continue
		}
		var values []float64
		for r := range o.Runs[i] {
			if run := &o.Runs[i][r]; len(run.Invalid) == 0 {
				values = append(values, table1Cells[cell].of(run.Counters))
			}
		}
		s.X, s.Y = append(s.X, float64(config.OutRate)/1e9), append(s.Y, result.Describe(values))
	}
	return s
}
