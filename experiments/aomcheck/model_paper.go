package aomcheck

import "fmt"

// paper writes §12.2 and §12.3 as printed. Q counts the other clusters with an update that will be delivered and is
// present when update k arrives. D = A + Q·p/C, plus the update's own service in the PaperService variant. The update
// is delivered only if D is before the cluster's next send. The model asserts that departures are p/C apart; this does
// not follow from the queue, and paths that break it are excluded from the verdict.
func (m *model) paper() {
	own := int64(0)
	if m.p.Model == PaperService {
		own = m.service
	}
	m.maxWait = int64(len(m.streams)-1)*m.service + own
	waits := m.paperWaits(own)
	for u := range m.streams {
		m.paperDelivered(u, waits[u])
	}
	for u := range m.streams {
		for k := range m.streams[u].arrival {
			m.paperQueue(u, k, waits[u][k], own)
		}
	}
	m.pairs(m.maxWait+m.service, func(u, k, v, n int) {
		a, b := &m.streams[u], &m.streams[v]
		disjoint := or(m.s.Le(a.depart[k].Shift(m.service), b.depart[n]), m.s.Le(b.depart[n].Shift(m.service), a.depart[k]))
		m.s.Assert(fmt.Sprintf("12.3 departures p/C apart u=%d k=%d v=%d n=%d", u, k, v, n),
			implies(and(a.frame[k], b.frame[n]), disjoint))
	})
}

func (m *model) paperWaits(own int64) [][]lin {
	waits := make([][]lin, len(m.streams))
	for u := range m.streams {
		for k := range m.streams[u].arrival {
			if m.maxWait == own {
				waits[u] = append(waits[u], makeConstant(own))
				continue
			}
			waits[u] = append(waits[u], m.s.Real(name("W", u, k), own, m.maxWait))
		}
	}
	return waits
}

// paperDelivered defines, for each update of cluster u, whether it is delivered, 1{D(k) < A(k+1)}, and which earlier
// update was the last to depart. k+1 is the next update that is sent.
func (m *model) paperDelivered(u int, waits []lin) {
	st := &m.streams[u]
	n := len(st.arrival)
	next := make([]lin, n)
	next[n-1] = st.arrival[n-1].Shift(m.maxWait + m.service) // no later update follows, so the last one is delivered
	for k := n - 2; k >= 0; k-- {
		next[k] = m.carry("12.3 A(k+1) of the next send", "NA", u, k, st.sent[k+1], st.arrival[k+1], next[k+1])
	}
	st.merges = true
	gen, some := st.arrival[0], False
	for k := range n {
		depart := st.arrival[k].Plus(waits[k])
		delivered := m.let("12.3 D(k) < A(k+1)", "dep", u, k, and(st.sent[k], m.s.Lt(depart, next[k])))
		st.frame = append(st.frame, delivered)
		st.depart = append(st.depart, depart)
		st.before = append(st.before, gen)
		st.earlier = append(st.earlier, some)
		gen = m.carry("6 l is the latest departed update", "G", u, k, delivered, st.arrival[k], gen)
		some = m.let("6 some update departed before", "some", u, k, or(some, delivered))
	}
	st.newest = gen
}

// paperQueue writes the equation T_Q(k) = Q(k)·p/C for update k of cluster u.
func (m *model) paperQueue(u, k int, wait lin, own int64) {
	sum := makeConstant(own)
	var present []Bool
	a := m.streams[u].arrival[k]
	for v := range m.streams {
		if v == u {
			continue
		}
		other := &m.streams[v]
		var some []Bool
		from, to := m.near(v, u, k, m.maxWait, 0)
		for n := from; n < to; n++ {
			some = append(some, and(other.frame[n], m.s.Lt(other.arrival[n], a), m.s.Lt(a, other.depart[n])))
		}
		id := fmt.Sprintf("Q.%d.%d.%d", u, k, v)
		there := m.s.Let(fmt.Sprintf("12.3 Q(k) u=%d k=%d v=%d", u, k, v), id, or(some...))
		present = append(present, there)
		sum = sum.Plus(m.s.Ite(fmt.Sprintf("12.3 TQ share u=%d k=%d v=%d", u, k, v), "T"+id, there, makeConstant(m.service), makeConstant(0)))
	}
	m.s.Assert(eq("12.3 D = A + Q p/C", u, k), m.s.Eq(wait, sum))
	full := False
	if m.p.Objective.Kind == LossFree && len(present) >= m.p.Slots {
		full = m.s.AtLeast(eq("12.2 Q(k) reaches Qmax", u, k), name("QF", u, k), m.p.Slots, present)
	}
	m.streams[u].lost = append(m.streams[u].lost, and(m.streams[u].sent[k], full))
}
