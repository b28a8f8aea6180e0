package aomcheck

import "fmt"

// violate asserts the negation of the objective. A satisfying assignment is then a sample path that breaks the
// objective.
func (m *model) violate() {
	o := &m.p.Objective
	var broken []Bool
	switch o.Kind {
	case Fairness:
		broken = m.unfair(m.ticks(o.Bound))
	case LossFree:
		for _, st := range m.streams {
			broken = append(broken, or(st.lost...))
		}
	default:
		for u := range m.streams {
			maxPeak, mean := m.p.boundsOf(u)
			if maxPeak > 0 {
				broken = append(broken, m.peakAbove(u, m.ticks(maxPeak)))
			}
			if mean > 0 {
				broken = append(broken, m.meanAbove(u, m.mean(u), m.ticks(mean)))
			}
		}
	}
	m.s.State("6 the objective is broken: "+o.String(), or(broken...))
}

// String describes the objective in one phrase.
func (o Objective) String() string {
	switch o.Kind {
	case Fairness:
		return fmt.Sprintf("fairness within %v", o.Bound)
	case MaxPeak:
		return fmt.Sprintf("peak AoM at most %v", o.Bound)
	case MeanPeak:
		return fmt.Sprintf("mean peak AoM at most %v", o.Bound)
	case LossFree:
		return "loss-free"
	}
	return "bounds per cluster"
}

// peaks returns, for each update of cluster u, a term that is true if the update's frame has a peak.
func (m *model) peaks(u int) []Bool {
	st := &m.streams[u]
	if st.peaked == nil {
		for k := range st.frame {
			st.peaked = append(st.peaked, m.let("6 peak exists", "peak", u, k, and(st.frame[k], st.earlier[k])))
		}
	}
	return st.peaked
}

// peakAbove returns a term that is true if u is starved or has a peak AoM above bound.
func (m *model) peakAbove(u int, bound int64) Bool {
	st := &m.streams[u]
	exists := m.peaks(u)
	broken := []Bool{not(or(exists...))}
	for k, peak := range exists {
		broken = append(broken, and(peak, m.s.Lt(makeConstant(bound), st.depart[k].Minus(st.before[k]))))
	}
	return or(broken...)
}

// meanPeak is the mean of a cluster's peaks. It is sum/count if count is the same on every path, and otherwise the
// variable mean.
type meanPeak struct {
	sum     lin
	count   int64 // 0 if it varies
	value   lin
	starved Bool
}

// mean writes the mean peak of cluster u (§6), over all updates or over the departed frames only. Departed frames are
// counted in unary, with one linear equation per count.
func (m *model) mean(u int) meanPeak {
	exists := m.peaks(u)
	out := meanPeak{sum: m.peakSum(u, exists), starved: not(or(exists...))}
	if m.p.Objective.Mean == AllUpdates {
		out.count = int64(len(exists))
		return out
	}
	certain, open := 0, []Bool{}
	for _, t := range exists {
		switch t {
		case True:
			certain++
		case False:
		default:
			open = append(open, t)
		}
	}
	if len(open) == 0 {
		out.count = int64(certain)
		return out
	}
	_, hi := m.s.Range(out.sum)
	id := fmt.Sprintf("mean.%d", u)
	out.value = m.s.Real(id, 0, max(hi, 0))
	counts := m.s.Counter(fmt.Sprintf("6 departed frames u=%d", u), fmt.Sprintf("count.%d", u), open, len(open))
	counts = append(counts, False)
	for c := range len(open) + 1 {
		if n := int64(certain + c); n > 0 {
			exactly := and(counts[c], not(counts[c+1]))
			m.s.Assert(fmt.Sprintf("6 avg over %d departed u=%d", n, u), implies(exactly, m.s.Eq(out.value.Times(n), out.sum)))
		}
	}
	return out
}

// peakSum returns the sum of D(k) − A(l) over the updates of u that have a peak. If no updates share a frame, the sum
// telescopes to the time between the first and the last delivered generation, plus the delays of the frames. Their
// ranges are much tighter.
func (m *model) peakSum(u int, exists []Bool) lin {
	st := &m.streams[u]
	telescopes := !st.merges && st.frame[0] == True
	sum := makeConstant(0)
	if telescopes {
		sum = st.newest.Minus(st.arrival[0])
	}
	for k, there := range exists {
		term := st.depart[k].Minus(st.before[k])
		if telescopes {
			term = st.depart[k].Minus(st.arrival[k])
		}
		sum = sum.Plus(m.s.Ite(eq("6 DP", u, k), name("DP", u, k), there, term, makeConstant(0)))
	}
	return sum
}

// meanAbove returns a term that is true if u is starved or its mean peak exceeds bound.
func (m *model) meanAbove(u int, mean meanPeak, bound int64) Bool {
	if mean.count > 0 {
		return or(mean.starved, m.s.Lt(makeConstant(bound*mean.count), mean.sum))
	}
	return or(mean.starved, m.s.Lt(makeConstant(bound), mean.value))
}

// unfair returns the terms of a disjunction: some cluster is starved, or the means of two clusters differ by more than
// epsilon.
func (m *model) unfair(epsilon int64) []Bool {
	means := make([]meanPeak, len(m.streams))
	var broken []Bool
	for u := range means {
		means[u] = m.mean(u)
		broken = append(broken, means[u].starved)
	}
	for u := range means {
		for v := range means {
			if u != v {
				broken = append(broken, m.aheadBy(means[u], means[v], epsilon))
			}
		}
	}
	return broken
}

// aheadBy returns the term a − b > epsilon. Known counts are multiplied out, so that no division is needed.
func (m *model) aheadBy(a, b meanPeak, epsilon int64) Bool {
	left, right, scale := a.value, b.value, int64(1)
	switch {
	case a.count > 0 && b.count > 0:
		g := gcd(a.count, b.count)
		left, right = a.sum.Times(b.count/g), b.sum.Times(a.count/g)
		scale = a.count * b.count / g
	case a.count > 0:
		left, right, scale = a.sum, b.value.Times(a.count), a.count
	case b.count > 0:
		left, right, scale = a.value.Times(b.count), b.sum, b.count
	}
	return m.s.Lt(right.Shift(epsilon*scale), left)
}
