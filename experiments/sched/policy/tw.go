package policy

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/olafctl/olaf/experiments/sched"
)

// timeWindows implements Algorithm 2. It assigns places in switches to the jobs with the most traffic between units.
// Then it assigns bandwidth port by port, beginning with the port that will be busy longest, and at each port first to
// the job that will be done last.
func (s *state) timeWindows() {
	s.assign()
	for _, p := range s.windows() {
		s.serve(p.members)
	}
}

// assign implements lines 1–14 of Algorithm 2. Each round gives at most one job to every unit. The number of rounds is
// at most the largest number of free places in any switch.
func (s *state) assign() {
	rounds := 0
	for v := range s.in.Units {
		rounds = max(rounds, s.in.Units[v].INC-s.incUsed[v])
	}
	for range rounds {
		candidates := s.candidates()
		if len(candidates) == 0 {
			return
		}
		matched := false
		for k, unit := range match(len(s.in.Units), candidates) {
			if t := candidates[k].task; unit != sched.NoSwitch && s.room(t, unit) {
				s.aggregate(t, unit)
				matched = true
			}
		}
		if !matched {
			return
		}
	}
}

// candidate is a job that may still get a place in a switch, with the traffic that each switch would save.
type candidate struct {
	*task
	units   []int
	weights []float64
}

// candidates returns the jobs that may get a place now. The weight for a unit is the traffic between units that would
// be saved there. If none is saved, it is a tiny part of the job's volume, so that places are used even if they are not
// needed.
func (s *state) candidates() []candidate {
	var out []candidate
	for _, t := range s.active {
		if !s.isUndecided(t) {
			continue
		}
		c := candidate{task: t}
		for _, unit := range t.Switches {
			if s.room(t, unit) {
				c.units = append(c.units, unit)
				c.weights = append(c.weights, s.savedTraffic(t, unit))
			}
		}
		if len(c.units) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// savedTraffic returns the number of bits between units that are saved if a task is aggregated in a unit.
func (s *state) savedTraffic(t *task, unit int) float64 {
	bits := 1e-6 * t.remaining() * float64(t.Workers)
	for _, share := range t.Shares {
		if share.Unit == unit && unit != t.Server {
			bits += float64(t.remaining() * float64(share.Workers-t.Streams(share, unit)))
		}
	}
	return bits
}

// virtualPort is the server side or the optical side of a unit, with the tasks that send through it.
type virtualPort struct {
	members []*task
	volumes []float64 // bits through the port, by member
	end     float64   // end of the ideal window, s from now
	cap     float64   // bit/s
	index   int
}

func (p *virtualPort) add(t *task, volume float64) {
	if volume <= 0 {
		return
	}
	if k := len(p.members) - 1; k >= 0 && p.members[k] == t {
		p.volumes[k] += float64(volume)
		return
	}
	p.members = append(p.members, t)
	p.volumes = append(p.volumes, volume)
}

// windows implements line 16 of Algorithm 2. It returns the ports that have traffic, sorted by the end of their
// windows. The latest end comes first.
func (s *state) windows() []virtualPort {
	n := len(s.in.Units)
	if s.ports == nil {
		s.ports = make([]virtualPort, 2*n)
	}
	for v := range s.in.Units {
		for side := range 2 {
			p := &s.ports[2*v+side]
			*p = virtualPort{members: p.members[:0], volumes: p.volumes[:0], index: 2*v + side}
		}
		s.ports[2*v].cap = float64(s.in.Units[v].SwitchRate) / 2
		s.ports[2*v+1].cap = float64(s.in.Units[v].Ports) * s.in.Port
	}
	for _, t := range s.active {
		if !t.isServed(s.repairs) {
			continue
		}
		s.demand(t)
	}
	busy := make([]virtualPort, 0, 2*n)
	for i := range s.ports {
		if p := &s.ports[i]; len(p.members) > 0 {
			p.end = p.window(s.in.Slot/1000, s.repairs)
			busy = append(busy, *p)
		}
	}
	slices.SortFunc(busy, func(a, b virtualPort) int { return cmp.Or(cmp.Compare(b.end, a.end), a.index-b.index) })
	return busy
}

// isServed reports whether a task is still in the set J after line 8 of the algorithm.
func (t *task) isServed(r sched.Repairs) bool {
	return r.Has(sched.ServeINC) || t.inc == sched.NoSwitch
}

// demand adds the volume of a task to the ports on its path (Eq. (8)). The server side of a unit without a switch_rate
// is as fast as all interfaces below it together.
func (s *state) demand(t *task) {
	for k, share := range t.Shares {
		side, left := &s.ports[2*share.Unit], t.left[k]
		streams := float64(t.Streams(share, t.inc)) * left
		own := float64(share.Workers) * left
		crosses := share.Unit != t.Server && streams > 0
		if !crosses && !s.repairs.Has(sched.LocalShare) && !t.IsWhole() {
			own = 0
		}
		side.add(t, own)
		if s.in.Units[share.Unit].SwitchRate == 0 {
			side.cap += float64(float64(share.Workers) * s.in.Server)
		}
		if crosses {
			s.ports[2*share.Unit+1].add(t, streams)
			s.ports[2*t.Server+1].add(t, streams)
			s.ports[2*t.Server].add(t, streams)
		}
	}
	if s.in.Units[t.Server].SwitchRate == 0 && !t.IsOffloaded(t.inc) {
		s.ports[2*t.Server].cap += s.in.Server
	}
}

// window implements Algorithm 3. It returns the time after which the port can have moved all data, including updates.
// It bisects until the interval is threshold seconds wide.
func (p *virtualPort) window(threshold float64, r sched.Repairs) float64 {
	total, late := 0.0, 0.0
	for k, t := range p.members {
		total += p.volumes[k]
		late = max(late, t.late())
	}
	if p.cap <= 0 {
		return math.Inf(1)
	}
	low := total / p.cap
	high := low + late
	for high-low >= threshold {
		middle := (low + high) / 2
		tested := middle
		if !r.Has(sched.Midpoint) {
			tested = low
		}
		if p.enough(tested, r) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// enough reports whether the port's rate is sufficient for all its tasks to finish, including updates, within the given
// number of seconds.
func (p *virtualPort) enough(after float64, r sched.Repairs) bool {
	rate := 0.0
	for k, t := range p.members {
		room := after - t.late()
		if room <= 0 && r.Has(sched.LateUpdate) {
			return false
		}
		rate += p.volumes[k] / room
	}
	return rate <= p.cap
}

// iterations is a heap of tasks, ordered by the time at which they would be done with one more step of bandwidth. The
// latest comes first.
type iterations struct {
	tasks []*task
	ends  []float64
}

func (h *iterations) Len() int { return len(h.tasks) }
func (h *iterations) Less(i, j int) bool {
	if h.ends[i] != h.ends[j] {
		return h.ends[i] > h.ends[j]
	}
	return h.tasks[i].index < h.tasks[j].index
}
func (h *iterations) Swap(i, j int) {
	h.tasks[i], h.tasks[j] = h.tasks[j], h.tasks[i]
	h.ends[i], h.ends[j] = h.ends[j], h.ends[i]
}

// Push does nothing. The heap needs neither Push nor Pop, because it only shrinks from its top.
func (h *iterations) Push(any) {}
func (h *iterations) Pop() any {
	last := len(h.tasks) - 1
	h.tasks, h.ends = h.tasks[:last], h.ends[:last]
	return nil
}

// serve implements lines 18–31 of Algorithm 2. As long as any task can get another step of bandwidth, the task that
// would still be done last gets it. Available bandwidth only shrinks, so a step that does not fit now will never fit.
// It is therefore enough to try the last task.
func (s *state) serve(members []*task) {
	h := &s.heap
	h.tasks, h.ends = h.tasks[:0], h.ends[:0]
	for _, t := range members {
		h.tasks = append(h.tasks, t)
		h.ends = append(h.ends, s.completion(t))
	}
	heap.Init(h)
	for h.Len() > 0 {
		if s.raise(h.tasks[0]) {
			h.ends[0] = s.completion(h.tasks[0])
			heap.Fix(h, 0)
			continue
		}
		heap.Pop(h)
	}
}

// completion returns the time, in s from now, at which a task would be done with one more step of bandwidth.
func (s *state) completion(t *task) float64 { return t.remaining()/(t.rate+s.in.Step) + t.late() }
