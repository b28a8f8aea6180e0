package policy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/sched"
)

// present lists the installed solvers. Under CI a missing one is a failure.
func present(t *testing.T) (out []Solver) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a solver")
	}
	for _, s := range Solvers() {
		err := s.Find()
		if err == nil {
			out = append(out, s)
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("%v; 'make peers' installs it", err)
		}
		t.Logf("skipped: %v", err)
	}
	if len(out) == 0 {
		t.Skip("no solver is installed")
	}
	return out
}

// quick leaves out scipy, which takes half a second to start, if there is another solver.
func quick(solvers []Solver) (out []Solver) {
	for _, s := range solvers {
		if _, highs := s.(Highs); !highs || len(solvers) == 1 {
			out = append(out, s)
		}
	}
	return out
}

// together runs Plan on every problem with a solver. scipy takes half a second to start, so its models are solved first
// in one process, and its answers are played back.
func together(t *testing.T, s Solver, problems []*sched.Problem, o ExactOptions) []*sched.Plan {
	t.Helper()
	if highs, ok := s.(Highs); ok && !highs.hasProgram() {
		s = &batched{Highs: highs, t: t, problems: problems, o: o}
	}
	var plans []*sched.Plan
	for _, p := range problems {
		o := o
		o.Solver = s
		plan, err := PlanExactly(context.Background(), p, o)
		if err != nil {
			t.Fatalf("%s: %v", s.Name(), err)
		}
		plans = append(plans, plan)
	}
	return plans
}

// batched is a solver that answers from a batch, which is solved at the first question.
type batched struct {
	Highs
	t        *testing.T
	problems []*sched.Problem
	o        ExactOptions
	answers  []Answer
}

func (b *batched) Solve(ctx context.Context, m *Model, l Limits) (Answer, error) {
	if b.answers == nil {
		var models []*Model
		for _, p := range b.problems {
			models = append(models, modelOf(b.t, p, b.o.Repairs))
		}
		var err error
		if b.answers, err = b.SolveAll(ctx, models, l); err != nil {
			return Answer{}, err
		}
	}
	if len(b.answers) == 0 {
		return b.Highs.Solve(ctx, m, l)
	}
	a := b.answers[0]
	if len(a.Values) > 0 && len(a.Values) != len(m.Variables) {
		return b.Highs.Solve(ctx, m, l) // a second question about the same problem
	}
	b.answers = b.answers[1:]
	return a, nil
}

// modelOf returns the first model that Plan solves.
func modelOf(t *testing.T, p *sched.Problem, r sched.Repairs) *Model {
	t.Helper()
	start, err := incumbent(context.Background(), p, r)
	if err != nil {
		t.Fatal(err)
	}
	in := p.Instance(p.PartialINC || !r.Has(sched.WholeJobs))
	s := &search{in: in, o: &ExactOptions{Repairs: r}, best: start}
	return &s.model().Model
}

// TestBruteForce compares the model with enumeration, for every solver.
func TestBruteForce(t *testing.T) {
	solvers := present(t)
	const instances, slots = 60, 4
	var problems []*sched.Problem
	var want []float64
	for seed := uint64(0); len(problems) < instances; seed++ {
		p := tiny(seed)
		if p.Check() != nil {
			continue // unreachable, or more connections than ports
		}
		start, err := incumbent(context.Background(), p, sched.AllRepairs)
		if err != nil || start.Slots > slots {
			continue
		}
		problems = append(problems, p)
		want = append(want, leastByForce(p, start.Slots))
	}
	better := 0
	for _, s := range solvers {
		for i, plan := range together(t, s, problems, ExactOptions{Repairs: sched.AllRepairs, Limits: Limits{Time: time.Minute}}) {
			got := (plan.Outcome.CTBTI + problems[i].Instance(false).Origin()).Seconds()
			if math.Abs(got-want[i]) > 1e-6 || plan.Proof.Status != sched.Optimal {
				text, _ := problems[i].Text()
				t.Errorf("instance %d, %s: %v (%s, bound %v), by force %v\n%s", i, s.Name(), got, plan.Proof.Status, plan.Proof.Bound, want[i], text)
			}
			if v := sched.CheckPlan(plan); !v.OK() {
				t.Errorf("instance %d, %s: %s", i, s.Name(), v.Violations[0].What)
			}
			if plan.Proof.From == "" {
				better++
			}
		}
	}
	t.Logf("%d instances × %d solvers; %d plans are the solvers' own", len(problems), len(solvers), better)
}

// BenchmarkHighs solves 8 units of 4 ports and 60 jobs to a proof; the optics are not a bottleneck.
func BenchmarkHighs(b *testing.B) {
	highs := Highs{}
	if err := highs.Find(); err != nil {
		b.Skip(err)
	}
	for seed := uint64(1); seed <= 3; seed++ {
		b.Run(fmt.Sprintf("8x60/seed=%d", seed), func(b *testing.B) {
			spec := sched.PaperWorkload(60, seed)
			spec.Units, spec.Ports = 8, 4
			p, err := sched.GenerateProblem(spec)
			if err != nil {
				b.Fatal(err)
			}
			tw, err := Plan(b.Context(), p, TW, Options{Repairs: sched.AllRepairs})
			if err != nil {
				b.Fatal(err)
			}
			var least *sched.Plan
			for b.Loop() {
				if least, err = PlanExactly(b.Context(), p, ExactOptions{Solver: highs, Repairs: sched.AllRepairs, Limits: Limits{Time: time.Minute}}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(least.Proof.GapPct, "gap_%")
			b.ReportMetric(least.Outcome.CTBTI.Seconds(), "CT-BTI_s")
			b.ReportMetric(100*(tw.Outcome.CTBTI-least.Outcome.CTBTI).Seconds()/least.Outcome.CTBTI.Seconds(), "TW_above_%")
		})
	}
}

// TestSolversAgree checks with larger problems that every solver's bound is below every plan, including every policy's.
func TestSolversAgree(t *testing.T) {
	solvers := present(t)
	if len(solvers) < 2 {
		t.Skip("fewer than two solvers are installed")
	}
	var problems []*sched.Problem
	for seed := range uint64(20) {
		spec := sched.PaperWorkload(8, seed)
		spec.Units, spec.Ports, spec.INC, spec.PerSecond = 4, 2, 1, 40
		p, err := sched.GenerateProblem(spec)
		if err != nil {
			t.Fatal(err)
		}
		problems = append(problems, p)
	}
	var all [][]*sched.Plan
	for _, s := range solvers {
		all = append(all, together(t, s, problems, ExactOptions{Repairs: sched.AllRepairs, Limits: Limits{Time: 2 * time.Second}}))
	}
	proved := 0
	for i, p := range problems {
		for k := range all {
			a := all[k][i]
			if a.Proof.Status == sched.Optimal {
				proved++
			}
			for n := range all {
				if b := all[n][i]; a.Proof.Bound > b.Outcome.CTBTI {
					t.Errorf("problem %d: %s says that nothing is below %v, and %s has %v", i, a.Proof.Solver, a.Proof.Bound, b.Proof.Solver, b.Outcome.CTBTI)
				}
			}
			for _, name := range []Name{TW, FCFS} {
				plan, err := Plan(context.Background(), p, name, Options{Repairs: sched.AllRepairs})
				if err != nil && !errors.Is(err, ErrHorizon) {
					t.Fatal(err)
				}
				if err == nil && a.Proof.Bound > plan.Outcome.CTBTI {
					t.Errorf("problem %d: %s says that nothing is below %v, and %s has %v", i, a.Proof.Solver, a.Proof.Bound, name, plan.Outcome.CTBTI)
				}
			}
		}
	}
	t.Logf("%d of %d searches ended with a proof", proved, len(problems)*len(solvers))
}
