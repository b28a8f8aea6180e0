// Package policy contains the schedulers. Two of them decide slot by slot (paper §V, §VII-A). TW first serves the ports
// that will be busy longest, and FCFS serves jobs in order of arrival. Without a repair, they follow the printed text;
// the resulting plan contains the text's mistakes, and sched.CheckPlan reports them. Cells compares the policies with
// and without switches that aggregate (the four scenarios in §VII-A) for several numbers of jobs and seeds.
//
// PlanExactly finds the schedule with the smallest CT-BTI, or a bound on it. It builds the repaired model from the
// paper's §IV-B as a mixed integer linear program, writes it as an LP file and runs an installed solver. The model
// differs from the printed one by the repairs in package sched, by start variables instead of a variable for every
// interval of slots, and by rows for unit traffic and busy slots. These rows follow from the others and tighten the
// relaxation.
package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
)

// ErrHorizon reports that a policy did not finish all jobs, because the horizon is too short or a job can never be
// served.
var ErrHorizon = olaf.NewError(olaf.Missed, "not all jobs are done")

// Name is the name of a policy.
type Name string

// The policies.
const (
	TW   Name = "tw"
	FCFS Name = "fcfs"
)

// Options contains the settings of a policy.
type Options struct {
	Repairs sched.Repairs
	// Horizon is the number of slots; 0 means as many as needed.
	Horizon int
}

// Plan schedules the jobs in a problem that satisfies sched.Problem.Check. If jobs are unfinished, it returns the plan
// with an error that matches ErrHorizon.
func Plan(ctx context.Context, p *sched.Problem, name Name, o Options) (*sched.Plan, error) {
	allocate := map[Name]func(*state){TW: (*state).timeWindows, FCFS: (*state).firstCome}[name]
	if allocate == nil {
		return nil, fmt.Errorf("%w: there is no policy %q; there are tw and fcfs", sched.ErrProblem, name)
	}
	s := newState(p, o.Repairs)
	if err := s.run(ctx, allocate, o.Horizon); err != nil {
		return nil, err
	}
	plan := s.plan(name)
	if left := plan.Outcome.Unfinished; len(left) > 0 {
		return plan, fmt.Errorf("%w: %s after %d slots", ErrHorizon, someOf(left), plan.Slots)
	}
	return plan, nil
}

// someOf returns a text with a few of the ids.
func someOf(ids []string) string {
	if len(ids) <= 3 {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:3], ", "), len(ids)-3)
}

// task is a job in progress.
type task struct {
	*sched.Member
	index int
	inc   int // unit whose switch aggregates, or NoSwitch
	// left contains the bits that each worker of a share still has to send, according to the planner.
	left   []float64
	rate   float64 // each worker's rate in this slot
	last   float64 // each worker's rate in the previous slot
	start  int     // slot of its first rate, -1 before
	rates  []float64
	done   bool
	finish olaf.Duration
}

// remaining returns the number of bits that the slowest worker of the task still has to send.
func (t *task) remaining() float64 {
	if len(t.left) == 1 {
		return t.left[0]
	}
	return slices.Max(t.left)
}

// late returns the time in s that the update takes after the task's transfer.
func (t *task) late() float64 {
	if t.IsOffloaded(t.inc) {
		return 0
	}
	return t.Update
}

// state is a schedule that is being computed.
type state struct {
	in      *sched.Instance
	repairs sched.Repairs
	tasks   []task
	active  []*task // arrived and unfinished, in order of arrival
	slot    int
	network network
	changes []sched.Change
	// placeholders of TW's windows, reused in every slot
	ports []virtualPort
	heap  iterations
	// incUsed and memoryUsed are the switches' used places and memory.
	incUsed    []int
	memoryUsed []olaf.Size
	rises      int
	moved      bool // a job sent in this slot
}

func newState(p *sched.Problem, r sched.Repairs) *state {
	in := p.Instance(p.PartialINC || !r.Has(sched.WholeJobs))
	s := &state{in: in, repairs: r, tasks: make([]task, len(in.Jobs)), changes: []sched.Change{},
		incUsed: make([]int, len(in.Units)), memoryUsed: make([]olaf.Size, len(in.Units))}
	s.network.init(in, r)
	for i := range in.Jobs {
		m := &in.Jobs[i]
		s.tasks[i] = task{Member: m, index: i, inc: sched.NoSwitch, start: -1, rates: []float64{},
			left: slices.Repeat([]float64{m.Volume}, len(m.Shares))}
	}
	return s
}

// run runs Algorithm 1. In every slot it adds the jobs that have arrived, allocates bandwidth, and sends. It skips
// slots in which no job waits. It ends when all jobs are done, at the horizon, or when nothing is sent and no job will
// arrive.
func (s *state) run(ctx context.Context, allocate func(*state), horizon int) error {
	waiting := make([]*task, len(s.tasks))
	for i := range s.tasks {
		waiting[i] = &s.tasks[i]
	}
	slices.SortStableFunc(waiting, func(a, b *task) int { return a.Arrival - b.Arrival })
	longest := s.in.Problem.Longest()
	if horizon > 0 {
		longest = min(longest, horizon)
	}
	for len(waiting)+len(s.active) > 0 {
		if len(s.active) == 0 {
			s.slot = max(s.slot, waiting[0].Arrival)
		}
		if s.slot >= longest {
			s.slot = longest
			return nil
		}
		for len(waiting) > 0 && waiting[0].Arrival <= s.slot {
			s.active = append(s.active, waiting[0])
			waiting = waiting[1:]
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		s.clear()
		allocate(s)
		s.flow()
		s.slot++
		if !s.moved && len(waiting) == 0 {
			return nil
		}
	}
	return nil
}

// clear frees all bandwidth. Aggregators stay allocated.
func (s *state) clear() {
	s.network.clear()
	for _, t := range s.active {
		t.last, t.rate = t.rate, 0
	}
}

// flow sets up the connections that the rates need, and sends for one slot.
func (s *state) flow() {
	s.settle()
	s.moved = false
	rest := s.active[:0]
	for _, t := range s.active {
		if s.send(t); t.done {
			s.release(t)
			continue
		}
		rest = append(rest, t)
	}
	s.active = rest
}

// settle sets up the connections for the slot and records the changes.
func (s *state) settle() {
	names := s.in.Units
	s.network.settle(func(v, u, was, is int) {
		s.changes = append(s.changes, sched.Change{Slot: s.slot, Between: [2]string{names[v].Name, names[u].Name}, Count: is})
		s.rises += max(0, is-was)
	})
	if !s.repairs.Has(sched.Rise) {
		s.rises += s.network.unchanged
	}
}

// send subtracts the bits that a task's workers send in one slot at their rate.
func (s *state) send(t *task) {
	if t.rate > 0 {
		s.moved = true
		if t.start < 0 {
			t.start = s.slot
		}
		for len(t.rates) < s.slot-t.start {
			t.rates = append(t.rates, 0)
		}
		t.rates = append(t.rates, t.rate)
	}
	most := 0.0
	for k, share := range t.Shares {
		sent := float64(t.rate * s.in.Slot)
		if t.rate > t.last && share.Unit != t.Server && !t.IsOffloaded(t.inc) && s.network.rose(share.Unit, t.Server) {
			sent -= float64((t.rate - t.last) * s.in.Epsilon)
		}
		t.left[k] = max(0, t.left[k]-sent)
		most = max(most, t.left[k])
	}
	if s.free(t) {
		most, s.moved = 0, true
	}
	// Less than a billionth of the volume is rounding.
	if most > 1e-9*t.Volume {
		return
	}
	last := s.slot
	if !s.repairs.Has(sched.SlotEnd) {
		last--
	}
	t.done, t.finish = true, s.in.Finish(t.Member, last, t.inc)
}

// free reports whether a task has nothing to send according to the printed Eqs. (4) and (8). This is so if the task is
// aggregated in the unit with all its workers while its server is in another unit.
func (s *state) free(t *task) bool {
	return !s.repairs.Has(sched.Volume) && t.IsOffloaded(t.inc) && t.Server != t.inc
}

// release frees the place that a finished task occupied in a switch.
func (s *state) release(t *task) {
	if t.inc != sched.NoSwitch {
		s.incUsed[t.inc]--
		s.memoryUsed[t.inc] -= t.Segment
	}
}

// room reports whether the switch of a unit has room for a task.
func (s *state) room(t *task, unit int) bool {
	u := &s.in.Units[unit]
	return s.incUsed[unit] < u.INC && (u.Memory == 0 || s.memoryUsed[unit]+t.Segment <= u.Memory)
}

// aggregate assigns a place in a unit's switch to a task.
func (s *state) aggregate(t *task, unit int) {
	t.inc = unit
	s.incUsed[unit]++
	s.memoryUsed[unit] += t.Segment
}

// isUndecided reports whether the aggregator of a task can still be chosen.
func (s *state) isUndecided(t *task) bool {
	return t.inc == sched.NoSwitch && len(t.Switches) > 0 && (t.start < 0 || !s.repairs.Has(sched.KeepINC))
}

// raise increases the rate of a task's workers by at most one step. It reports whether the rate increased.
func (s *state) raise(t *task) bool {
	want := s.in.Step
	if s.repairs.Has(sched.Enough) {
		want = min(want, s.enough(t)-t.rate)
		if want <= 1 { // bit/s
			return false
		}
	}
	more := s.network.headroom(t, want, s.repairs.Has(sched.PartSteps))
	if more <= 1 {
		return false
	}
	s.network.take(t, more)
	t.rate += more
	return true
}

// enough returns the rate at which a task finishes within this slot. If the task may have to wait for connections, the
// rate is increased to compensate.
func (s *state) enough(t *task) float64 {
	if t.IsWhole() && (t.Shares[0].Unit == t.Server || t.IsOffloaded(t.inc)) || s.in.Slot <= s.in.Epsilon {
		return t.remaining() / s.in.Slot
	}
	// The part of the rate up to last applies to the whole slot, the rest to the slot minus the reconfiguration.
	steady := min(t.last, t.remaining()/s.in.Slot)
	return steady + (t.remaining()-float64(steady*s.in.Slot))/(s.in.Slot-s.in.Epsilon)
}

// firstCome implements FCFS. In order of arrival, each job gets a place in a switch if one is free, and all bandwidth
// that is available.
func (s *state) firstCome() {
	for _, t := range s.active {
		if s.isUndecided(t) {
			for _, unit := range t.Switches {
				if s.room(t, unit) {
					s.aggregate(t, unit)
					break
				}
			}
		}
		for s.raise(t) {
		}
	}
}

// plan returns the decisions so far as a plan.
func (s *state) plan(name Name) *sched.Plan {
	p := &sched.Plan{
		Schema: sched.PlanSchema, Policy: sched.Policy{Name: string(name), Repairs: s.repairs}, Problem: s.in.Problem, Slots: s.slot,
		Connections: s.changes, Outcome: sched.Outcome{Reconfigurations: s.rises},
	}
	end := olaf.Duration(0)
	for i := range s.tasks {
		t := &s.tasks[i]
		a := sched.Assignment{Job: t.ID, Start: max(t.start, 0), Rates: t.rates, Finish: t.finish}
		if t.inc != sched.NoSwitch {
			a.INC = s.in.Units[t.inc].Name
		}
		p.Jobs = append(p.Jobs, a)
		if !t.done {
			p.Outcome.Unfinished = append(p.Outcome.Unfinished, t.ID)
			continue
		}
		end = max(end, t.finish)
		p.Outcome.TotalJCT += t.finish - s.in.Problem.Jobs[i].Arrival
	}
	if end > 0 {
		p.Outcome.CTBTI = end - s.in.Origin()
	}
	return p
}
