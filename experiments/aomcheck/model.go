package aomcheck

import (
	"fmt"
	"math/rand/v2"
	"sort"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/aomcheck/smt"
)

// model is a problem on its way to SMT-LIB: the script, and per cluster what the equations made of its updates.
// Times are ticks.
type model struct {
	p       *Problem
	s       *smt.Script
	service int64
	// maxWait bounds the time between an update's arrival and the start of its frame's service.
	maxWait int64
	period  int64 // with which waits repeat, 0 when they do not
	streams []stream
}

// stream is one cluster. All slices have one entry per update.
type stream struct {
	c       *Cluster
	arrival []smt.Lin
	lo, hi  []int64 // range of each arrival
	jitter  []smt.Lin
	phase   smt.Lin
	sent    []smt.Bool

	// frame says that update k starts a frame that will be delivered (engine), or is delivered itself (paper), depart
	// when that frame leaves, and before the generation time of what the cluster delivered before it.
	frame  []smt.Bool
	depart []smt.Lin
	before []smt.Lin
	// earlier says that the cluster delivered something before; a frame without it has no peak.
	earlier []smt.Bool
	lost    []smt.Bool
	peaked  []smt.Bool // frame and earlier, once a query asks
	newest  smt.Lin    // generation time of the last frame
	// merges says that updates may share a frame; without it the sum of peaks telescopes.
	merges bool
}

// build writes the model of p without any query. p is valid and has its defaults.
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
	if !p.decided() {
		for u := range m.streams {
			m.control(u)
		}
	}
	return m
}

func (m *model) ticks(d olaf.Duration) int64 { return int64(d / m.p.tick()) }

// newScript chooses the unit in which a person would write the service time.
func newScript(p *Problem, tick olaf.Duration) *smt.Script {
	s := &smt.Script{TickPS: int64(tick), UnitPS: 1, Unit: "ps"}
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
		s.Title = append(s.Title, fmt.Sprintf("u=%d is %s: every %v, jitter %v, %d updates", u, c.Name, c.Interval, c.Jitter, c.Updates))
	}
	return s
}

func name(what string, u, k int) string { return fmt.Sprintf("%s.%d.%d", what, u, k) }

func eq(equation string, u, k int) string { return fmt.Sprintf("%s u=%d k=%d", equation, u, k) }

// arrivals declares A(u,k) = phase + k·interval + jitter. Without jitter A is no variable of its own, so that equal
// comparisons of phases are one atom to the solver however often they occur.
func (m *model) arrivals(u int) stream {
	c := &m.p.Clusters[u]
	st := stream{c: c}
	lo, hi := m.ticks(c.PhaseLow), m.ticks(c.PhaseHigh)
	st.phase = smt.Ticks(lo)
	if lo != hi {
		id := fmt.Sprintf("phase.%d", u)
		st.phase = m.s.Real(id, lo, hi)
		m.s.Report(id)
		if c.EveryPhase {
			m.s.Assert(fmt.Sprintf("every phase below the interval u=%d", u), m.s.Lt(st.phase, smt.Ticks(hi)))
		}
	}
	for k := range c.Updates {
		a := st.phase.Shift(int64(k) * m.ticks(c.Interval))
		j := smt.Ticks(0)
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

// separate states the assumption that arrivals of different clusters keep their distance.
func (m *model) separate() {
	gap := m.ticks(m.p.Separation)
	if gap == 0 {
		return
	}
	m.pairs(gap, func(u, k, v, n int) {
		a, b := m.streams[u].arrival[k], m.streams[v].arrival[n]
		m.s.Assert(fmt.Sprintf("assumed separation u=%d k=%d v=%d n=%d", u, k, v, n),
			smt.Or(m.s.Le(a.Shift(gap), b), m.s.Le(b.Shift(gap), a)))
	})
}

// pairs visits every pair of updates of different clusters once that may arrive within reach of each other.
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

// near is the range of v's updates that may arrive from back before update k of u to ahead after it. It keeps the number of
// pairs that are looked at all linear in the horizon.
func (m *model) near(v, u, k int, back, ahead int64) (from, to int) {
	st, lo, hi := &m.streams[v], m.streams[u].lo[k], m.streams[u].hi[k]
	n := len(st.arrival)
	from = sort.Search(n, func(i int) bool { return st.hi[i]+back >= lo })
	to = sort.Search(n, func(i int) bool { return st.lo[i] > hi+ahead })
	return from, max(from, to)
}

// arrivedBefore says that update n of v is ahead of update k of u: it came earlier, or at the same instant and from a
// cluster of lower number.
func (m *model) arrivedBefore(v, n, u, k int) smt.Bool {
	a, b := m.streams[v].arrival[n], m.streams[u].arrival[k]
	if v < u {
		return m.s.Le(a, b)
	}
	return m.s.Lt(a, b)
}

// declareSends makes send decisions constants where they are given or unthrottled, and variables elsewhere. The first
// update of a cluster has no ACK before it and is sent at will.
func (m *model) declareSends(u int) {
	st := &m.streams[u]
	for k := range st.arrival {
		switch {
		case m.p.Control.Sends == SendsGiven:
			st.sent = append(st.sent, smt.Const(st.c.Sends[k]))
		case !m.p.Throttles() || k == 0:
			st.sent = append(st.sent, smt.True)
		default:
			id := name("sent", u, k)
			st.sent = append(st.sent, m.s.Bool(id))
			m.s.Report(id)
		}
	}
}

// control ties the send decisions of cluster u to the age Δ̂ of its last ACK (paper §5). Without an ACK that is younger
// than the age at which Ps reaches the draw, the update is sent; with free decisions the draw is certainty and the
// converse is left open.
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
		var young []smt.Bool
		for j := range k {
			ack := st.depart[j].Shift(delay)
			young = append(young, smt.And(st.frame[j],
				m.s.Le(ack, st.arrival[k]), m.s.Lt(st.arrival[k].Shift(-age), ack)))
		}
		if age == 0 {
			young = nil
		}
		if draws == nil {
			m.s.Assert(eq("5 Ps reaches 1", u, k), smt.Or(append(young, st.sent[k])...))
		} else {
			m.s.Assert(eq("5 Ps reaches the draw", u, k), smt.Iff(st.sent[k], smt.Not(smt.Or(young...))))
		}
	}
}

// Draws is the seeded randomness of cluster u's send decisions in thousandths, nil unless decisions are seeded.
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

// carry is recursion along one cluster's updates: the value after k is now where cond holds, and else what it was. Both
// are written relative to A(u,k), so that ranges stay tight.
func (m *model) carry(equation, what string, u, k int, cond smt.Bool, now, was smt.Lin) smt.Lin {
	a := m.streams[u].arrival[k]
	return a.Plus(m.s.Ite(eq(equation, u, k), name(what, u, k), cond, now.Minus(a), was.Minus(a)))
}

// let names a term of update k.
func (m *model) let(equation, what string, u, k int, t smt.Bool) smt.Bool {
	return m.s.Let(eq(equation, u, k), name(what, u, k), t)
}
