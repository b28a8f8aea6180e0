package p4inc

import (
	"context"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/results/result"
)

// simulated is the number of jobs in the simulations of Figs. 10 to 12.
const simulated = 1000

var both = []policy.Metric{policy.Reconfigurations, policy.CTBTI}

// draw runs the grid, draws it as a figure of the paper, and states the assumptions.
func (g *grid) draw(ctx context.Context, artefact string, o *experiments.Options, says ...string) (result.Report, error) {
	f := experiments.NewResult(g.experiment, artefact, o, struct {
		Workload sched.Workload `json:"workload"`
		Varied   string         `json:"varied"`
		Values   []float64      `json:"values"`
	}{g.base, g.axis.Name, g.values})
	if err := g.run(ctx, f, o); err != nil {
		return nil, err
	}
	f.Say("printed: 64 units of 24 ports of 40 Gbps, 4 places a switch, 20 jobs a second, slots of 1 s, 2 to 16 " +
		"workers of 102 to 548 MB; ours: 60 %% of jobs in one unit, updates of 100 ms, reconfigurations of 50 ms, " +
		"servers of 40 Gbps, one iteration a job")
	f.Say("20 jobs per second with 7.5 workers of 2.6 Gb need 0.39 Tbps, and the optics of 64 units carry 61 " +
		"Tbps: with the printed numbers no job waits for them, so the policies have little to decide")
	for _, s := range says {
		f.Say("%s", s)
	}
	return f, nil
}

// axis returns the axis of package policy with the given name.
func axis(name string) policy.Axis {
	for _, a := range policy.Axes() {
		if a.Name == name {
			return a
		}
	}
	return policy.Axis{}
}

func runFig8(ctx context.Context, o experiments.Options) (result.Report, error) {
	g := &grid{experiment: "p4inc/fig8", axis: axis("jobs"), values: []float64{800, 1000, 1200, 1400},
		base: sched.PaperWorkload(0, 0), metrics: both, numbers: []number{
			{"reconfigurations_saved.inc_under_fcfs", saving(policy.Reconfigurations, incFCFS, noincFCFS)},
			{"reconfigurations_saved.inc_under_tw", saving(policy.Reconfigurations, incTW, noincTW)},
			{"reconfigurations_saved.tw_without_inc", saving(policy.Reconfigurations, noincTW, noincFCFS)},
			{"reconfigurations_saved.tw_with_inc", saving(policy.Reconfigurations, incTW, incFCFS)},
			{"ct_bti_saved.tw_without_inc", saving(policy.CTBTI, noincTW, noincFCFS)},
			{"ct_bti_saved.tw_with_inc", saving(policy.CTBTI, incTW, incFCFS)},
			{"inc_tw.fewest_reconfigurations", ahead(policy.Reconfigurations, incTW, noincFCFS, noincTW, incFCFS)},
			{"inc_tw.shortest_ct_bti", ahead(policy.CTBTI, incTW, noincFCFS, noincTW, incFCFS)},
			{"noinc_tw.sooner_than_inc_fcfs", ahead(policy.CTBTI, noincTW, incFCFS)},
		}}
	return g.draw(ctx, "Fig. 8", &o)
}

func runFig9(ctx context.Context, o experiments.Options) (result.Report, error) {
	base := sched.PaperWorkload(0, 0)
	base.Kind = sched.MapReduce
	g := &grid{experiment: "p4inc/fig9", axis: axis("jobs"), values: []float64{200, 300, 400, 500}, base: base,
		metrics: both, numbers: []number{
			{"inc_tw_over_noinc_fcfs.reconfigurations_saved", saving(policy.Reconfigurations, incTW, noincFCFS)},
			{"inc_tw_over_noinc_fcfs.ct_bti_saved", saving(policy.CTBTI, incTW, noincFCFS)},
			{"inc_tw.fewest_reconfigurations", ahead(policy.Reconfigurations, incTW, noincFCFS, noincTW, incFCFS)},
			{"inc_tw.shortest_ct_bti", ahead(policy.CTBTI, incTW, noincFCFS, noincTW, incFCFS)},
		}}
	return g.draw(ctx, "Fig. 9", &o, "the paper does not print the widths and volumes of the 500 jobs in its "+
		"trace; ours are random, with a median of 30 MB and a heavy tail")
}

func runFig10(ctx context.Context, o experiments.Options) (result.Report, error) {
	g := &grid{experiment: "p4inc/fig10", axis: axis("units"), values: []float64{8, 16, 32, 64},
		base: sched.PaperWorkload(simulated, 0), metrics: both, numbers: []number{
			{"noinc_tw.fewer_reconfigurations_than_inc_fcfs", ahead(policy.Reconfigurations, noincTW, incFCFS)},
			{"noinc_tw.sooner_than_inc_fcfs", ahead(policy.CTBTI, noincTW, incFCFS)},
			{"inc_tw.fewest_reconfigurations", ahead(policy.Reconfigurations, incTW, noincFCFS, noincTW, incFCFS)},
		}}
	for k, name := range scenarios() {
		g.numbers = append(g.numbers, number{"reconfigurations_fall." + name, falls(policy.Reconfigurations, k)},
			number{"ct_bti_falls." + name, falls(policy.CTBTI, k)})
	}
	return g.draw(ctx, "Fig. 10", &o, "from an even mesh 8 units have 3 connections to each other unit and "+
		"seldom need more, while 64 units have one to every third")
}

func runFig11(ctx context.Context, o experiments.Options) (result.Report, error) {
	g := &grid{experiment: "p4inc/fig11", axis: axis("inc"), values: []float64{1, 2, 4, 8, 16},
		base: sched.PaperWorkload(simulated, 0), metrics: both}
	for k, name := range scenarios() {
		if k < incFCFS {
			g.numbers = append(g.numbers, number{"reconfigurations_flat." + name, spread(policy.Reconfigurations, k, 0)})
			continue
		}
		g.numbers = append(g.numbers, number{"reconfigurations_fall." + name, falls(policy.Reconfigurations, k)},
			number{"ct_bti_falls." + name, falls(policy.CTBTI, k)}, number{"flat_beyond_8." + name, spread(policy.Reconfigurations, k, 3)})
	}
	return g.draw(ctx, "Fig. 11", &o)
}

func runFig12(ctx context.Context, o experiments.Options) (result.Report, error) {
	g := &grid{experiment: "p4inc/fig12", axis: axis("slot"), values: []float64{0.25, 0.5, 1, 2, 4},
		base: sched.PaperWorkload(simulated, 0), metrics: both, numbers: []number{
			{"tw_grows_less_than_fcfs.without_inc", growsLess(policy.CTBTI, noincTW, noincFCFS)},
			{"tw_grows_less_than_fcfs.with_inc", growsLess(policy.CTBTI, incTW, incFCFS)},
		}}
	for k, name := range scenarios() {
		g.numbers = append(g.numbers, number{"reconfigurations_fall." + name, falls(policy.Reconfigurations, k)},
			number{"reconfigurations_converge." + name, spread(policy.Reconfigurations, k, 3)},
			number{"ct_bti_grows." + name, grows(policy.CTBTI, k)})
	}
	return g.draw(ctx, "Fig. 12", &o, "a job that finishes at the beginning of a slot counts as finished when "+
		"the slot ends, as in the paper's Eq. (11), so CT-BTI grows with the slot whatever a policy does")
}

// scenarios returns the names of the four scenarios as they appear in the ids of claims.
func scenarios() []string { return []string{"noinc_fcfs", "noinc_tw", "inc_fcfs", "inc_tw"} }
