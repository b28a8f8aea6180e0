package policy

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
)

// TestRepair checks every repair of the policies with the smallest problem for which the printed text is wrong: the
// plan's claims, or the checker's verdict on the plan, without the repair and with it.
func TestRepair(t *testing.T) {
	const second = olaf.Second
	here := func(unit string, n int) map[string]int { return map[string]int{unit: n} }
	gigabits := func(n int64) olaf.Size { return olaf.Size(n * 1e9 / 8) }
	inc := func(p *sched.Problem, n int) *sched.Problem { return p.WithINC(n) }
	for name, c := range map[string]struct {
		problem *sched.Problem
		policy  Name
		// without is the first violation in the plan without the repair; empty if that plan is only worse.
		without string
		// ends are the CT-BTIs claimed by the plans without and with the repair; 0 if a plan leaves jobs undone.
		ends [2]olaf.Duration
	}{
		"volume": {
			inc(one(sched.Job{Volume: gigabits(20), Workers: here("u", 1), Server: "v"}), 1), TW,
			"the plan claims a CT-BTI of 1s, but the check gives 0ps", [2]olaf.Duration{second, 2 * second},
		},
		"server-rate": {
			one(sched.Job{Volume: gigabits(10), Workers: here("u", 2), Server: "u"}), FCFS,
			"2 streams of 10 Gbps arrive at the server of j in slot 0, above the 10Gbps of its interface",
			[2]olaf.Duration{second, 2 * second},
		},
		"duplex": {
			one(sched.Job{Volume: gigabits(10), Workers: here("u", 1), Server: "v"}, sched.Job{Volume: gigabits(10), Workers: here("v", 1), Server: "u"}), FCFS,
			"", [2]olaf.Duration{2 * second, second},
		},
		"rise": {
			func() *sched.Problem {
				p := one(sched.Job{Volume: gigabits(10), Workers: here("u", 1), Server: "v"})
				p.Reconfiguration, p.Connections = second/10, []sched.Connection{{Between: []string{"u", "v"}, Count: 1}}
				return p
			}(), FCFS,
			"the plan claims a number of reconfigurations of 2, but the check gives 0", [2]olaf.Duration{2 * second,
				second},
		},
		"slot-end": {
			one(sched.Job{Volume: gigabits(10), Workers: here("u", 1), Server: "u"}), FCFS,
			"the plan claims a CT-BTI of 0ps, but the check gives 1s", [2]olaf.Duration{0, second},
		},
		"whole-jobs": {
			inc(one(sched.Job{Volume: gigabits(5), Workers: map[string]int{"u": 2, "v": 1}, Server: "v"}), 1), TW,
			"the switch of u aggregates job j, whose workers are in 2 units", [2]olaf.Duration{second, 2 * second},
		},
		"keep-inc": {
			// The place in u is taken during the first slot. j1 begins without INC and gets it in the middle of the
			// slot, which the plan cannot express.
			inc(one(sched.Job{Volume: gigabits(10), Workers: here("u", 1), Server: "w"}, sched.Job{Volume: gigabits(9), Workers: here("u", 2), Server: "u"}), 1), FCFS,
			"the switch of u aggregates for 2 jobs in slot 0, but it has room for 1", [2]olaf.Duration{2 * second,
				2 * second},
		},
		"serve-inc": {
			inc(one(sched.Job{Volume: gigabits(10), Workers: here("u", 1), Server: "u"}), 1), TW,
			"", [2]olaf.Duration{0, second},
		},
		"part-steps": {
			one(sched.Job{Volume: gigabits(6), Workers: here("u", 2), Server: "u"}), TW,
			"", [2]olaf.Duration{0, 2 * second},
		},
		"enough": {
			one(sched.Job{Volume: gigabits(5), Workers: here("u", 1), Server: "v"}, sched.Job{Volume: gigabits(5), Workers: here("u", 1), Server: "v"}), FCFS,
			"", [2]olaf.Duration{2 * second, second},
		},
	} {
		bit, err := sched.ParseRepairs(name)
		if err != nil {
			t.Fatal(err)
		}
		without, with := plan(t, c.problem, c.policy, sched.AllRepairs&^bit), plan(t, c.problem, c.policy, sched.AllRepairs)
		for i, p := range []*sched.Plan{without, with} {
			if p.Outcome.CTBTI != c.ends[i] {
				t.Errorf("%s: the plan claims %v, want %v (without and with: %d)", name, p.Outcome.CTBTI, c.ends[i], i)
			}
		}
		said := func(v sched.Violation) bool { return strings.Contains(v.What, c.without) }
		if v := sched.CheckPlan(without); c.without != "" && !slices.ContainsFunc(v.Violations, said) || c.without == "" && !v.OK() {
			t.Errorf("%s: without it the checker says %+v, want %q", name, v.Violations, c.without)
		}
		if v := sched.CheckPlan(with); !v.OK() {
			t.Errorf("%s: with it the checker says %s", name, v.Violations[0].What)
		}
	}
}

// TestWindowRepairs checks the repairs of Algorithm 3, which only change the order of ports.
func TestWindowRepairs(t *testing.T) {
	in := one(sched.Job{Volume: 10e9 / 8, Update: 2 * olaf.Second, Workers: map[string]int{"u": 1}, Server: "v"},
		sched.Job{Volume: 10e9 / 8, Workers: map[string]int{"u": 1}, Server: "v"}).Instance(false)
	slow, quick := &task{Member: &in.Jobs[0], inc: sched.NoSwitch}, &task{Member: &in.Jobs[1], inc: sched.NoSwitch}
	const threshold = 1e-6
	window := func(r sched.Repairs, tasks ...*task) float64 {
		p := virtualPort{cap: 10e9}
		for _, t := range tasks {
			p.add(t, t.Volume)
		}
		return p.window(threshold, r)
	}
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 2*threshold {
			t.Errorf("%s: the window ends after %v s, want %v", name, got, want)
		}
	}
	// One job of 1 s and an update of 2 s: nothing can be done before 3 s.
	near("one job", window(sched.AllRepairs, slow), 3)
	// With a second job of 1 s without an update: 10/(t − 2) + 10/t = 10, so t = 2 + √2.
	near("two jobs", window(sched.AllRepairs, slow, quick), 2+math.Sqrt2)
	// Testing the lower end, which starts at 2 s, divides by zero there, so the search never finds that 3 s suffice.
	if got := window(sched.AllRepairs&^sched.Midpoint, slow, quick); got < 3.5-threshold {
		t.Errorf("with the lower end tested, the window ends after %v s, want at least 3.5: the middle is never tried", got)
	}
	// Counting the update from the lower end of 1 s gives 10/(1 − 2), which is negative and passes.
	near("late update", window(sched.AllRepairs&^sched.LateUpdate&^sched.Midpoint, slow), 1)
}

// TestLocalShare checks the volume that the printed Eq. (8) leaves out: that of the worker beside the server.
func TestLocalShare(t *testing.T) {
	p := one(sched.Job{Volume: 10e9 / 8, Workers: map[string]int{"u": 1, "v": 1}, Server: "v"})
	for r, want := range map[sched.Repairs]float64{sched.AllRepairs: 20e9, sched.AllRepairs &^ sched.LocalShare: 10e9} {
		s := newState(p, r)
		s.active = []*task{&s.tasks[0]}
		s.windows()
		sum := 0.0
		for _, v := range s.ports[2].volumes { // server side of v
			sum += v
		}
		if sum != want {
			t.Errorf("repairs %v: %v bits at the server's port, want %v", r, sum, want)
		}
	}
}

// TestReconfigurationDelaysOnlyTheRise checks that the planner charges a reconfiguration only to the rate that it adds:
// the previous slot's rate continues over the connections that stay.
func TestReconfigurationDelaysOnlyTheRise(t *testing.T) {
	p := one(sched.Job{ID: "a", Volume: 10e9 / 8, Workers: map[string]int{"u": 1}, Server: "w"},
		sched.Job{ID: "b", Volume: 25e9 / 8, Workers: map[string]int{"u": 1}, Server: "v"})
	p.ServerRate, p.Reconfiguration = 40*olaf.Gbps, olaf.Second/2
	p.Units[0].Ports, p.Units[1].Ports = 2, 2
	p.Connections = []sched.Connection{{Between: []string{"u", "v"}, Count: 1}, {Between: []string{"u", "w"}, Count: 1}}
	made := plan(t, p, FCFS, sched.AllRepairs)
	got, want := made.Jobs[1].Rates, []float64{10e9, 20e9}
	if !slices.Equal(got, want) || made.Outcome.CTBTI != 2*olaf.Second {
		t.Errorf("job b sends 10 Gb in slot 0, and 20 Gb less half of the added 10 in slot 1, which is all of its 25 Gb: want rates %v for 2 s, got %v for %v",
			want, got, made.Outcome.CTBTI)
	}
	if v := sched.CheckPlan(made); !v.OK() {
		t.Errorf("the checker must accept a plan that charges the rise: %+v", v.Violations)
	}
}
