package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
)

// ErrInfeasible reports that no schedule ends within the horizon.
var ErrInfeasible = olaf.NewError(olaf.Missed, "no schedule is done in time")

// ErrTooBig reports that the model would be larger than solvers can handle.
var ErrTooBig = olaf.NewError(olaf.Usage, "the model is too big")

// maxVariables is the maximum number of variables in a model. Solvers fail long before this number is reached.
const maxVariables = 2_000_000

// ExactOptions configures the search for the best schedule.
type ExactOptions struct {
	Solver  Solver
	Repairs sched.Repairs
	Limits  Limits
	// Horizon is the number of slots; 0 uses as many as the best policy needs.
	Horizon int
	// Fewest minimises the reconfigurations among the schedules with the CT-BTI found.
	Fewest bool
	// Export receives the model as an LP file before it is solved; may be nil.
	Export io.Writer
	// Progress receives progress messages; may be nil.
	Progress func(string)
}

func (o *ExactOptions) reportProgress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// PlanExactly computes the best schedule for a problem that satisfies sched.Problem.Check. It starts from the better of
// the two policies' plans. That plan's CT-BTI limits the search, and the plan is returned if the solver finds no better
// one in time. The error matches ErrInfeasible, ErrTooBig, ErrAbsent or ErrSolver, or is the context's.
func PlanExactly(ctx context.Context, p *sched.Problem, o ExactOptions) (*sched.Plan, error) {
	start, err := incumbent(ctx, p, o.Repairs)
	if err != nil {
		return nil, err
	}
	in := p.Instance(p.PartialINC || !o.Repairs.Has(sched.WholeJobs))
	s := &search{in: in, o: &o, best: start, from: start.Policy.Name}
	if n := len(p.Jobs) * 3 * start.Slots; n > maxVariables {
		return nil, fmt.Errorf("%w: %d jobs over %d slots make some %d variables; the policies tw and fcfs take them",
			ErrTooBig, len(p.Jobs), start.Slots, n)
	}
	if err := s.solve(ctx); err != nil {
		return nil, err
	}
	if o.Horizon > 0 && s.best.Slots > o.Horizon {
		return nil, s.tooShort()
	}
	if o.Fewest {
		if err := s.minimizeConnections(ctx); err != nil {
			return nil, err
		}
	}
	return s.plan(), nil
}

// incumbent returns the better of the two policies' plans. Plans made by the printed text can be wrong; they are only
// used if they are valid for the problem.
func incumbent(ctx context.Context, p *sched.Problem, r sched.Repairs) (*sched.Plan, error) {
	var best *sched.Plan
	var failed error
	for _, name := range []Name{TW, FCFS} {
		plan, err := Plan(ctx, p, name, Options{Repairs: sched.AllRepairs})
		switch {
		case errors.Is(err, ErrHorizon):
			failed = err
		case err != nil:
			return nil, err
		case best == nil || plan.Outcome.CTBTI < best.Outcome.CTBTI:
			best = plan
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: no policy finds any schedule to start from (%w)", ErrInfeasible, failed)
	}
	best.Policy.Repairs = r
	return best, nil
}

// search is the state of a search.
type search struct {
	in    *sched.Instance
	o     *ExactOptions
	best  *sched.Plan
	from  string        // policy that made best; empty if the solver did
	bound olaf.Duration // on CT-BTI
	done  bool          // the solver found no better plan within the gap
	spent time.Duration
}

// model returns a model of all schedules that end no later than the best schedule found so far.
func (s *search) model() *program {
	cutoff := s.best.Outcome.CTBTI + s.in.Origin()
	return buildModel(s.in, s.o.Repairs, int(cutoff/s.in.Problem.Slot), cutoff)
}

// solve searches for the smallest CT-BTI.
func (s *search) solve(ctx context.Context) error {
	b := s.model()
	if s.o.Export != nil {
		if err := b.WriteLP(s.o.Export); err != nil {
			return err
		}
	}
	variables, integers, rows := b.Size()
	s.o.reportProgress("%s: %d variables, %d of them integers, %d rows; %s has %v", s.o.Solver.Name(), variables, integers, rows,
		s.from, s.best.Outcome.CTBTI)
	began := time.Now()
	a, err := s.o.Solver.Solve(ctx, &b.Model, s.o.Limits)
	s.spent = time.Since(began)
	if err != nil {
		return err
	}
	if a.Infeasible {
		if s.o.Repairs == sched.AllRepairs {
			return broken(s.o.Solver.Name(), "reports that there is no schedule of %v, but %s has one", s.best.Outcome.CTBTI, s.from)
		}
		return fmt.Errorf("%w: the model with repairs %v allows none of %v, which %s has", ErrInfeasible, s.o.Repairs,
			s.best.Outcome.CTBTI, s.from)
	}
	s.done = a.Optimal
	s.raise(b, a.Bound)
	if s.o.Repairs == sched.AllRepairs && s.bound > s.best.Outcome.CTBTI {
		return broken(s.o.Solver.Name(), "reports that no schedule is below %v, but there is one of %v", s.bound, s.best.Outcome.CTBTI)
	}
	if a.Values == nil {
		return nil
	}
	return s.take(ctx, b, a)
}

// raise updates the lower bound with a solver's lower bound on the end, in s. Schedules end at the end of a slot, with
// or without an update, so the new bound is the earliest such time that is not before end.
func (s *search) raise(b *program, end float64) {
	end = max(end, b.least) - 1e-6
	least := olaf.Duration(math.MaxInt64)
	for k := range s.in.Jobs {
		m := &s.in.Jobs[k]
		for _, late := range []olaf.Duration{0, m.Late} {
			slot := max(0, int(math.Ceil((end-late.Seconds())/s.in.Slot-1e-9)))
			least = min(least, s.in.Problem.Slot*olaf.Duration(slot)+late)
		}
	}
	s.bound = least - s.in.Origin()
}

// take converts a solver's point to a plan. It stores the plan as the best one only if the plan is valid.
func (s *search) take(ctx context.Context, b *program, a Answer) error {
	plan, verdict := b.read(a.Values, s.o)
	if !verdict.OK() && s.o.Repairs == sched.AllRepairs {
		// Solvers accept 0.999999 for 1. With fixed integers, the rates become exact.
		polished, err := s.o.Solver.Solve(ctx, b.fixIntegers(a.Values), Limits{Time: s.o.Limits.Time})
		if err != nil {
			return err
		}
		if polished.Values != nil {
			plan, verdict = b.read(polished.Values, s.o)
		}
	}
	if s.o.Repairs != sched.AllRepairs {
		s.best, s.from = plan, ""
		return nil
	}
	name := s.o.Solver.Name()
	if !verdict.OK() {
		return broken(name, "answered with a schedule that is none: %s", verdict.Violations[0].What)
	}
	end := plan.Outcome.CTBTI + s.in.Origin()
	if claimed := a.Objective; math.Abs(claimed-end.Seconds()) > 1e-4*max(1, claimed) && a.Optimal {
		return broken(name, "reports that its schedule ends at %.6g s; it ends at %v", claimed, end)
	}
	if s.bound > plan.Outcome.CTBTI {
		return broken(name, "reports that no schedule is below %v, but its own is %v", s.bound, plan.Outcome.CTBTI)
	}
	if plan.Outcome.CTBTI < s.best.Outcome.CTBTI || s.done {
		s.best, s.from = plan, ""
	}
	return nil
}

// tooShort returns the error for a horizon that is too short. It names the shortest horizon that works, if known, or a
// range.
func (s *search) tooShort() error {
	works := s.best.Slots // known to work
	least := int((s.bound + s.in.Origin()) / s.in.Problem.Slot)
	if s.bound == s.best.Outcome.CTBTI {
		return fmt.Errorf("%w: %d slots are too few; the shortest horizon that works is %d", ErrInfeasible, s.o.Horizon, works)
	}
	if least > s.o.Horizon {
		return fmt.Errorf("%w: %d slots are too few; the shortest horizon that works is between %d and %d",
			ErrInfeasible, s.o.Horizon, least, works)
	}
	return fmt.Errorf("%w: none was found for %d slots within the time limit; %d work", ErrInfeasible, s.o.Horizon, works)
}

// minimizeConnections searches for a plan with the same CT-BTI that sets up the fewest connections.
func (s *search) minimizeConnections(ctx context.Context) error {
	if s.in.Problem.Fixed || s.o.Repairs != sched.AllRepairs {
		return nil
	}
	cutoff := s.best.Outcome.CTBTI + s.in.Origin()
	b := buildModel(s.in, s.o.Repairs, s.best.Slots, cutoff)
	b.countRises(s.best.Outcome.Reconfigurations)
	s.o.reportProgress("%s: the fewest reconfigurations of a schedule of %v; %d so far", s.o.Solver.Name(), s.best.Outcome.CTBTI,
		s.best.Outcome.Reconfigurations)
	limits := s.o.Limits
	if limits.Time > 0 {
		limits.Time = max(time.Second, limits.Time-s.spent)
	}
	a, err := s.o.Solver.Solve(ctx, &b.Model, limits)
	if err != nil {
		return err
	}
	if a.Values == nil {
		return nil
	}
	plan, verdict := b.read(a.Values, s.o)
	if verdict.OK() && plan.Outcome.CTBTI == s.best.Outcome.CTBTI && plan.Outcome.Reconfigurations < s.best.Outcome.Reconfigurations {
		s.best, s.from = plan, ""
	}
	return nil
}

// plan returns the best plan together with its proof.
func (s *search) plan() *sched.Plan {
	p := s.best
	p.Policy = sched.Policy{Name: "milp", Repairs: s.o.Repairs}
	proof := &sched.Proof{Solver: s.o.Solver.Name(), Status: sched.Limited, Bound: min(s.bound, p.Outcome.CTBTI), From: s.from}
	if value := p.Outcome.CTBTI; value > 0 {
		proof.GapPct = 100 * float64(value-proof.Bound) / float64(value)
	}
	switch {
	case p.Outcome.CTBTI == proof.Bound:
		proof.Status = sched.Optimal
	case s.done:
		proof.Status = sched.Within
	}
	p.Proof = proof
	return p
}

// countRises replaces the model's objective, which is the end, by the number of connections set up. most limits this
// number.
func (b *program) countRises(most int) {
	b.Objective = nil
	for k := range b.pairs {
		p := &b.pairs[k]
		for i := range b.slots {
			up := b.add(fmt.Sprintf("up_u%d_u%d_s%d", p.v, p.u, i), 0, float64(p.most), false)
			b.Objective = append(b.Objective, Term{up, 1})
			name := fmt.Sprintf("more_u%d_u%d_s%d", p.v, p.u, i)
			if i == 0 {
				b.row(name, AtLeast, -float64(p.before), Term{up, 1}, Term{p.count[0], -1})
				continue
			}
			b.row(name, AtLeast, 0, Term{up, 1}, Term{p.count[i], -1}, Term{p.count[i-1], 1})
		}
	}
	b.row("most", AtMost, float64(most), b.Objective...)
}

// fixIntegers returns a copy of the model in which the integer variables have the values of a point. The rates remain
// variable.
func (b *program) fixIntegers(values []float64) *Model {
	m := b.Model
	m.Variables = append([]Variable(nil), m.Variables...)
	for k := range m.Variables {
		if v := &m.Variables[k]; v.Integer {
			v.Lower = min(max(math.Round(values[k]), v.Lower), v.Upper)
			v.Upper, v.Integer = v.Lower, false
		}
	}
	return &m
}

// read converts a solver's point to a plan, and returns the checker's verdict on it. The plan claims the figures that
// the checker computed, unless the model follows the printed text.
func (b *program) read(values []float64, o *ExactOptions) (*sched.Plan, *sched.Verdict) {
	p := &sched.Plan{
		Schema: sched.PlanSchema, Policy: sched.Policy{Name: "milp", Repairs: b.repairs}, Problem: b.in.Problem,
		Connections: []sched.Change{},
	}
	for k := range b.jobs {
		p.Jobs = append(p.Jobs, b.assignment(k, values))
		a := &p.Jobs[k]
		p.Slots = max(p.Slots, a.Start+len(a.Rates))
	}
	for k := range b.in.Jobs {
		p.Slots = max(p.Slots, min(b.in.Jobs[k].Arrival+1, b.slots))
	}
	b.outcome(p)
	best := *p
	best.Connections = b.neededConnections(p)
	if verdict := b.claim(&best); verdict.OK() {
		return &best, verdict
	}
	p.Connections = b.changes(values, p.Slots)
	return p, b.claim(p)
}

// assignment returns the assignment of job k that the values describe.
func (b *program) assignment(k int, values []float64) sched.Assignment {
	m, c := &b.in.Jobs[k], &b.jobs[k]
	way := 0
	for n, v := range c.chosen {
		if values[v] > values[c.chosen[way]] {
			way = n
		}
	}
	a := sched.Assignment{Job: m.ID, Rates: []float64{}}
	if unit := c.modes[way].unit; unit != sched.NoSwitch {
		a.INC = b.in.Units[unit].Name
	}
	last := -1
	for i, r := range c.rates[way] {
		rate := 0.0
		if r >= 0 && values[c.sends[i]] > 0.5 {
			rate = math.Round(max(0, values[r]) * giga)
		}
		if rate <= 0 && len(a.Rates) == 0 {
			continue
		}
		if len(a.Rates) == 0 {
			a.Start = i
		}
		a.Rates = append(a.Rates, rate)
		if rate > 0 {
			last = i
		}
	}
	if last >= 0 {
		a.Rates = a.Rates[:last-a.Start+1]
	}
	switch {
	case last >= 0:
		a.Finish = b.in.Finish(m, last-1+b.endOffset(), c.modes[way].unit)
	case c.modes[way].free:
		a.Finish = b.in.Finish(m, b.first(m)-1+b.endOffset(), c.modes[way].unit)
	}
	return a
}

// outcome computes the outcome of a plan according to the model.
func (b *program) outcome(p *sched.Plan) {
	end := olaf.Duration(0)
	for k := range p.Jobs {
		a := &p.Jobs[k]
		end = max(end, a.Finish)
		p.Outcome.TotalJCT += a.Finish - b.in.Problem.Jobs[k].Arrival
	}
	p.Outcome.CTBTI = end - b.in.Origin()
}

// claim checks a plan and stores the checker's number of reconfigurations in it. With all repairs, the plan's other
// figures agree with the checker's.
func (b *program) claim(p *sched.Plan) *sched.Verdict {
	first := sched.CheckPlan(p)
	p.Outcome.Reconfigurations = first.Outcome.Reconfigurations
	return sched.CheckPlan(p)
}

// changes returns the changes of connections that a solver's values describe.
func (b *program) changes(values []float64, slots int) []sched.Change {
	out := []sched.Change{}
	for i := range slots {
		for k := range b.pairs {
			p := &b.pairs[k]
			if p.count == nil {
				continue
			}
			before := p.before
			if i > 0 {
				before = int(math.Round(values[p.count[i-1]]))
			}
			if now := int(math.Round(values[p.count[i]])); now != before {
				out = append(out, b.change(i, p, now))
			}
		}
	}
	return out
}

func (b *program) change(slot int, p *pair, count int) sched.Change {
	return sched.Change{Slot: slot, Between: [2]string{b.in.Units[p.v].Name, b.in.Units[p.u].Name}, Count: count}
}

// neededConnections returns the connections that the rates in a plan need. A connection is kept as long as no other
// pair needs its ports. The solver's own connections are not used, because a solver that minimises only time sets up
// others at random.
func (b *program) neededConnections(p *sched.Plan) []sched.Change {
	out := []sched.Change{}
	if b.in.Problem.Fixed {
		return out
	}
	live := olaf.Map(b.pairs, func(p pair) int { return p.before })
	for i := range p.Slots {
		need, used := b.need(p, i)
		for k := range b.pairs {
			pair := &b.pairs[k]
			now := need[k]
			if idle := live[k] - now; idle > 0 {
				keep := max(0, min(idle, b.in.Units[pair.v].Ports-used[pair.v], b.in.Units[pair.u].Ports-used[pair.u]))
				now += keep
				used[pair.v] += keep
				used[pair.u] += keep
			}
			if now != live[k] {
				out = append(out, b.change(i, pair, now))
			}
			live[k] = now
		}
	}
	return out
}

// need returns the number of connections that the rates in a slot need, by pair, and the number of ports that they use,
// by unit.
func (b *program) need(p *sched.Plan, i int) (need, used []int) {
	flow := map[[2]int]float64{}
	for k := range p.Jobs {
		a, m := &p.Jobs[k], &b.in.Jobs[k]
		n := i - a.Start
		if n < 0 || n >= len(a.Rates) {
			continue
		}
		unit := sched.NoSwitch
		for _, v := range m.Switches {
			if b.in.Units[v].Name == a.INC {
				unit = v
			}
		}
		for _, s := range m.Shares {
			if s.Unit != m.Server {
				flow[[2]int{s.Unit, m.Server}] += float64(a.Rates[n] * float64(m.Streams(s, unit)))
			}
		}
	}
	need, used = make([]int, len(b.pairs)), make([]int, len(b.in.Units))
	for k := range b.pairs {
		pair := &b.pairs[k]
		there, back := flow[[2]int{pair.v, pair.u}], flow[[2]int{pair.u, pair.v}]
		most := max(there, back)
		if b.in.Problem.HalfDuplex || !b.has(sched.Duplex) {
			most = there + back
		}
		need[k] = int(math.Ceil(most/b.in.Port - 1e-6))
		used[pair.v] += need[k]
		used[pair.u] += need[k]
	}
	return need, used
}
