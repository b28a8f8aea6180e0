package p4inc

import (
	"context"
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// model is one of the models trained in Fig. 5. The paper prints the sizes of two models; the others are from common
// implementations. The compared ratio does not depend on the sizes.
type model struct {
	Name   string    `json:"name"`
	Volume olaf.Size `json:"volume"`
}

func models() []model {
	return []model{{"ResNet50", sched.ResNet50}, {"ResNet101", 170e6}, {"ResNet152", 230e6}, {"VGG11", 507e6},
		{"VGG16", sched.VGG16}, {"VGG19", 548e6}}
}

// singleJob returns the planning problem for one job with two workers in one rack and its server in another.
func singleJob(m model) *sched.Problem {
	return &sched.Problem{
		Slot: 100 * olaf.Microsecond, Step: 10 * olaf.Gbps, PortRate: 40 * olaf.Gbps, ServerRate: 40 * olaf.Gbps,
		Units:       []sched.Unit{{Name: "gpu", Ports: 8, INC: 4}, {Name: "cpu", Ports: 8}},
		Connections: []sched.Connection{{Between: []string{"gpu", "cpu"}, Count: 8}},
		Jobs:        []sched.Job{{ID: m.Name, Volume: m.Volume, Workers: map[string]int{"gpu": 2}, Server: "cpu"}},
	}
}

func runFig5(ctx context.Context, o experiments.Options) (result.Report, error) {
	t := experiments.NewResult("p4inc/fig5", "Fig. 5", &o, models())
	times := result.Block{Name: "moving a gradient", Unit: "ms", Columns: []string{"server", "switch"}}
	ratio := result.Block{Name: "server over switch", Unit: "x", Columns: []string{"ours"}}
	ours := paper.Ours{}
	for _, m := range models() {
		p := singleJob(m)
		var took [2]float64
		for i, of := range []*sched.Problem{p.WithINC(0), p} {
			plan, err := policy.PlanChecked(ctx, of, policy.TW)
			if err != nil {
				return nil, err
			}
			took[i] = plan.Outcome.CTBTI.Seconds()
		}
		by := results.Exactly(took[0] / took[1])
		times.Rows = append(times.Rows, result.Line{Name: m.Name, Cells: []results.Statistic{results.Exactly(1e3 * took[0]), results.Exactly(1e3 * took[1])}})
		ratio.Rows = append(ratio.Rows, result.Line{Name: m.Name, Cells: []results.Statistic{by}})
		ours["p4inc/fig5.speedup_of_inc."+strings.ToLower(m.Name)] = paper.Of(by)
	}
	t.Blocks = []result.Block{times, ratio}
	t.Compare(ours)
	t.Say("no time for computing or adding: neither is printed. With a time c for computing, the printed 1.56, " +
		"1.83 and 1.65 of ResNets follow from c = 0.79, 0.20 and 0.54 times a gradient's own time on the wire")
	t.Say("two workers that share one interface are at most twice as slow as with a switch, so the network does " +
		"not explain the 3.7 and 3.8 printed for VGGs: the server must have taken 3.7 times its own time on the " +
		"wire")
	return t, nil
}

// rackAssumptions returns the judged assumption and two others: no connections before the first slot, and jobs of
// several iterations whose gradients are sent as one volume.
func rackAssumptions() []assumption {
	return []assumption{judged, assumptions()[1], {fmt.Sprintf("%d iterations a job", iterations), func(s *sched.Workload) {
		judged.change(s)
		for i := range s.Volume {
			s.Volume[i] *= iterations
		}
	}}}
}

// iterations is the number of iterations in the jobs that have more than one.
const iterations = 20

// rackJobs lists the numbers of jobs in Figs. 6 and 7.
var rackJobs = []float64{10, 20, 40, 60}

// racks plans the testbed's jobs for ResNet50 and VGG16 under every assumption, and compares the numbers with the
// claims.
func racks(ctx context.Context, f *result.Result, o *experiments.Options, m policy.Metric,
	numbers func(resnet, vgg []policy.Cell) paper.Ours) error {
	seeds, first := o.Seeds(10, 2)
	jobs := axis("jobs")
	ours := paper.Ours{}
	all := judgedOnly(o, rackAssumptions())
	for n, a := range all {
		var cells [2][]policy.Cell
		for i, model := range []model{models()[0], models()[4]} {
			base := sched.RackWorkload(0, model.Volume, first)
			a.change(&base)
			scale(o, &base)
			specs, err := jobs.Specs(base, rackJobs)
			if err != nil {
				return err
			}
			done := func(done, total int) { o.ReportProgress((2*n+i)*total+done, 2*len(all)*total) }
			if cells[i], err = policy.Cells(ctx, specs, seeds, done); err != nil {
				return err
			}
			f.Panels = append(f.Panels, jobs.Panels(rackJobs, cells[i], []policy.Metric{m}, ", "+model.Name+", "+a.name)...)
		}
		for id, measured := range numbers(cells[0], cells[1]) {
			take(ours, id, measured, a, n == 0)
		}
	}
	f.Compare(ours)
	f.Say("printed: 4 racks, two of them with workers, 2 or 4 workers a job, a job a second, slots of 1 s, " +
		"servers of 40 Gbps, the paper's 3 runs are 10 here; ours: 8 ports a rack, 60 %% of jobs in one rack, " +
		"updates of 100 ms, reconfigurations of 50 ms, one iteration a job")
	f.Say("one iteration takes 20 to 82 ms for ResNet50 and 106 to 422 ms for VGG16, in a slot of 1 s, so nearly " +
		"every job finishes in its first slot whatever the policy is. How long jobs wait, and so what a policy " +
		"saves, depends on the number of iterations per job, which is not printed")
	return nil
}

func runFig6(ctx context.Context, o experiments.Options) (result.Report, error) {
	f := experiments.NewResult("p4inc/fig6", "Fig. 6", &o, models())
	err := racks(ctx, f, &o, policy.Reconfigurations, func(resnet, vgg []policy.Cell) paper.Ours {
		cells := append(resnet, vgg...)
		mean := func(a, b func([]policy.Cell) paper.Measured) paper.Measured {
			return paper.Of(halfway(a(cells).Statistic, b(cells).Statistic))
		}
		return paper.Ours{
			"p4inc/fig6.reconfigurations_saved.inc": mean(saving(policy.Reconfigurations, incFCFS, noincFCFS),
				saving(policy.Reconfigurations, incTW, noincTW)),
			"p4inc/fig6.reconfigurations_saved.tw": mean(saving(policy.Reconfigurations, noincTW, noincFCFS),
				saving(policy.Reconfigurations, incTW, incFCFS)),
			"p4inc/fig6.inc_tw.fewest_reconfigurations": ahead(policy.Reconfigurations, incTW, noincFCFS, noincTW, incFCFS)(cells),
		}
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// halfway returns the mean of two statistics, with the wider of their two intervals.
func halfway(a, b results.Statistic) results.Statistic {
	wide := a
	if b.CI95 > a.CI95 {
		wide = b
	}
	wide.Mean, wide.Min, wide.Max = (a.Mean+b.Mean)/2, min(a.Min, b.Min), max(a.Max, b.Max)
	return wide
}

func runFig7(ctx context.Context, o experiments.Options) (result.Report, error) {
	f := experiments.NewResult("p4inc/fig7", "Fig. 7", &o, models())
	err := racks(ctx, f, &o, policy.MeanJCT, func(resnet, vgg []policy.Cell) paper.Ours {
		ours := paper.Ours{}
		for name, pair := range map[string][2]int{
			"inc_under_fcfs": {incFCFS, noincFCFS}, "inc_under_tw": {incTW, noincTW},
			"tw_without_inc": {noincTW, noincFCFS}, "tw_with_inc": {incTW, incFCFS},
		} {
			ours["p4inc/fig7."+name+".resnet50"] = saving(policy.MeanJCT, pair[0], pair[1])(resnet)
			ours["p4inc/fig7."+name+".vgg16"] = saving(policy.MeanJCT, pair[0], pair[1])(vgg)
		}
		return ours
	})
	if err != nil {
		return nil, err
	}
	f.Say("the savings of total and average JCT are the same in per cent, because the jobs are the same")
	return f, nil
}
