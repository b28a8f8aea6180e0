package engine

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
)

// olafQueue has at most one waiting update per cluster and merges arrivals into it (paper §5, Algorithm 1). The order
// of the rules is in docs/reference/semantics.md, Enqueue.
type olafQueue struct{ store }

func newOlaf(cfg Config) Discipline {
	q := olafQueue{newStore(cfg)}
	if q.carries {
		return &carryingOlaf{q}
	}
	return &q
}

// Offer determines the class of u and stores, merges or drops it. Gradients and provenance are ignored.
func (q *olafQueue) Offer(now olaf.Time, u *olaf.Update, _ []int32, _ []olaf.Contributor) (o Outcome) {
	q.stats.Offered++
	waiting := &q.clusters[u.Cluster] // slot of its waiting update plus one, 0 for none
	if *waiting == 0 {
		if q.isLeaving(u) {
			q.stats.LockedCollisions++
		}
		o.Slot = q.appendUpdate(now, u)
		*waiting = int32(o.Slot) + 1 // NoSlot is -1, which stores 0: still none
		if o.Ready = o.Slot != NoSlot; !o.Ready {
			o.Class = DroppedFull
		}
	} else {
		o = q.combine(Slot(*waiting-1), u)
	}
	q.stats.Class[o.Class]++
	return o
}

// carryingOlaf is an olafQueue that also stores gradients or provenance.
type carryingOlaf struct{ olafQueue }

func (q *carryingOlaf) Offer(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Outcome {
	o := q.olafQueue.Offer(now, u, nil, nil)
	q.moveLanes(o, u, lanes, inside)
	return o
}

// Lock implements Discipline. It also removes the head from the table of waiting updates by cluster.
func (q *olafQueue) Lock() (Slot, olaf.Size, bool) {
	slot, size, ok := q.lock()
	if ok {
		q.clusters[q.places[slot].update.Cluster] = 0
	}
	return slot, size, ok
}

// ActiveClusters returns the number of clusters with a waiting update, plus one if the update on the wire is the only
// update of its cluster.
func (q *olafQueue) ActiveClusters() int {
	n := int(q.waiting)
	if q.leaving >= 0 && q.clusters[q.places[q.leaving].update.Cluster] == 0 {
		n++
	}
	return n
}

// combine merges u into the waiting update of its cluster, which is in slot i, or drops u.
func (q *olafQueue) combine(i Slot, u *olaf.Update) Outcome {
	w := &q.places[i]
	if w.update.Lanes != u.Lanes {
		return Outcome{Slot: NoSlot, Class: DroppedMismatch}
	}
	replace := isZero(w.owner ^ int32(u.Worker))
	class := Aggregated + Class(replace) // Replaced follows Aggregated
	if q.cfg.RewardFilter && class == Aggregated {
		switch q.compareReward(u, &w.update) {
		case better:
			replace, class = 1, ReplacedReward
		case worse:
			return Outcome{Slot: NoSlot, Class: DroppedReward}
		}
	}
	q.mergeUpdate(w, u, int32(replace)-1)
	return Outcome{Slot: i, Class: class, Merged: true}
}

// verdict is the result of comparing an arrival's reward.
type verdict uint8

const (
	similar verdict = iota
	better
	worse
)

// compareReward compares a's reward with w's mean reward. Both are multiplied by w's count to avoid a division. A
// difference equal to the threshold counts as similar.
func (q *olafQueue) compareReward(a, w *olaf.Update) verdict {
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

// mergeUpdate merges u into w. The header becomes that of u, which is the newest contributor. keep is a mask: all ones
// adds u to the contents of w, and 0 replaces them. A mask is used because the choice is unpredictable and a
// mispredicted branch would cost more.
func (q *olafQueue) mergeUpdate(w *place, u *olaf.Update, keep int32) {
	m := &w.update
	q.stats.SumDiscarded += uint64(m.Count) &^ uint64(keep)
	q.stats.SumAccepted += uint64(u.Count)
	flags := m.Flags&olaf.Flags(keep) | u.Flags
	reward := int64(m.Reward&keep) + int64(u.Reward)
	if reward != int64(int32(reward)) {
		reward = int64(adder.ClampInt32(reward))
		q.stats.RewardSaturations++
	}
	count := uint32(m.Count)&uint32(keep) + uint32(u.Count)
	if count > olaf.MaxCount {
		count = olaf.MaxCount
		flags |= olaf.CountSaturated
		q.stats.CountSaturations++
	}
	m.GenNS = laterTime(u.GenNS^(m.GenNS^u.GenNS)&uint64(keep), u.GenNS)
	m.Seq = u.Seq
	m.Worker = u.Worker
	m.Reward = int32(reward)
	m.Count = uint16(count)
	m.Flags = flags
	w.owner = int32(u.Worker) | keep // -1 if kept: several contributors
}

// laterTime returns the later of two generation times modulo 2^48. The later time is less than half of the range ahead
// of the other.
func laterTime(w, a uint64) uint64 {
	if (a-w)%olaf.GenModulus < olaf.GenModulus/2 {
		return a
	}
	return w
}
