package enginetest

import (
	"math"
	"math/big"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// Reference implements docs/reference/semantics.md in a slow but obvious way. It searches lists, calculates with exact
// fractions and steps through every cycle. It shares no code with the engine.
type Reference struct {
	rule rule
	cfg  engine.Config
	out  engine.Output

	list    []*heldUpdate // in departure order; a leaving frame is first
	leaving *heldUpdate
	r       map[olaf.ClusterID]owner // the map R in semantics.md

	cycle    int64
	state    string   // "idle", "sending", "paying"
	free     *big.Rat // exact instant in cycles at which the current state ends
	merges   int      // merges to be paid for after the frame on the wire
	stats    engine.Stats
	stall    uint64
	idleAt   int64
	departed []Event
}

// rule describes how the reference implements a discipline.
type rule struct {
	// meet decides about an arrival that finds update w of its cluster waiting. It is nil for a discipline without
	// merging.
	meet func(r *Reference, w *heldUpdate, a olaf.Update, lanes []int32, inside []olaf.Contributor) engine.Class
	// place returns the position at which an arrival joins the n waiting updates; 0 is the next one to leave. nil means
	// position n.
	place func(n int) int
}

// rules contains the rule of every discipline.
var rules = map[string]rule{"fifo": {}, "olaf": {meet: olafRule}}

type owner struct {
	flag   bool
	worker olaf.WorkerID
}

type heldUpdate struct {
	u        olaf.Update
	lanes    []int32
	inside   []olaf.Contributor
	appended int64
}

// NewReference returns the reference for a port. It accepts the same options as engine.NewPort, but does not check
// them.
func NewReference(name string, cfg engine.Config, out engine.Output) *Reference {
	if out.Rate == 0 {
		out.Rate = 64 << 24
	}
	rule, known := rules[name]
	if !known {
		panic("enginetest: no rule for the discipline " + name)
	}
	return &Reference{rule: rule, cfg: cfg, out: out, state: "idle", free: new(big.Rat), r: map[olaf.ClusterID]owner{}}
}

// Departures returns all frames that left so far.
func (r *Reference) Departures() []Event { return r.departed }

// Stats returns the same counts as the engine.
func (r *Reference) Stats() engine.Stats { return r.stats }

// StallCycles returns the number of engine cycles charged to the output.
func (r *Reference) StallCycles() uint64 { return r.stall }

// IdleAt returns the cycle since which the queue has been empty, or 0 before the first departure.
func (r *Reference) IdleAt() int64 { return r.idleAt }

// Queued returns the waiting updates and the one on the wire, in departure order.
func (r *Reference) Queued() []olaf.Update {
	var all []olaf.Update
	for _, h := range r.list {
		all = append(all, h.u)
	}
	return all
}

// Occupancy returns the number of slots in use.
func (r *Reference) Occupancy() int {
	if r.leaving != nil && r.cfg.FreeSlotOnStart {
		return len(r.list) - 1
	}
	return len(r.list)
}

// ActiveClusters returns the number of clusters with a queued update.
func (r *Reference) ActiveClusters() int {
	seen := map[olaf.ClusterID]bool{}
	for _, h := range r.list {
		seen[h.u.Cluster] = true
	}
	return len(seen)
}

func (r *Reference) waiting(u olaf.ClusterID) *heldUpdate {
	for _, h := range r.list {
		if h != r.leaving && h.u.Cluster == u {
			return h
		}
	}
	return nil
}

// Offer passes an arriving update to the reference, after all earlier events, and returns its class.
func (r *Reference) Offer(cycle int64, a olaf.Update, lanes []int32, inside []olaf.Contributor) engine.Class {
	r.RunTo(cycle)
	class := r.decide(cycle, a, lanes, inside)
	r.stats.Offered++
	r.stats.Class[class]++
	r.stats.PeakOccupancy = max(r.stats.PeakOccupancy, r.Occupancy())
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

func (r *Reference) decide(cycle int64, a olaf.Update, lanes []int32, inside []olaf.Contributor) engine.Class {
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
	if r.rule.meet != nil && w != nil {
		return r.rule.meet(r, w, a, lanes, inside)
	}
	if r.Occupancy() == r.cfg.Slots {
		return engine.DroppedFull
	}
	r.insert(&heldUpdate{u: a, lanes: lanes, inside: slices.Clone(inside), appended: cycle})
	r.r[a.Cluster] = owner{true, a.Worker}
	return engine.Appended
}

// insert puts an arrival among the waiting updates. The update on the wire stays before them.
func (r *Reference) insert(arrival *heldUpdate) {
	first := 0
	if r.leaving != nil {
		first = 1
	}
	at := len(r.list)
	if r.rule.place != nil {
		at = first + r.rule.place(len(r.list)-first)
	}
	r.list = slices.Insert(r.list, at, arrival)
}

func (r *Reference) clip(v int64, saturations *uint64) int32 {
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

// RunTo steps through every cycle up to the given one.
func (r *Reference) RunTo(cycle int64) {
	for ; r.cycle < cycle; r.cycle++ {
		r.stepCycle()
	}
	r.stepCycle()
}

// stepCycle handles the events due in the current cycle.
func (r *Reference) stepCycle() {
	for r.state != "idle" && r.free.Cmp(new(big.Rat).SetInt64(r.cycle)) <= 0 {
		if r.state == "paying" {
			r.start()
			continue
		}
		h := r.leaving
		ev := Event{Kind: Out, Cycle: r.cycle, Queued: r.cycle - h.appended, Update: h.u}
		if r.cfg.LaneMemory > 0 {
			ev.Data = append([]int32(nil), h.lanes...)
		}
		if r.cfg.Provenance {
			ev.Inside = h.inside
		}
		r.departed = append(r.departed, ev)
		r.list = r.list[1:]
		r.leaving = nil
		r.stats.Released++
		r.stats.SumReleased += uint64(h.u.Count)
		r.state = "paying"
		r.pay(r.out.DequeueCycles + r.merges*r.out.MergeCycles)
		r.merges = 0
	}
}

func (r *Reference) pay(cycles int) {
	r.free.Add(r.free, new(big.Rat).SetInt64(int64(cycles)))
	r.stall += uint64(cycles)
}

func (r *Reference) start() {
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

// Flush discards all queued frames in the given cycle.
func (r *Reference) Flush(cycle int64) {
	r.RunTo(cycle)
	for _, h := range r.list {
		r.stats.Flushed++
		r.stats.SumFlushed += uint64(h.u.Count)
	}
	r.list, r.leaving = nil, nil
	clear(r.r)
	r.state, r.merges = "idle", 0
	r.idleAt = cycle
}

// Drain steps through cycles until the queue is empty.
func (r *Reference) Drain() {
	for r.state != "idle" {
		r.RunTo(r.cycle + 1)
	}
}

// ReplayReference does the same as ReplayVector, but with the Reference.
func ReplayReference(v *Vector) *Vector {
	r := NewReference(v.Engine, v.Config, v.Output)
	got := &Vector{Name: v.Name, About: v.About, Engine: v.Engine, Config: v.Config, Output: v.Output}
	take := func() {
		got.Events = append(got.Events, r.departed...)
		r.departed = nil
	}
	for _, ev := range v.Events {
		if ev.Kind == Out {
			continue
		}
		r.RunTo(ev.Cycle)
		take()
		if ev.Kind == In {
			ev.Class = r.Offer(ev.Cycle, ev.Update, ev.Data, ev.Inside)
		} else {
			r.Flush(ev.Cycle)
		}
		got.Events = append(got.Events, ev)
	}
	r.Drain()
	take()
	got.Stats = append(ListCounters(r.stats), Stat{Name: "stall_cycles", Value: r.stall},
		Stat{Name: "idle_at", Value: uint64(r.idleAt)})
	return got
}
