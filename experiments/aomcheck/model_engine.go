package aomcheck

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// engine writes the queue of docs/reference/semantics.md. Frames leave in the order in which they were appended. An
// update
// merges into a waiting frame of its cluster and shares its start of service. So
//
//	S(f) = max(A(f), S(g) + p/C over all frames g appended before f),   D = S + p/C,
//
// and only frames appended less than maxWait + p/C before f can matter, which the ranges decide.
func (m *model) engine() {
	m.maxWait = m.engineWait()
	full := m.canFill()
	m.period = m.commonPeriod(full)
	starts := make([][]lin, len(m.streams)) // S(u,k), defined if k starts or joins a frame
	last := make([][]lin, len(m.streams))   // S of the cluster's newest frame after update k
	for u := range m.streams {
		starts[u], last[u] = m.chain(u, full)
	}
	for u := range m.streams {
		for k := range m.streams[u].arrival {
			if m.twin(u, k) == k {
				m.start(u, k, starts, last)
			}
			if full {
				m.fill(u, k, starts)
			}
		}
	}
}

// engineWait returns the longest possible wait before service. When an update is appended, at most Qmax−1 slots are
// occupied, one frame is leaving, and each cluster has at most one update waiting. If no cluster sends faster than all
// clusters together are served, no cluster has two updates inside, so the leaving frame is one of the F−1 others.
func (m *model) engineWait() int64 {
	ahead := len(m.streams)
	if m.isUnhurried() {
		ahead--
	}
	return int64(min(ahead, m.p.Slots-1)) * m.service
}

func (m *model) isUnhurried() bool {
	round := olaf.Duration(len(m.p.Clusters)) * m.p.Service
	for _, c := range m.p.Clusters {
		if c.shortestGap()-c.Jitter < round {
			return false
		}
	}
	return true
}

// canFill reports whether an update can ever find all slots occupied.
func (m *model) canFill() bool {
	inside := len(m.streams) // F−1 other frames waiting and one leaving
	if m.isUnhurried() {
		inside--
	}
	return inside >= m.p.Slots
}

// commonPeriod returns the least common multiple of all intervals if waiting times repeat with that period, else 0.
// They repeat if nothing is random and no update is unsent, dropped or merged. A busy period is then shorter than every
// interval, and an update waits only for updates that arrived at most F·p/C earlier.
func (m *model) commonPeriod(canFill bool) int64 {
	if canFill || !m.isUnhurried() || m.p.Throttles() || m.p.Control.Sends == SendsGiven {
		return 0
	}
	period := int64(1)
	for _, c := range m.p.Clusters {
		if c.Jitter > 0 || len(c.Arrivals) > 0 || !c.EveryPhase && c.PhaseHigh >= c.Interval {
			return 0
		}
		t := m.ticks(c.Interval)
		period *= t / gcd(period, t)
		if period > 1<<40 {
			return 0
		}
	}
	return period
}

// twin returns the earlier update of cluster u that waits as long as update k, or k if there is none. The arrivals one
// period before k look the same, unless that time is before some cluster's first send or k is after some cluster's
// last.
func (m *model) twin(u, k int) int {
	if m.period == 0 {
		return k
	}
	interval := m.ticks(m.p.Clusters[u].Interval)
	latest := m.ticks(m.p.Clusters[u].PhaseHigh) + int64(k)*interval
	if !m.p.Clusters[u].EveryPhase {
		latest++ // the phase may be PhaseHigh itself
	}
	for _, c := range m.p.Clusters {
		if latest > int64(c.Updates)*m.ticks(c.Interval) {
			return k
		}
	}
	earlier := k - int(m.period/interval)
	if earlier < 1 {
		return k
	}
	return earlier
}

// chain decides for each update of one cluster whether it starts a frame, joins the waiting frame, or is dropped.
func (m *model) chain(u int, canFill bool) (starts, last []lin) {
	st := &m.streams[u]
	n := len(st.arrival)
	// Before the first update, the queue contains nothing relevant and nothing has been delivered.
	lastStart := st.arrival[0].Shift(-m.maxWait - 2*m.service)
	gen := st.arrival[0]
	some := False
	var waits []lin
	for k := range n {
		s, a := m.s, st.arrival[k]
		if t := m.twin(u, k); t < k {
			waits = append(waits, waits[t])
		} else {
			waits = append(waits, s.Real(name("W", u, k), 0, m.maxWait))
		}
		start := a.Plus(waits[k])
		opens := m.let("A1 nothing of the cluster waits", "opens", u, k, s.Le(lastStart, a))
		full := False
		if canFill {
			full = s.Bool(name("full", u, k))
		}
		appends := m.let("A1 append", "app", u, k, and(st.sent[k], opens, not(full)))
		merges := and(st.sent[k], not(opens))
		accepted := m.let("A1 append or merge", "acc", u, k, and(st.sent[k], or(not(opens), not(full))))
		s.Assert(eq("A1 merge keeps the place", u, k), implies(merges, s.Eq(start, lastStart)))
		st.merges = st.merges || merges != False

		st.frame = append(st.frame, appends)
		st.depart = append(st.depart, start.Shift(m.service))
		st.before = append(st.before, gen)
		st.earlier = append(st.earlier, some)
		st.lost = append(st.lost, and(st.sent[k], opens, full))
		starts = append(starts, start)

		lastStart = m.carry("12.1 start of the newest frame", "S", u, k, accepted, start, lastStart)
		gen = m.carry("6 generation time of the newest update inside", "G", u, k, accepted, a, gen)
		some = m.let("6 something delivered before", "some", u, k, or(some, appends))
		last = append(last, lastStart)
	}
	st.newest = gen
	return starts, last
}

// start adds the constraints that define S, the start of service, for the frame that begins with update k of cluster u.
func (m *model) start(u, k int, starts, last [][]lin) {
	st, s := &m.streams[u], m.s
	appends, start := st.frame[k], starts[u][k]
	tight := []Bool{s.Eq(start, st.arrival[k])}
	after := func(cond Bool, free lin) {
		matters := and(cond, s.Lt(st.arrival[k], free))
		if matters == False {
			return
		}
		s.Assert(eq("12.2 departures p/C apart, in order of arrival", u, k), implies(and(appends, cond), s.Le(free, start)))
		tight = append(tight, and(cond, s.Eq(start, free)))
	}
	if k > 0 {
		after(True, last[u][k-1].Shift(m.service))
	}
	for v := range m.streams {
		if v == u {
			continue
		}
		from, to := m.near(v, u, k, m.maxWait+m.service, 0)
		for n := from; n < to; n++ {
			after(and(m.streams[v].frame[n], m.arrivedBefore(v, n, u, k)), starts[v][n].Shift(m.service))
		}
	}
	s.Assert(eq("12.2 the output never idles while something waits", u, k), implies(appends, or(tight...)))
}

// fill defines the variable that is true if update k of u finds all slots occupied while its cluster has no waiting
// frame. Each other cluster has at most one frame waiting, and only one frame is leaving. It is therefore enough to
// count F terms instead of one per update.
func (m *model) fill(u, k int, starts [][]lin) {
	a := m.streams[u].arrival[k]
	var taken, leaving []Bool
	for v := range m.streams {
		var waiting []Bool
		from, to := m.near(v, u, k, m.maxWait+m.service, 0)
		for n := from; n < to; n++ {
			if v == u && n >= k {
				break
			}
			ahead := and(m.streams[v].frame[n], m.arrivedBefore(v, n, u, k))
			waiting = append(waiting, and(ahead, m.s.Lt(a, starts[v][n])))
			leaving = append(leaving, and(ahead, m.s.Le(starts[v][n], a), m.s.Lt(a, starts[v][n].Shift(m.service))))
		}
		if v != u {
			taken = append(taken, or(waiting...))
		}
	}
	taken = append(taken, or(leaving...))
	possible := taken[:0]
	for i, t := range taken {
		if t != False {
			possible = append(possible, m.s.Let(eq("12.2 share of Q(k)", u, k), fmt.Sprintf("Q.%d.%d.in.%d", u, k, i), t))
		}
	}
	full := False
	if len(possible) >= m.p.Slots {
		full = m.s.AtLeast(eq("12.2 Q(k)", u, k), name("Q", u, k), m.p.Slots, possible)
	}
	// The cluster's own waiting frames are not counted; an update that merges does not use this condition.
	m.s.Assert(eq("A1 the queue is full", u, k), iff(Bool(name("full", u, k)), full))
}
