package policy

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
)

func plan(t testing.TB, p *sched.Problem, name Name, r sched.Repairs) *sched.Plan {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	plan, err := Plan(context.Background(), p, name, Options{Repairs: r})
	if err != nil && !errors.Is(err, ErrHorizon) {
		t.Fatal(err)
	}
	return plan
}

// drawn returns any small problem, with all features of the network.
func drawn(t *rapid.T) *sched.Problem {
	pick := func(name string, values ...int) int { return rapid.SampledFrom(values).Draw(t, name) }
	p := &sched.Problem{
		Slot: olaf.Second, Step: olaf.Rate(pick("step", 3, 10)) * olaf.Gbps, PortRate: 10 * olaf.Gbps, ServerRate: olaf.Rate(pick("server", 8, 40)) * olaf.Gbps,
		Reconfiguration: olaf.Duration(pick("reconfiguration", 0, 50, 700, 1000)) * olaf.Millisecond,
		HalfDuplex:      rapid.Bool().Draw(t, "half"), PartialINC: rapid.Bool().Draw(t, "partial"),
	}
	for v := range pick("units", 1, 2, 3, 5) {
		p.Units = append(p.Units, sched.Unit{Name: "u" + strconv.Itoa(v), Ports: pick("ports", 1, 2, 4), INC: pick("inc", 0, 1, 3),
			SwitchRate: olaf.Rate(pick("switch", 0, 0, 30)) * olaf.Gbps, Memory: olaf.Size(pick("memory", 0, 3))})
	}
	if len(p.Units) > 1 && rapid.Bool().Draw(t, "connected") {
		p.Connections = []sched.Connection{{Between: []string{"u0", "u1"}, Count: 1}}
	}
	for k := range rapid.IntRange(1, 12).Draw(t, "jobs") {
		j := sched.Job{ID: "j" + strconv.Itoa(k), Arrival: olaf.Duration(rapid.IntRange(0, 4000).Draw(t, "arrival")) * olaf.Millisecond,
			Volume: olaf.Size(rapid.IntRange(1, 4000).Draw(t, "volume")) * 1e6, Update: olaf.Duration(pick("update", 0, 100, 1500)) * olaf.Millisecond,
			Workers: map[string]int{}, Segment: olaf.Size(pick("segment", 0, 1, 2)), ServerOnly: pick("only", 0, 0, 1) == 1}
		for range pick("shares", 1, 1, 2) {
			j.Workers[rapid.SampledFrom(p.Units).Draw(t, "at").Name] = pick("workers", 1, 2, 7)
		}
		j.Server = rapid.SampledFrom(p.Units).Draw(t, "server unit").Name
		p.Jobs = append(p.Jobs, j)
	}
	return p
}

// TestPlansKeepTheRules checks that the checker accepts every plan of both policies, over networks of all kinds.
func TestPlansKeepTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		if p.Check() != nil {
			t.Skip("a job that can't be done")
		}
		for _, name := range []Name{TW, FCFS} {
			plan, err := Plan(context.Background(), p, name, Options{Repairs: sched.AllRepairs})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if v := sched.CheckPlan(plan); !v.OK() {
				t.Fatalf("%s: %s", name, v.Violations[0].What)
			}
		}
	})
}

// TestSubsetsOfRepairs checks that if any repairs are left out, planning still ends and the plan has the right form,
// even if the plan is wrong.
func TestSubsetsOfRepairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		if p.Check() != nil {
			t.Skip("a job that can't be done")
		}
		r := sched.Repairs(rapid.Uint32Range(0, uint32(sched.AllRepairs)).Draw(t, "repairs"))
		name := rapid.SampledFrom([]Name{TW, FCFS}).Draw(t, "policy")
		plan, err := Plan(context.Background(), p, name, Options{Repairs: r})
		if err != nil && !errors.Is(err, ErrHorizon) {
			t.Fatal(err)
		}
		for _, one := range sched.CheckPlan(plan).Violations {
			if one.Rule == sched.BadForm {
				t.Fatalf("repairs %v: %s", r, one.What)
			}
		}
	})
}

func TestDeterministic(t *testing.T) {
	p, err := sched.GenerateProblem(sched.PaperWorkload(200, 5))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []Name{TW, FCFS} {
		if diff := cmp.Diff(plan(t, p, name, sched.AllRepairs).Jobs, plan(t, p, name, sched.AllRepairs).Jobs); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestHorizon(t *testing.T) {
	p := one(sched.Job{Volume: 30e9 / 8, Workers: map[string]int{"u": 1}, Server: "u"})
	got, err := Plan(context.Background(), p, TW, Options{Repairs: sched.AllRepairs, Horizon: 2})
	if !errors.Is(err, ErrHorizon) || err.Error() != "not all jobs are done: j after 2 slots" {
		t.Errorf("%v", err)
	}
	if v := sched.CheckPlan(got); !v.OK() {
		t.Errorf("what there is of a plan is right: %s", v.Violations[0].What)
	}
	if _, err := Plan(context.Background(), p, "lottery", Options{}); err == nil {
		t.Error("a policy that there is not")
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Plan(stopped, p, TW, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestLongGaps checks a plan with a long gap in which no job is present.
func TestLongGaps(t *testing.T) {
	p := one(sched.Job{Volume: 1, Workers: map[string]int{"u": 1}, Server: "u"}, sched.Job{Arrival: 200 * olaf.Hour, Volume: 1, Workers: map[string]int{"u": 1}, Server: "u"})
	got := plan(t, p, FCFS, sched.AllRepairs)
	if got.Slots != 720_001 || !sched.CheckPlan(got).OK() {
		t.Errorf("%d slots, %+v", got.Slots, sched.CheckPlan(got).Violations)
	}
}

// TestMatch compares the matching, with and without its shortcut, with enumeration.
func TestMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.IntRange(1, 4).Draw(t, "units")
		var all []candidate
		single := rapid.Bool().Draw(t, "single")
		for range rapid.IntRange(1, 5).Draw(t, "candidates") {
			var c candidate
			for _, v := range rapid.Permutation([]int{0, 1, 2, 3}[:units]).Draw(t, "order")[:rapid.IntRange(1, units).Draw(t, "edges")] {
				c.units = append(c.units, v)
				c.weights = append(c.weights, float64(rapid.IntRange(1, 20).Draw(t, "weight")))
			}
			if single {
				c.units, c.weights = c.units[:1], c.weights[:1]
			}
			all = append(all, c)
		}
		want := mostByForce(all, map[int]bool{})
		for name, got := range map[string][]int{"match": match(units, all), "hungarian": hungarian(units, all)} {
			if w := weigh(t, all, got); math.Abs(w-want) > 1e-9 {
				t.Fatalf("%s: %v weighs %v, want %v", name, got, w, want)
			}
		}
	})
}

func weigh(t *rapid.T, all []candidate, chosen []int) (sum float64) {
	used := map[int]bool{}
	for k, v := range chosen {
		if v == sched.NoSwitch {
			continue
		}
		i := slices.Index(all[k].units, v)
		if i < 0 || used[v] {
			t.Fatalf("%v is no matching", chosen)
		}
		used[v] = true
		sum += all[k].weights[i]
	}
	return sum
}

func mostByForce(left []candidate, used map[int]bool) float64 {
	if len(left) == 0 {
		return 0
	}
	best := mostByForce(left[1:], used)
	for i, v := range left[0].units {
		if !used[v] {
			used[v] = true
			best = max(best, left[0].weights[i]+mostByForce(left[1:], used))
			delete(used, v)
		}
	}
	return best
}

// TestServeMatchesPrintedAlgorithm checks that the heap gives the result of lines 19–31 taken literally: try every job,
// drop those that cannot get another step, and commit the one that would be done last.
func TestServeMatchesPrintedAlgorithm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		if p.Check() != nil {
			t.Skip("a job that can't be done")
		}
		quick, slow := newState(p, sched.AllRepairs), newState(p, sched.AllRepairs)
		for _, s := range []*state{quick, slow} {
			for i := range s.tasks {
				s.active = append(s.active, &s.tasks[i])
			}
			s.assign()
			for _, port := range s.windows() {
				if s == quick {
					s.serve(port.members)
				} else {
					s.serveSlowly(port.members)
				}
			}
		}
		for i := range quick.tasks {
			if a, b := quick.tasks[i].rate, slow.tasks[i].rate; a != b {
				t.Fatalf("job %d: %v by the heap, %v as printed", i, a, b)
			}
		}
	})
}

func (s *state) serveSlowly(members []*task) {
	left := slices.Clone(members)
	for len(left) > 0 {
		left = slices.DeleteFunc(left, func(t *task) bool { return !s.could(t) })
		best := -1
		for k, t := range left {
			if best < 0 || s.completion(t) > s.completion(left[best]) || s.completion(t) == s.completion(left[best]) && t.index < left[best].index {
				best = k
			}
		}
		if best >= 0 {
			s.raise(left[best])
		}
	}
}

// could reports whether a task can have one more step now.
func (s *state) could(t *task) bool {
	want := min(s.in.Step, s.enough(t)-t.rate)
	return want > 1 && s.network.headroom(t, want, true) > 1
}

// one returns a problem with units u, v and w, each with one port, and with jobs named j, j1, j2 … if they have no
// other id.
func one(jobs ...sched.Job) *sched.Problem {
	p := &sched.Problem{
		Slot: olaf.Second, Step: 10 * olaf.Gbps, PortRate: 10 * olaf.Gbps, ServerRate: 10 * olaf.Gbps,
		Units: []sched.Unit{{Name: "u", Ports: 1}, {Name: "v", Ports: 1}, {Name: "w", Ports: 1}}, Jobs: jobs,
	}
	for k := range p.Jobs {
		if p.Jobs[k].ID == "" {
			p.Jobs[k].ID = "j"
			if k > 0 {
				p.Jobs[k].ID += strconv.Itoa(k)
			}
		}
	}
	return p
}

func benchmark(b *testing.B, name Name, units, jobs int) {
	spec := sched.PaperWorkload(jobs, 1)
	spec.Units, spec.Local, spec.Ports, spec.PerSecond = units, 0.2, 4, 200
	p, err := sched.GenerateProblem(spec)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		plan(b, p, name, sched.AllRepairs)
	}
}

func BenchmarkTW1000(b *testing.B)   { benchmark(b, TW, 64, 1000) }
func BenchmarkTW3000(b *testing.B)   { benchmark(b, TW, 64, 3000) }
func BenchmarkTW10000(b *testing.B)  { benchmark(b, TW, 64, 10000) }
func BenchmarkFCFS1000(b *testing.B) { benchmark(b, FCFS, 64, 1000) }
