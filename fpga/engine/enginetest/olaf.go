package enginetest

import (
	"math/big"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// olafRule returns the class of an arrival for which update w of the same cluster is waiting. It implements rule 1 of
// docs/reference/semantics.md, Enqueue.
func olafRule(r *Reference, w *heldUpdate, a olaf.Update, lanes []int32, inside []olaf.Contributor) engine.Class {
	if w.u.Lanes != a.Lanes {
		return engine.DroppedMismatch
	}
	replace := func(class engine.Class) engine.Class {
		r.stats.SumDiscarded += uint64(w.u.Count)
		w.u, w.lanes, w.inside = a, lanes, slices.Clone(inside)
		r.r[a.Cluster] = owner{true, a.Worker}
		return class
	}
	if r.r[a.Cluster] == (owner{true, a.Worker}) {
		return replace(engine.Replaced)
	}
	if r.cfg.RewardFilter {
		big64 := func(v int64) *big.Int { return big.NewInt(v) }
		d := new(big.Int).Sub(new(big.Int).Mul(big64(int64(a.Reward)), big64(int64(w.u.Count))),
			big64(int64(w.u.Reward)))
		limit := new(big.Int).Mul(big64(int64(r.cfg.RewardThreshold)), big64(int64(w.u.Count)))
		if d.Cmp(limit) > 0 {
			return replace(engine.ReplacedReward)
		}
		if d.Cmp(new(big.Int).Neg(limit)) < 0 {
			return engine.DroppedReward
		}
	}
	for i := range w.lanes {
		w.lanes[i] = r.clip(int64(w.lanes[i])+int64(lanes[i]), &r.stats.LaneSaturations)
	}
	old := w.u
	w.u = a
	w.u.Reward = r.clip(int64(old.Reward)+int64(a.Reward), &r.stats.RewardSaturations)
	w.u.Flags = old.Flags | a.Flags
	if sum := int(old.Count) + int(a.Count); sum <= 65535 {
		w.u.Count = uint16(sum)
	} else {
		w.u.Count = 65535
		w.u.Flags |= olaf.CountSaturated
		r.stats.CountSaturations++
	}
	ahead := (a.GenNS + 1<<48 - old.GenNS) % (1 << 48)
	if ahead >= 1<<47 {
		w.u.GenNS = old.GenNS
	}
	w.inside = append(w.inside, inside...)
	r.r[a.Cluster] = owner{}
	return engine.Aggregated
}
