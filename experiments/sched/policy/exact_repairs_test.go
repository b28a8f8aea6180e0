package policy

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
)

func gigabits(n float64) olaf.Size { return olaf.Size(n * 1e9 / 8) }

// three returns a problem with units u, v and w of one port each and jobs j0, j1 …
func three(jobs ...sched.Job) *sched.Problem {
	p := &sched.Problem{
		Slot: olaf.Second, Step: 10 * olaf.Gbps, PortRate: 10 * olaf.Gbps, ServerRate: 10 * olaf.Gbps,
		Units: []sched.Unit{{Name: "u", Ports: 1}, {Name: "v", Ports: 1}, {Name: "w", Ports: 1}}, Jobs: jobs,
	}
	for k := range p.Jobs {
		p.Jobs[k].ID = fmt.Sprintf("j%d", k)
	}
	return p
}

// TestRepairs checks every repair of the model with the smallest problem for which the printed model is wrong. It
// compares the results without and with the repair, and the checker's verdict on the former.
func TestRepairs(t *testing.T) {
	const second = olaf.Second
	solvers := present(t)
	for name, c := range map[string]struct {
		problem *sched.Problem
		without string           // the checker's verdict; empty if the printed model is only worse or infeasible
		ends    [2]olaf.Duration // CT-BTI without and with; -1 if infeasible
	}{
		"volume": {
			three(sched.Job{Volume: gigabits(20), Workers: map[string]int{"u": 1}, Server: "v"}).WithINC(1),
			"these unfinished jobs: [], but the check gives [j0]", [2]olaf.Duration{second, 2 * second},
		},
		"server-rate": {
			three(sched.Job{Volume: gigabits(10), Workers: map[string]int{"u": 2}, Server: "u"}),
			"2 streams of 10 Gbps arrive at the server of j0 in slot 0", [2]olaf.Duration{second, 2 * second},
		},
		"duplex": {
			three(sched.Job{Volume: gigabits(10), Workers: map[string]int{"u": 1}, Server: "v"}, sched.Job{Volume: gigabits(10), Workers: map[string]int{"v": 1}, Server: "u"}),
			"", [2]olaf.Duration{-1, second}, // the printed model needs two slots where the policies need one
		},
		"rise": {
			func() *sched.Problem {
				p := three(sched.Job{Volume: gigabits(10), Workers: map[string]int{"u": 1}, Server: "v"})
				p.Reconfiguration, p.Connections = second/10, []sched.Connection{{Between: []string{"u", "v"}, Count: 1}}
				return p
			}(),
			"", [2]olaf.Duration{-1, second},
		},
		"slot-end": {
			three(sched.Job{Volume: gigabits(10), Workers: map[string]int{"u": 1}, Server: "u"}),
			"the plan claims a CT-BTI of 0ps, but the check gives 1s", [2]olaf.Duration{0, second},
		},
		"arrival": {
			three(sched.Job{Volume: gigabits(10), Workers: map[string]int{"u": 1}, Server: "u"}, sched.Job{Arrival: second, Volume: gigabits(10), Workers: map[string]int{"u": 1}, Server: "u"}),
			"job j1 sends in slot 0, but it arrives at 1s, so its first slot is 1", [2]olaf.Duration{second,
				2 * second},
		},
		"whole-jobs": {
			three(sched.Job{Volume: gigabits(5), Workers: map[string]int{"u": 2, "v": 1}, Server: "v"}).WithINC(1),
			"the switch of u aggregates job j0, whose workers are in 2 units", [2]olaf.Duration{second, 2 * second},
		},
	} {
		bit, err := sched.ParseRepairs(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range quick(solvers) {
			for i, r := range []sched.Repairs{sched.AllRepairs &^ bit, sched.AllRepairs} {
				plan, err := PlanExactly(context.Background(), c.problem, ExactOptions{Solver: s, Repairs: r, Limits: Limits{Time: time.Minute}})
				if c.ends[i] < 0 {
					if err == nil || !strings.Contains(err.Error(), "no schedule is done in time: the model with repairs") {
						t.Errorf("%s, %s: %v, want none", name, s.Name(), err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s, %s: %v", name, s.Name(), err)
				}
				if plan.Outcome.CTBTI != c.ends[i] {
					t.Errorf("%s, %s: the model believes %v, want %v (without and with: %d)", name, s.Name(), plan.Outcome.CTBTI, c.ends[i], i)
				}
				verdict := sched.CheckPlan(plan)
				said := func(v sched.Violation) bool { return strings.Contains(v.What, c.without) }
				if i == 0 && !slices.ContainsFunc(verdict.Violations, said) || i == 1 && !verdict.OK() {
					t.Errorf("%s, %s: the checker says %+v (without and with: %d)", name, s.Name(), verdict.Violations, i)
				}
			}
		}
	}
}

// TestMinimumRows checks the mistake in Eq. (15), which our constraints do not need: as printed, the minimum of 1 and 2
// is infeasible, and with the opposite sign of M it is 1.
func TestMinimumRows(t *testing.T) {
	const a, b, big = 1.0, 2.0, 10.0
	for _, s := range present(t) {
		for _, sign := range []float64{1, -1} {
			m := &Model{}
			z, u, v := m.add("z", 0, 100, false), m.add("u", 0, 1, true), m.add("v", 0, 1, true)
			m.Objective = []Term{{z, -1}}
			m.row("below_a", AtMost, a, Term{z, 1})
			m.row("below_b", AtMost, b, Term{z, 1})
			// z ≥ a ± M(1 − u), z ≥ b ± M(1 − v)
			m.row("is_a", AtLeast, a+sign*big, Term{z, 1}, Term{u, sign * big})
			m.row("is_b", AtLeast, b+sign*big, Term{z, 1}, Term{v, sign * big})
			m.row("one", AtLeast, 1, Term{u, 1}, Term{v, 1})
			got, err := s.Solve(context.Background(), m, Limits{Time: time.Minute})
			switch {
			case err != nil:
				t.Errorf("%s: %v", s.Name(), err)
			case sign > 0 && !got.Infeasible:
				t.Errorf("%s: as printed there is a least: %+v", s.Name(), got)
			case sign < 0 && (got.Infeasible || math.Abs(got.Objective+a) > 1e-6):
				t.Errorf("%s: the least of 1 and 2 is %+v", s.Name(), got)
			}
		}
	}
}
