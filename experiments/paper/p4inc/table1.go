package p4inc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// The lines of Table I, and the lines with an optimum.
var (
	tableJobs = []int{40, 50, 60, 80, 100}
	provable  = 60
)

// solverLimit is the time limit for finding one optimum.
const solverLimit = 60 * time.Second

// column is one column of Table I, which contains the results of one planner.
type column struct {
	name string
	plan func(context.Context, *sched.Problem) (*sched.Plan, error)
}

func heuristics() []column {
	by := func(name policy.Name) func(context.Context, *sched.Problem) (*sched.Plan, error) {
		return func(ctx context.Context, p *sched.Problem) (*sched.Plan, error) {
			return policy.PlanChecked(ctx, p, name)
		}
	}
	return []column{{"fcfs", by(policy.FCFS)}, {"tw", by(policy.TW)}, {"norecon",
		func(ctx context.Context, p *sched.Problem) (*sched.Plan, error) {
			return policy.PlanChecked(ctx, p.WithMesh(), policy.TW)
		}}}
}

// small returns the workload for one line of the table, with 8 units like those in the simulations.
func small(jobs int) sched.Workload {
	s := sched.PaperWorkload(jobs, 0)
	s.Units = 8
	return s
}

// tally contains the outcomes of each column by line and seed. A seed without a plan has none.
type tally map[string]map[int][]sched.Outcome

func (t tally) add(column string, jobs int, o sched.Outcome) {
	if t[column] == nil {
		t[column] = map[int][]sched.Outcome{}
	}
	t[column][jobs] = append(t[column][jobs], o)
}

func (t tally) values(column string, jobs int, m policy.Metric) []results.Float {
	var values []results.Float
	for i := range t[column][jobs] {
		o := &t[column][jobs][i]
		if o.CTBTI == 0 {
			values = append(values, results.Missing())
			continue
		}
		values = append(values, results.Float(m.Of(o, jobs)))
	}
	return values
}

func runTable1(ctx context.Context, find func(string) (policy.Solver, error), o experiments.Options) (result.Report, error) {
	seeds, first := o.Seeds(10, 2)
	proofs := min(3, seeds)
	t := experiments.NewResult("p4inc/table1", "Table I", &o, small(0))
	ours := paper.Ours{}
	all := judgedOnly(&o, assumptions())
	for n, a := range all {
		done := tally{}
		for i, jobs := range tableJobs {
			for k := range seeds {
				if err := planLine(ctx, done, a, &o, jobs, first+uint64(k)); err != nil {
					return nil, err
				}
			}
			o.ReportProgress(n*len(tableJobs)+i+1, (len(all)+1)*len(tableJobs))
		}
		if n == 0 {
			if err := prove(ctx, find, done, t, ours, &o, proofs, first); err != nil {
				return nil, err
			}
		}
		fill(t, ours, done, a, n == 0)
	}
	t.Compare(ours)
	t.Say("printed: 8 units of 24 ports of 40 Gbps, 4 places a switch, 20 jobs a second, slots of 1 s; ours: 60 " +
		"%% of jobs in one unit, updates of 100 ms, reconfigurations of 50 ms, servers of 40 Gbps")
	t.Say("printed gaps to the optimum divide by the heuristic: over the optimum TW's are 20.6, 18.8 and 19.6 %%, " +
		"printed 17.1, 15.9 and 16.4, FCFS's 76.5, 62.3 and 60.8, printed 43.3, 38.4 and 37.8; NoRecon's 9.6 to " +
		"24.4 %% are over TW, the smaller number")
	t.Say("100 jobs with 7.5 workers of 2.6 Gb have 2 Tb; the optics of 8 units carry 7.7 Tbps and the jobs " +
		"arrive within 5 s, so 14.8 to 31.8 s must come from something that is not printed: the capacity of a " +
		"switch or server, or more than one iteration")
	return t, nil
}

// planLine plans the workload of one line for one seed with every heuristic.
func planLine(ctx context.Context, done tally, a assumption, o *experiments.Options, jobs int, seed uint64) error {
	p, err := lineProblem(a, o, jobs, seed)
	if err != nil {
		return err
	}
	for _, h := range heuristics() {
		plan, err := h.plan(ctx, p)
		switch {
		case errors.Is(err, policy.ErrHorizon): // without reconfigurations some pairs may stay unconnected
			done.add(h.name, jobs, sched.Outcome{})
		case err != nil:
			return fmt.Errorf("%s, %d jobs, seed %d: %w", h.name, jobs, seed, err)
		default:
			done.add(h.name, jobs, plan.Outcome)
		}
	}
	return nil
}

// lineProblem returns the planning problem of one line for one seed.
func lineProblem(a assumption, o *experiments.Options, jobs int, seed uint64) (*sched.Problem, error) {
	s := small(jobs)
	a.change(&s)
	scale(o, &s)
	s.Seed = seed
	return sched.GenerateProblem(s)
}

// prove searches for the optimum for the first few seeds. Without a solver, or if the optimum is not proved in time,
// there is no number.
func prove(ctx context.Context, find func(string) (policy.Solver, error), done tally, t *result.Result, ours paper.Ours,
	o *experiments.Options, seeds int, first uint64) error {
	solver, err := find("")
	if err != nil {
		for _, jobs := range tableJobs {
			if jobs <= provable {
				ours[line(jobs, "milp_ct_bti")] = paper.Of(results.Describe(nil, err.Error()))
				ours[line(jobs, "milp_aoi")] = ours[line(jobs, "milp_ct_bti")]
			}
		}
		t.Say("no optimum: %v", err)
		return nil
	}
	for i, jobs := range tableJobs {
		if jobs > provable || o.Quick && i > 0 {
			break
		}
		for k := range seeds {
			p, err := lineProblem(judged, o, jobs, first+uint64(k))
			if err != nil {
				return err
			}
			plan, err := policy.PlanExactly(ctx, p, policy.ExactOptions{Solver: solver, Repairs: sched.AllRepairs, Limits: policy.Limits{Time: solverLimit}})
			if err != nil {
				return err
			}
			if plan.Proof.Status != sched.Optimal {
				plan.Outcome = sched.Outcome{}
			}
			done.add("milp", jobs, plan.Outcome)
		}
	}
	t.Say("the optimum is from %s, for the first %d seeds if it was proved within %v; its plan does not minimise "+
		"reconfigurations", solver.Name(), seeds, solverLimit)
	return nil
}

// fill adds the blocks and numbers for one assumption to the result.
func fill(t *result.Result, ours paper.Ours, done tally, a assumption, judges bool) {
	names := []string{"fcfs", "tw", "norecon"}
	if judges {
		names = append([]string{"milp"}, names...)
	}
	for _, m := range []struct {
		metric     policy.Metric
		unit, slug string
	}{{policy.CTBTI, "s", "ct_bti"}, {policy.Reconfigurations, "connections", "aoi"}} {
		b := result.Block{Name: m.metric.Title + ", " + a.name, Unit: m.unit, Columns: names}
		for _, jobs := range tableJobs {
			row := result.Line{Name: fmt.Sprintf("%d jobs", jobs)}
			for _, name := range names {
				s := results.Describe(done.values(name, jobs, m.metric), "not proved, or not all connected")
				row.Cells = append(row.Cells, s)
				take(ours, line(jobs, name+"_"+m.slug), paper.Of(s), a, judges)
			}
			b.Rows = append(b.Rows, row)
		}
		t.Blocks = append(t.Blocks, b)
	}
	low, high := span(done)
	take(ours, "p4inc/table1.norecon_over_tw.least", paper.Of(low), a, judges)
	take(ours, "p4inc/table1.norecon_over_tw.most", paper.Of(high), a, judges)
	if judges {
		t.Blocks = append(t.Blocks, gaps(done))
	}
}

// span returns by how many per cent planning without reconfigurations takes longer than TW: the lowest and the highest
// value among the lines.
func span(done tally) (low, high results.Statistic) {
	for i, jobs := range tableJobs {
		tw, still := done.values("tw", jobs, policy.CTBTI), done.values("norecon", jobs, policy.CTBTI)
		var longer []results.Float
		for k := range min(len(tw), len(still)) {
			longer = append(longer, 100*(still[k]/tw[k]-1))
		}
		s := results.Describe(longer, "not all connected")
		if i == 0 || s.Mean < low.Mean {
			low = s
		}
		if i == 0 || s.Mean > high.Mean {
			high = s
		}
	}
	return low, high
}

// gaps returns a block with the distance of each heuristic from the optimum, for seeds whose optimum is known, next to
// the printed gaps and the gaps derived from printed numbers.
func gaps(done tally) result.Block {
	b := result.Block{Name: "above the optimum", Unit: "%", Columns: []string{"fcfs", "tw", "tw printed", "tw " +
		"from the printed seconds"}}
	printed := map[int][2]float64{40: {17.1, 20.6}, 50: {15.9, 18.8}, 60: {16.4, 19.6}}
	for _, jobs := range tableJobs {
		if jobs > provable {
			break
		}
		row := result.Line{Name: fmt.Sprintf("%d jobs", jobs)}
		least := done.values("milp", jobs, policy.CTBTI)
		for _, name := range []string{"fcfs", "tw"} {
			took := done.values(name, jobs, policy.CTBTI)
			var above []results.Float
			for k := range least {
				above = append(above, 100*(took[k]/least[k]-1))
			}
			row.Cells = append(row.Cells, results.Describe(above, "no optimum was proved"))
		}
		row.Cells = append(row.Cells, results.Exactly(printed[jobs][0]), results.Exactly(printed[jobs][1]))
		b.Rows = append(b.Rows, row)
	}
	return b
}

// line returns the id of a claim about Table I.
func line(jobs int, column string) string {
	return fmt.Sprintf("p4inc/table1.%d_jobs.%s", jobs, column)
}
