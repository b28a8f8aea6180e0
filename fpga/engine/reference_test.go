package engine_test

import (
	"math"
	"math/big"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/engine/vector"
)

// reference is docs/semantics.md written down the slow and obvious way: lists that are searched, exact fractions, and
// one step for every cycle. It shares nothing with the engine but the words.
type reference struct {
	olaf bool
	cfg  engine.Config
	out  engine.Output

	list    []*held // in departure order; a leaving one is first
	leaving *held
	r       map[olaf.ClusterID]owner // R of the page

	cycle  int64
	state  string   // "idle", "sending", "paying"
	free   *big.Rat // exact instant, in cycles
	merges int      // to be paid after the frame on the wire
	stats  engine.Stats
	stall  uint64
	idleAt int64
	gone   []vector.Event
}

type owner struct {
	flag   bool
	worker olaf.WorkerID
}

type held struct {
	u        olaf.Update
	lanes    []int32
	inside   []olaf.Contributor
	appended int64
}

func newReference(name string, cfg engine.Config, out engine.Output) *reference {
	if out.Rate == 0 {
		out.Rate = 64 << 24
	}
	return &reference{olaf: name == "olaf", cfg: cfg, out: out, state: "idle", free: new(big.Rat), r: map[olaf.ClusterID]owner{}}
}

func (r *reference) occupancy() int {
	if r.leaving != nil && r.cfg.FreeSlotOnStart {
		return len(r.list) - 1
	}
	return len(r.list)
}

func (r *reference) activeClusters() int {
	seen := map[olaf.ClusterID]bool{}
	for _, h := range r.list {
		seen[h.u.Cluster] = true
	}
	return len(seen)
}

func (r *reference) waiting(u olaf.ClusterID) *held {
	for _, h := range r.list {
		if h != r.leaving && h.u.Cluster == u {
			return h
		}
	}
	return nil
}

func (r *reference) offer(cycle int64, a olaf.Update, lanes []int32, inside []olaf.Contributor) engine.Class {
	r.runTo(cycle)
	class := r.decide(cycle, a, lanes, inside)
	r.stats.Offered++
	r.stats.Class[class]++
	r.stats.PeakOccupancy = max(r.stats.PeakOccupancy, r.occupancy())
	switch class {
	case engine.Appended, engine.Aggregated, engine.Replaced, engine.ReplacedReward:
		r.stats.SumAccepted += uint64(a.Count)
	}
	switch {
	case class == engine.Appended && r.state == "idle":
		r.free.SetInt64(cycle)
		r.start()
	case class == engine.Aggregated || class == engine.Replaced || class == engine.ReplacedReward:
		if r.state == "paying" {
			r.pay(r.out.MergeCycles)
		} else {
			r.merges++
		}
	}
	return class
}

func (r *reference) decide(cycle int64, a olaf.Update, lanes []int32, inside []olaf.Contributor) engine.Class {
	if r.cfg.LaneMemory > 0 && lanes == nil {
		lanes = make([]int32, a.Lanes)
	}
	lanes = slices.Clone(lanes[:min(len(lanes), r.cfg.LaneMemory)])
	if inside == nil {
		inside = []olaf.Contributor{{GenNS: a.GenNS, Seq: a.Seq, Worker: a.Worker}}
	}
	w := r.waiting(a.Cluster)
	if w == nil && r.leaving != nil && r.leaving.u.Cluster == a.Cluster {
		r.stats.LockedCollisions++
	}
	if r.olaf && w != nil {
		return r.meet(w, a, lanes, inside)
	}
	if r.occupancy() == r.cfg.Slots {
		return engine.DroppedFull
	}
	r.list = append(r.list, &held{u: a, lanes: lanes, inside: slices.Clone(inside), appended: cycle})
	r.r[a.Cluster] = owner{true, a.Worker}
	return engine.Appended
}

func (r *reference) meet(w *held, a olaf.Update, lanes []int32, inside []olaf.Contributor) engine.Class {
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
		d := new(big.Int).Sub(new(big.Int).Mul(big64(int64(a.Reward)), big64(int64(w.u.Count))), big64(int64(w.u.Reward)))
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

func (r *reference) clip(v int64, saturations *uint64) int32 {
	switch {
	case v > math.MaxInt32:
		*saturations++
		return math.MaxInt32
	case v < math.MinInt32:
		*saturations++
		return math.MinInt32
	}
	return int32(v)
}

// runTo lives through every cycle up to the given one.
func (r *reference) runTo(cycle int64) {
	for ; r.cycle < cycle; r.cycle++ {
		r.settle()
	}
	r.settle()
}

// settle does what happens by itself in the present cycle.
func (r *reference) settle() {
	for r.state != "idle" && r.free.Cmp(new(big.Rat).SetInt64(r.cycle)) <= 0 {
		if r.state == "paying" {
			r.start()
			continue
		}
		h := r.leaving
		ev := vector.Event{Kind: vector.Out, Cycle: r.cycle, Queued: r.cycle - h.appended, Update: h.u}
		if r.cfg.LaneMemory > 0 {
			ev.Data = append([]int32(nil), h.lanes...)
		}
		if r.cfg.Provenance {
			ev.Inside = h.inside
		}
		r.gone = append(r.gone, ev)
		r.list = r.list[1:]
		r.leaving = nil
		r.stats.Released++
		r.stats.SumReleased += uint64(h.u.Count)
		r.state = "paying"
		r.pay(r.out.DequeueCycles + r.merges*r.out.MergeCycles)
		r.merges = 0
	}
}

func (r *reference) pay(cycles int) {
	r.free.Add(r.free, new(big.Rat).SetInt64(int64(cycles)))
	r.stall += uint64(cycles)
}

func (r *reference) start() {
	if len(r.list) == 0 {
		r.state = "idle"
		r.idleAt = r.cycle
		return
	}
	h := r.list[0]
	r.leaving = h
	delete(r.r, h.u.Cluster)
	r.stats.Locked++
	bytes := int64(64+4*int(h.u.Lanes)) + int64(r.out.OverheadBytes)
	r.free.Add(r.free, big.NewRat(bytes<<24, int64(r.out.Rate)))
	r.state = "sending"
}

func (r *reference) flush(cycle int64) {
	r.runTo(cycle)
	for _, h := range r.list {
		r.stats.Flushed++
		r.stats.SumFlushed += uint64(h.u.Count)
	}
	r.list, r.leaving = nil, nil
	clear(r.r)
	r.state, r.merges = "idle", 0
	r.idleAt = cycle
}

func (r *reference) drain() {
	for r.state != "idle" {
		r.runTo(r.cycle + 1)
	}
}

// replayReference is vector.Replay on the reference.
func replayReference(v *vector.Vector) *vector.Vector {
	r := newReference(v.Engine, v.Config, v.Output)
	got := &vector.Vector{Name: v.Name, About: v.About, Engine: v.Engine, Config: v.Config, Output: v.Output}
	take := func() {
		got.Events = append(got.Events, r.gone...)
		r.gone = nil
	}
	for _, ev := range v.Events {
		if ev.Kind == vector.Out {
			continue
		}
		r.runTo(ev.Cycle)
		take()
		if ev.Kind == vector.In {
			ev.Class = r.offer(ev.Cycle, ev.Update, ev.Data, ev.Inside)
		} else {
			r.flush(ev.Cycle)
		}
		got.Events = append(got.Events, ev)
	}
	r.drain()
	take()
	got.Stats = append(vector.Counters(r.stats), vector.Stat{Name: "stall_cycles", Value: r.stall}, vector.Stat{Name: "idle_at", Value: uint64(r.idleAt)})
	return got
}
