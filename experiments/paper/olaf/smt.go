package olaf

import (
	"context"
	"errors"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/aomcheck"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// solved is the experiment that measures how long a solver takes for the fairness query of the formal model (§6).
var solved = experiments.Experiment{
	Name:     "olaf/smt",
	Artefact: "§6",
	About:    "seconds that z3 takes to decide whether two clusters are treated fairly, in both cases of the text",
	Needs:    "2 s",
	Timed:    true,
	Run:      runSolved,
}

// fairnessCase is one of the two cases in the text: both clusters send every 100 ms, or one of them sends every 300 ms.
type fairnessCase struct {
	Name     string        `json:"name"`
	Interval olaf.Duration `json:"second_interval"`
}

func runSolved(ctx context.Context, o experiments.Options) (result.Report, error) {
	runs, _ := o.Seeds(5, 1)
	cases := []fairnessCase{{"100 and 100 ms", 100 * olaf.Millisecond}, {"100 and 300 ms", 300 * olaf.Millisecond}}
	f := experiments.NewResult("olaf/smt", "§6", &o, struct {
		Cases []fairnessCase `json:"cases"`
		Runs  int            `json:"runs"`
	}{cases, runs})
	seconds := make([][]results.Float, len(cases))
	for r := range runs {
		for i, c := range cases {
			took, err := timeOf(ctx, c)
			switch {
			case errors.Is(err, aomcheck.ErrAbsent):
				f.Compare(paper.Ours{"olaf/smt.fairness_query.solver_time": paper.Of(results.Describe(nil, err.Error()))})
				return f, nil
			case err != nil:
				return nil, err
			}
			seconds[i] = append(seconds[i], results.Float(took.Seconds()))
			o.ReportProgress(r*len(cases)+i+1, runs*len(cases))
		}
	}
	panel := result.Panel{Name: "solver time", XLabel: "period of the second cluster, ms", YLabel: "seconds of z3"}
	series := result.Series{Name: "z3"}
	var slowest results.Statistic
	for i, c := range cases {
		s := results.Describe(seconds[i], "")
		series.X, series.Y = append(series.X, c.Interval.Seconds()*1e3), append(series.Y, s)
		if i == 0 || s.Mean > slowest.Mean {
			slowest = s
		}
	}
	panel.Series = []result.Series{series}
	f.Panels = []result.Panel{panel}
	f.Compare(paper.Ours{"olaf/smt.fairness_query.solver_time": paper.Of(slowest)})
	f.Say("wall time on this machine, of the slower case: 80 updates a cluster from given phases, p/C = 2 ms, ε = " +
		"0.1 ms, threshold 400 ms; it differs from run to run")
	return f, nil
}

// timeOf returns the time that z3 takes for a case.
func timeOf(ctx context.Context, c fairnessCase) (time.Duration, error) {
	const ms = olaf.Millisecond
	v, err := aomcheck.Verify(ctx, aomcheck.Problem{
		Clusters: []aomcheck.Cluster{{Interval: 100 * ms}, {Interval: c.Interval}},
		Service:  2 * ms, Horizon: 80, Control: aomcheck.Control{DeltaT: 400 * ms},
		Objective: aomcheck.Objective{Kind: aomcheck.Fairness, Bound: ms / 10},
	}, aomcheck.Options{Solvers: []aomcheck.Solver{aomcheck.Z3()}})
	if err != nil {
		return 0, err
	}
	return v.Wall, nil
}
