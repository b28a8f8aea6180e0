// Package policy holds the schedulers that decide slot by slot (paper §V, §VII-A): TW, which gives ports that will be busy
// longest their bandwidth first, and FCFS, which serves jobs in the order of their arrival. Both plan with the printed
// text where a repair is left out; such a plan is what the text believes, and package check says what is wrong with it.
package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
)

// ErrHorizon says that a policy did not finish all jobs: the horizon is too short, or some job can never be served.
var ErrHorizon = olaf.NewError(olaf.Missed, "not all jobs are done")

// Name is a policy.
type Name string

// The policies.
const (
	TW   Name = "tw"
	FCFS Name = "fcfs"
)

// Options are how a plan is made.
type Options struct {
	Repairs sched.Repairs
	// Horizon is how many slots there are; 0 for as many as it takes.
	Horizon int
}

// Plan schedules the jobs of a problem that sched.Problem.Check accepts. A plan that leaves jobs unfinished comes back
// together with an error that matches ErrHorizon.
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
		return plan, fmt.Errorf("%w: %s after %d slots", ErrHorizon, some(left), plan.Slots)
	}
	return plan, nil
}

// some names a few of many.
func some(ids []string) string {
	if len(ids) <= 3 {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:3], ", "), len(ids)-3)
}

// task is a job on its way.
type task struct {
	*sched.Member
	index int
	inc   int // unit whose switch aggregates, or NoSwitch
	// left is the bits that each worker of a share still has to send, as the planner sees it.
	left   []float64
	rate   float64 // of each worker in this slot
	last   float64 // in the slot before
	start  int     // slot of its first rate, -1 before
	rates  []float64
	done   bool
	finish olaf.Duration
}

// remaining is what its slowest worker has left.
func (t *task) remaining() float64 {
	if len(t.left) == 1 {
		return t.left[0]
	}
	return slices.Max(t.left)
}

// late is the update that follows its transfer, s.
func (t *task) late() float64 {
	if t.Offloaded(t.inc) {
		return 0
	}
	return t.Update
}

// state is a schedule in the making.
type state struct {
	in      *sched.Instance
	repairs sched.Repairs
	tasks   []task
	active  []*task // arrived and not done, in the order of arrival
	slot    int
	network network
	changes []sched.Change
	// placeholders of TW's windows, kept from slot to slot
	ports []virtualPort
	heap  iterations
	// incUsed and memoryUsed are what the switches hold.
	incUsed    []int
	memoryUsed []olaf.Size
	rises      int
	moved      bool // something was sent in this slot
}

func newState(p *sched.Problem, r sched.Repairs) *state {
	in := p.Instance(p.PartialINC || !r.Has(sched.WholeJobs))
	s := &state{in: in, repairs: r, tasks: make([]task, len(in.Jobs)), incUsed: make([]int, len(in.Units)), memoryUsed: make([]olaf.Size, len(in.Units))}
	s.network.init(in, r)
	for i := range in.Jobs {
		m := &in.Jobs[i]
		t := &s.tasks[i]
		*t = task{Member: m, index: i, inc: sched.NoSwitch, start: -1, left: make([]float64, len(m.Shares))}
		for k := range t.left {
			t.left[k] = m.Volume
		}
	}
	return s
}

// run is Algorithm 1: slot by slot, take in what arrived, allocate, and let flow. Slots in which nobody waits are passed
// over. It ends when all is done, at the horizon, or when nothing moves and nothing else will arrive.
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

// clear takes back all bandwidth; who aggregates stays.
func (s *state) clear() {
	s.network.clear()
	for _, t := range s.active {
		t.last, t.rate = t.rate, 0
	}
}

// flow sets the connections that the rates need and sends for a slot.
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

// settle fixes the slot's connections and notes what changed.
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

// send lets a task's rate flow for a slot.
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
		if t.rate > t.last && share.Unit != t.Server && !t.Offloaded(t.inc) && s.network.rose(share.Unit, t.Server) {
			sent -= float64((t.rate - t.last) * s.in.Epsilon)
		}
		t.left[k] = max(0, t.left[k]-sent)
		most = max(most, t.left[k])
	}
	if s.free(t) {
		most, s.moved = 0, true
	}
	// A billionth of the volume is what rounding leaves.
	if most > 1e-9*t.Volume {
		return
	}
	last := s.slot
	if !s.repairs.Has(sched.SlotEnd) {
		last--
	}
	t.done, t.finish = true, s.in.Finish(t.Member, last, t.inc)
}

// free says whether the printed Eqs. (4) and (8) leave a task nothing to send: it is aggregated in the unit of all its
// workers while its server is elsewhere.
func (s *state) free(t *task) bool {
	return !s.repairs.Has(sched.Volume) && t.Offloaded(t.inc) && t.Server != t.inc
}

// release gives back a finished task's place in a switch.
func (s *state) release(t *task) {
	if t.inc != sched.NoSwitch {
		s.incUsed[t.inc]--
		s.memoryUsed[t.inc] -= t.Segment
	}
}

// room says whether a unit's switch can take a task.
func (s *state) room(t *task, unit int) bool {
	u := &s.in.Units[unit]
	return s.incUsed[unit] < u.INC && (u.Memory == 0 || s.memoryUsed[unit]+t.Segment <= u.Memory)
}

// aggregate gives a task a place in a unit's switch.
func (s *state) aggregate(t *task, unit int) {
	t.inc = unit
	s.incUsed[unit]++
	s.memoryUsed[unit] += t.Segment
}

// undecided says whether a task's aggregator can still be chosen.
func (s *state) undecided(t *task) bool {
	return t.inc == sched.NoSwitch && len(t.Switches) > 0 && (t.start < 0 || !s.repairs.Has(sched.KeepINC))
}

// raise gives each worker of a task up to a step more and says whether it got anything.
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

// enough is the rate at which a task is done within this slot. Where it may have to wait for connections it is the rate
// that makes up for that.
func (s *state) enough(t *task) float64 {
	if t.Whole() && (t.Shares[0].Unit == t.Server || t.Offloaded(t.inc)) || s.in.Slot <= s.in.Epsilon {
		return t.remaining() / s.in.Slot
	}
	// Of the rate, last flows for the whole slot, and the rest for a slot less the reconfiguration.
	steady := min(t.last, t.remaining()/s.in.Slot)
	return steady + (t.remaining()-float64(steady*s.in.Slot))/(s.in.Slot-s.in.Epsilon)
}

// firstCome is FCFS: in the order of arrival, a switch where one is free and all the bandwidth there is.
func (s *state) firstCome() {
	for _, t := range s.active {
		if s.undecided(t) {
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

// plan writes down what was decided.
func (s *state) plan(name Name) *sched.Plan {
	p := &sched.Plan{
		Schema: sched.PlanSchema, Policy: sched.Policy{Name: string(name), Repairs: s.repairs}, Problem: s.in.Problem, Slots: s.slot,
		Connections: s.changes, Outcome: sched.Outcome{Reconfigurations: s.rises},
	}
	if p.Connections == nil {
		p.Connections = []sched.Change{}
	}
	end := olaf.Duration(0)
	for i := range s.tasks {
		t := &s.tasks[i]
		a := sched.Assignment{Job: t.ID, Start: max(t.start, 0), Rates: t.rates, Finish: t.finish}
		if a.Rates == nil {
			a.Rates = []float64{}
		}
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
