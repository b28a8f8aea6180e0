package engine

import "github.com/olafctl/olaf"

// olafQueue keeps at most one waiting update per cluster and merges arrivals into it (paper §5, Algorithm 1; the order of
// the rules is docs/semantics.md, Enqueue).
type olafQueue struct{ store }

func newOlaf(cfg Config) Engine { return &olafQueue{newStore(cfg)} }

func (q *olafQueue) Offer(now olaf.Time, u *olaf.Update, lanes []int32) Class {
	return q.OfferMerged(now, u, lanes, nil)
}

func (q *olafQueue) OfferMerged(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Class {
	q.stats.Offered++
	c := &q.clusters[u.Cluster]
	var class Class
	if c.waiting == 0 {
		class = q.append(now, u, lanes, inside)
		c.waiting = q.last + 1 // NoSlot is -1: still none
	} else {
		class = q.meet(c.waiting-1, u, lanes, inside)
	}
	q.stats.Class[class]++
	return class
}

// Lock also ends the head's time as its cluster's waiting update.
func (q *olafQueue) Lock(p Port) (Slot, bool) {
	slot, ok := q.lock(p)
	if ok {
		q.clusters[q.places[slot].update.Cluster].waiting = 0
	}
	return slot, ok
}

// meet brings u together with the waiting update of its cluster, in slot i.
func (q *olafQueue) meet(i int32, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Class {
	w := &q.places[i]
	if w.update.Lanes != u.Lanes {
		q.last = int32(NoSlot)
		return DroppedMismatch
	}
	if w.replaceable && w.update.Worker == u.Worker {
		q.replace(i, w, u, lanes, inside)
		return Replaced
	}
	if q.cfg.RewardFilter {
		switch q.compare(u, &w.update) {
		case better:
			q.replace(i, w, u, lanes, inside)
			return ReplacedReward
		case worse:
			q.last = int32(NoSlot)
			return DroppedReward
		}
	}
	q.aggregate(i, w, u, lanes, inside)
	return Aggregated
}

// verdict is what the reward filter says about an arrival.
type verdict uint8

const (
	similar verdict = iota
	better
	worse
)

// compare holds a's reward against the mean of what waits, scaled by the count so that nothing is divided. Exactly the
// threshold is similar.
func (q *olafQueue) compare(a, w *olaf.Update) verdict {
	count := int64(w.Count)
	d := int64(a.Reward)*count - int64(w.Reward)
	limit := int64(q.cfg.RewardThreshold) * count
	switch {
	case d > limit:
		return better
	case d < -limit:
		return worse
	}
	return similar
}

func (q *olafQueue) replace(i int32, w *place, u *olaf.Update, lanes []int32, inside []olaf.Contributor) {
	q.stats.SumDiscarded += uint64(w.update.Count)
	q.fill(i, w, u, lanes, inside)
}

// aggregate adds u to slot i. The header becomes that of u, the newest contributor.
func (q *olafQueue) aggregate(i int32, w *place, u *olaf.Update, lanes []int32, inside []olaf.Contributor) {
	old := &w.update
	merged := *u
	merged.GenNS = newest(old.GenNS, u.GenNS)
	merged.Flags |= old.Flags
	sum := int64(old.Reward) + int64(u.Reward)
	if merged.Reward = int32(sum); int64(merged.Reward) != sum {
		merged.Reward = saturate(sum)
		q.stats.RewardSaturations++
	}
	count := int(old.Count) + int(u.Count)
	if count > olaf.MaxCount {
		count = olaf.MaxCount
		merged.Flags |= olaf.CountSaturated
		q.stats.CountSaturations++
	}
	merged.Count = uint16(count)
	w.update = merged
	w.replaceable = false
	q.stats.SumAccepted += uint64(u.Count)
	q.last = i
	if q.stride > 0 && lanes != nil {
		q.stats.LaneSaturations += addLanes(q.lanesOf(i, u), lanes)
	}
	if q.cfg.Provenance {
		q.log.add(w, u, inside)
	}
}

// newest is the later of two generation times modulo 2^48: the one that is less than half the range ahead of the other.
func newest(w, a uint64) uint64 {
	if (a-w)%olaf.GenModulus < olaf.GenModulus/2 {
		return a
	}
	return w
}
