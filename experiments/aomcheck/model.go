package aomcheck

import (
	"fmt"
	"math/rand/v2"
	"sort"

	"github.com/olafctl/olaf"
)

// model is a problem that is being written as an SMT-LIB script. It contains the script and the terms for each
// cluster's updates. Times are in ticks.
type model struct {
	p       *Problem
	s       *Script
	service int64
	// maxWait bounds the time between an update's arrival and the start of its frame's service.
	maxWait int64
	period  int64 // period of repeating waits; 0 if they do not repeat
	streams []stream
}

// stream contains the terms for one cluster. Each slice has one entry per update.
type stream struct {
	c       *Cluster
	arrival []lin
	lo, hi  []int64 // range of each arrival
	jitter  []lin
	phase   lin
	sent    []Bool

	// frame is true if update k starts a frame that will be delivered (engine) or is itself delivered (paper). depart
	// is the time when that frame leaves, and before is the generation time of the cluster's previous delivery.
	frame  []Bool
	depart []lin
	before []lin
	// earlier is true if the cluster had an earlier delivery; a frame without one has no peak.
	earlier []Bool
	lost    []Bool
	peaked  []Bool // frame and earlier; defined only if a query needs it
	newest  lin    // generation time of the last frame
	// merges is set if updates may share a frame; otherwise the sum of peaks telescopes.
	merges bool
}

// build writes the model of p without a query. p must be valid and have its defaults set.
func build(p *Problem) *model {
	tick := p.tick()
	m := &model{p: p, s: newScript(p, tick), service: int64(p.Service / tick)}
	for u := range p.Clusters {
		m.streams = append(m.streams, m.arrivals(u))
	}
	m.separate()
	for u := range m.streams {
		m.declareSends(u)
	}
	if p.Model == Engine {
		m.engine()
	} else {
		m.paper()
	}
	if !p.hasFixedSends() {
		for u := range m.streams {
			m.control(u)
		}
	}
	return m
}

func (m *model) ticks(d olaf.Duration) int64 { return int64(d / m.p.tick()) }

// newScript returns an empty script that prints times in a unit in which the service time is readable.
func newScript(p *Problem, tick olaf.Duration) *Script {
	s := &Script{TickPS: int64(tick), UnitPS: 1, Unit: "ps"}
	units := []struct {
		name  string
		worth olaf.Duration
	}{{"s", olaf.Second}, {"ms", olaf.Millisecond}, {"us", olaf.Microsecond}, {"ns", olaf.Nanosecond}}
	for _, u := range units {
		if p.Service >= u.worth {
			s.Unit, s.UnitPS = u.name, int64(u.worth)
			break
		}
	}
	s.Title = []string{
		"OLAF Age of Model: satisfiable means that some sample path breaks the objective",
		fmt.Sprintf("model %s, service p/C = %v, %d slots, objective: %s, mean over %s",
			p.Model, p.Service, p.Slots, p.Objective, p.Objective.Mean),
		"names: A arrival, W wait before service, D departure, G generation time, DP peak AoM (paper table 4); u cluster, k update",
	}
	for u, c := range p.Clusters {
		sends := fmt.Sprintf("every %v", c.Interval)
		if len(c.Arrivals) > 0 {
			sends = "given arrivals"
		}
		s.Title = append(s.Title, fmt.Sprintf("u=%d is %s: %s, jitter %v, %d updates", u, c.Name, sends, c.Jitter, c.Updates))
	}
	return s
}

func name(what string, u, k int) string { return fmt.Sprintf("%s.%d.%d", what, u, k) }

func eq(equation string, u, k int) string { return fmt.Sprintf("%s u=%d k=%d", equation, u, k) }

// arrivals declares A(u,k) as phase + k·interval + jitter, or as the given arrival time + jitter. Without jitter A
// needs no variable. Equal comparisons of phases are then a single atom for the solver.
func (m *model) arrivals(u int) stream {
	c := &m.p.Clusters[u]
	st := stream{c: c}
	lo, hi := m.ticks(c.PhaseLow), m.ticks(c.PhaseHigh)
	st.phase = makeConstant(lo)
	if lo != hi {
		id := fmt.Sprintf("phase.%d", u)
		st.phase = m.s.Real(id, lo, hi)
		m.s.Report(id)
		if c.EveryPhase {
			m.s.Assert(fmt.Sprintf("every phase below the interval u=%d", u), m.s.Lt(st.phase, makeConstant(hi)))
		}
	}
	for k := range c.Updates {
		a := st.phase.Shift(m.ticks(c.nominalArrival(k)))
		j := makeConstant(0)
		if c.Jitter > 0 {
			id := name("jitter", u, k)
			j = m.s.Real(id, 0, m.ticks(c.Jitter))
			m.s.Report(id)
		}
		st.jitter = append(st.jitter, j)
		st.arrival = append(st.arrival, a.Plus(j))
		lo, hi := m.s.Range(st.arrival[k])
		st.lo, st.hi = append(st.lo, lo), append(st.hi, hi)
		if k > 0 {
			m.s.Assert(eq("updates of a cluster arrive in order", u, k), m.s.Lt(st.arrival[k-1], st.arrival[k]))
		}
	}
	return st
}

// separate asserts the minimum distance between arrivals of different clusters.
func (m *model) separate() {
	gap := m.ticks(m.p.Separation)
	if gap == 0 {
		return
	}
	m.pairs(gap, func(u, k, v, n int) {
		a, b := m.streams[u].arrival[k], m.streams[v].arrival[n]
		m.s.Assert(fmt.Sprintf("assumed separation u=%d k=%d v=%d n=%d", u, k, v, n),
			or(m.s.Le(a.Shift(gap), b), m.s.Le(b.Shift(gap), a)))
	})
}

// pairs calls visit once for every pair of updates from different clusters that may arrive within reach ticks of each
// other.
func (m *model) pairs(reach int64, visit func(u, k, v, n int)) {
	for u := range m.streams {
		for v := u + 1; v < len(m.streams); v++ {
			for k := range m.streams[u].arrival {
				from, to := m.near(v, u, k, reach, reach)
				for n := from; n < to; n++ {
					visit(u, k, v, n)
				}
			}
		}
	}
}

// near returns the range of v's updates that may arrive between back before and ahead after update k of u. It keeps the
// number of visited pairs linear in the horizon.
func (m *model) near(v, u, k int, back, ahead int64) (from, to int) {
	st, lo, hi := &m.streams[v], m.streams[u].lo[k], m.streams[u].hi[k]
	n := len(st.arrival)
	from = sort.Search(n, func(i int) bool { return st.hi[i]+back >= lo })
	to = sort.Search(n, func(i int) bool { return st.lo[i] > hi+ahead })
	return from, max(from, to)
}

// arrivedBefore returns a term that is true if update n of v precedes update k of u: it arrived earlier, or it arrived
// at the same instant and v has the lower number.
func (m *model) arrivedBefore(v, n, u, k int) Bool {
	a, b := m.streams[v].arrival[n], m.streams[u].arrival[k]
	if v < u {
		return m.s.Le(a, b)
	}
	return m.s.Lt(a, b)
}

// declareSends makes cluster u's send decisions constants if they are given or if the control never withholds an
// update. Otherwise it declares a variable for each. A cluster's first update precedes every ACK and is always sent.
func (m *model) declareSends(u int) {
	st := &m.streams[u]
	for k := range st.arrival {
		switch {
		case m.p.Control.Sends == SendsGiven:
			st.sent = append(st.sent, Const(st.c.Sends[k]))
		case !m.p.Throttles() || k == 0:
			st.sent = append(st.sent, True)
		default:
			id := name("sent", u, k)
			st.sent = append(st.sent, m.s.Bool(id))
			m.s.Report(id)
		}
	}
}

// control relates the send decisions of cluster u to the age Δ̂ of its last ACK (paper §5). An update is sent unless an
// ACK is younger than the age at which Ps reaches the draw. With free decisions it is sent if Ps = 1, and otherwise
// undetermined.
func (m *model) control(u int) {
	st := &m.streams[u]
	delay := m.ticks(m.p.Control.AckDelay)
	draws := m.p.Draws(u)
	for k := 1; k < len(st.arrival); k++ {
		draw := certain
		if draws != nil {
			draw = draws[k]
		}
		age := m.ticks(m.p.Control.sendsAfter(m.p.Slots, draw))
		var young []Bool
		for j := range k {
			ack := st.depart[j].Shift(delay)
			young = append(young, and(st.frame[j], m.s.Le(ack, st.arrival[k]), m.s.Lt(st.arrival[k].Shift(-age), ack)))
		}
		if age == 0 {
			young = nil
		}
		if draws == nil {
			m.s.Assert(eq("5 Ps reaches 1", u, k), or(append(young, st.sent[k])...))
		} else {
			m.s.Assert(eq("5 Ps reaches the draw", u, k), iff(st.sent[k], not(or(young...))))
		}
	}
}

// Draws returns the seeded random numbers, in thousandths, for cluster u's send decisions. It returns nil unless
// decisions are seeded.
func (p *Problem) Draws(u int) []int {
	if p.Control.Sends != SendsSeeded {
		return nil
	}
	rng := rand.New(rand.NewPCG(p.Control.Seed, uint64(u)))
	draws := make([]int, p.Clusters[u].Updates)
	for k := range draws {
		draws[k] = rng.IntN(drawSteps)
	}
	return draws
}

// carry defines a recursion along one cluster's updates. The value after update k is now if cond is true, and otherwise
// the previous value, was. Both are expressed relative to A(u,k), which keeps their ranges tight.
func (m *model) carry(equation, what string, u, k int, cond Bool, now, was lin) lin {
	a := m.streams[u].arrival[k]
	return a.Plus(m.s.Ite(eq(equation, u, k), name(what, u, k), cond, now.Minus(a), was.Minus(a)))
}

// let introduces a named variable for a term about update k of cluster u.
func (m *model) let(equation, what string, u, k int, t Bool) Bool {
	return m.s.Let(eq(equation, u, k), name(what, u, k), t)
}
