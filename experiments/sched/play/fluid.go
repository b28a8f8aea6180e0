package play

import (
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
)

// span is a period of time in which a worker may send at a constant rate.
type span struct {
	from, to int64 // ps
	rate     float64
}

func (s *span) bits() float64 { return float64(float64(s.to-s.from) / float64(olaf.Second) * s.rate) }

// listSpans returns when and at which rate the workers of a share send. Rates are constant within a slot, except that a
// rate rises only after the connection for it has been set up.
func listSpans(in *sched.Instance, optics *optics, m *sched.Member, a *sched.Assignment, share sched.Share,
	offloaded bool) []span {
	slot, epsilon := int64(in.Problem.Slot), int64(in.Problem.Reconfiguration)
	var out []span
	last := 0.0
	for k, rate := range a.Rates {
		i := a.Start + k
		from := int64(i) * slot
		crosses := share.Unit != m.Server && !offloaded
		if crosses && rate > last && optics.hasGrown(share.Unit, m.Server, i) {
			out = append(out, span{from, from + epsilon, last}, span{from + epsilon, from + slot, rate})
		} else {
			out = append(out, span{from, from + slot, rate})
		}
		last = rate
	}
	return out
}

// pacer computes the times at which a worker has sent increasing numbers of bits.
type pacer struct {
	spans []span
	at    int
	done  float64 // bits sent in the spans before at
}

// hair is the tolerance for sums of rates. It is smaller than the tolerances of the planners and the checker.
const hair = 1e-7

// timeOfBits returns the time at which the given number of bits has been sent, or −1 if that never happens. Each call
// must use a larger number than the previous one.
func (p *pacer) timeOfBits(bits float64) int64 {
	for ; p.at < len(p.spans); p.at++ {
		s := &p.spans[p.at]
		if more := s.bits(); p.done+more < bits*(1-hair) {
			p.done += more
			continue
		}
		return min(s.to, s.from+int64(math.Round((bits-p.done)/s.rate*float64(olaf.Second))))
	}
	return -1
}

// optics contains the number of connections between each pair of units, slot by slot.
type optics struct {
	in    *sched.Instance
	count map[[2]int][]int // by pair, the smaller unit first, from slot −1 on
}

func newOptics(in *sched.Instance, plan *sched.Plan) *optics {
	o := &optics{in: in, count: map[[2]int][]int{}}
	for pair, n := range in.Initial {
		if pair[0] < pair[1] {
			o.count[pair] = slices.Repeat([]int{n}, plan.Slots+1)
		}
	}
	for _, c := range plan.Connections {
		pair := orderedPair(in.Unit(c.Between[0]), in.Unit(c.Between[1]))
		counts := o.countsOf(pair, plan.Slots)
		for i := c.Slot + 1; i < len(counts); i++ {
			counts[i] = c.Count
		}
	}
	return o
}

func orderedPair(v, u int) [2]int { return [2]int{min(v, u), max(v, u)} }

func (o *optics) countsOf(pair [2]int, slots int) []int {
	if o.count[pair] == nil {
		o.count[pair] = make([]int, slots+1)
	}
	return o.count[pair]
}

// hasGrown reports whether the number of connections between two units increased in a slot.
func (o *optics) hasGrown(v, u, slot int) bool {
	counts := o.count[orderedPair(v, u)]
	return slot+1 < len(counts) && counts[slot+1] > counts[slot]
}

// rateSteps returns the rate over time in one direction between two units. A new connection carries nothing until the
// reconfiguration is over.
func (o *optics) rateSteps(v, u int) []step {
	slot, epsilon := int64(o.in.Problem.Slot), int64(o.in.Problem.Reconfiguration)
	counts := o.count[orderedPair(v, u)]
	var steps []step
	add := func(at int64, n int) {
		if rate := float64(n) * o.in.Port; len(steps) == 0 || steps[len(steps)-1].rate != rate {
			steps = append(steps, step{at, rate})
		}
	}
	for i := 1; i < len(counts); i++ {
		begins := int64(i-1) * slot
		if counts[i] > counts[i-1] {
			add(begins, counts[i-1])
			add(begins+epsilon, counts[i])
			continue
		}
		add(begins, counts[i])
	}
	return steps
}
