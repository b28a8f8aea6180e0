package xdp

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
)

var events = flag.Int("events", 20_000, "random events that a test sends through the kernel in all")

// differential sends the same events to the kernel and the engine and compares everything visible.
type differential struct {
	t       *testing.T
	rng     *rand.Rand
	cfg     engine.Config
	k       *Queue
	e       engine.Discipline
	senders []dataplane.Sender
	frame   []byte
	out     []byte
	want    []dataplane.Decision // decisions not yet found in the log
	next    uint64
	leaving engine.Slot
	sums    map[string]uint64 // the kernel's counts
	beside  map[string]uint64 // counts that the engine does not have
	checked int
}

func newDifferential(t *testing.T, name string, cfg engine.Config, seed uint64) *differential {
	d := &differential{t: t, rng: rand.New(rand.NewPCG(seed, 0)), cfg: cfg, leaving: engine.NoSlot, sums: map[string]uint64{},
		beside: map[string]uint64{"bypassed": 0, "foreign": 0, "malformed": 0, "misidentified": 0, "beyond_clusters": 0, "lost_before_engine": 0,
			"unlogged": 0, "in_bytes": 0, "delivered_bytes": 0},
		out: make([]byte, int(olaf.FrameSize(cfg.LaneMemory)))}
	for i := range 40 {
		d.senders = append(d.senders, dataplane.Sender{Address: addressOf(i), Cluster: olaf.ClusterID(i % (cfg.Clusters + 1)), Worker: olaf.WorkerID(d.rng.IntN(4))})
	}
	d.k = load(t, name, dataplane.Build{Slots: cfg.Slots + 1, Clusters: cfg.Clusters, Lanes: cfg.LaneMemory, FrameLanes: cfg.LaneMemory,
		Senders: 64, LogBytes: 1 << 20})
	t.Cleanup(func() { _ = d.k.Close() })
	e, err := engine.New(name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	d.e = e
	d.must(d.k.SetSenders(d.senders))
	d.must(d.k.Configure(dataplane.Settings{Depth: cfg.Slots, FreeSlotOnStart: cfg.FreeSlotOnStart, RewardFilter: cfg.RewardFilter,
		RewardThreshold: cfg.RewardThreshold}))
	d.must(d.k.Run(true))
	return d
}

func (d *differential) must(err error) {
	if err != nil {
		d.t.Helper()
		d.t.Fatal(err)
	}
}

func oneOf[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// update draws an update that often finds another one waiting and often has values at a limit.
func (d *differential) update(s dataplane.Sender) (olaf.Update, []int32) {
	rng := d.rng
	u := olaf.Update{
		GenNS:   oneOf[uint64](rng, 0, 1, 2, 1<<47-1, 1<<47, 1<<47+1, 1<<48-1),
		Seq:     uint32(rng.IntN(10)),
		Reward:  oneOf[int32](rng, 0, 0, 1, -1, 5, 20, -20, math.MaxInt32, math.MinInt32),
		Cluster: s.Cluster,
		Worker:  s.Worker,
		Count:   oneOf[uint16](rng, 1, 1, 1, 1, 1, 2, 40000),
		Lanes:   uint16(d.cfg.LaneMemory),
		Flags:   oneOf[olaf.Flags](rng, 0, 0, 0, olaf.Retransmission),
	}
	if rng.IntN(20) == 0 {
		u.Lanes = uint16(rng.IntN(d.cfg.LaneMemory + 1))
	}
	lanes := make([]int32, u.Lanes)
	far := rng.IntN(4) == 0
	for i := range lanes {
		lanes[i] = int32(rng.Uint32()) >> 8
		if far && rng.IntN(10) == 0 {
			lanes[i] = oneOf[int32](rng, math.MaxInt32, math.MinInt32, math.MaxInt32-1, -1)
		}
	}
	return u, lanes
}

// arrive sends a frame of a random sender: valid, with another sender's identity in its header, or broken.
func (d *differential) arrive() {
	s := oneOf(d.rng, d.senders...)
	u, lanes := d.update(s)
	claimed := u
	stranger, lies, broken := d.rng.IntN(50) == 0, d.rng.IntN(50) == 0, d.rng.IntN(50) == 0
	if lies {
		claimed.Worker++
	}
	a := olaf.Addresses{SrcIP: s.Address.As4(), DstIP: [4]byte{10, 255, 255, 254}}
	if stranger {
		a.SrcIP = [4]byte{11, 0, 0, 1}
	}
	d.frame = make([]byte, u.Size())
	_, err := olaf.EncodeUpdate(d.frame, &a, &claimed, lanes)
	d.must(err)
	if broken {
		d.frame[d.rng.IntN(olaf.HeaderBytes)] ^= byte(1 << d.rng.IntN(8))
	}
	passed, err := d.k.Arrive(d.frame)
	d.must(err)
	f, fault := olaf.ParseFrame(d.frame)
	if fault == nil && broken { // still valid after the damage: its header now describes another update
		u, s = f.Update(), dataplane.Sender{}
		for _, one := range d.senders {
			if one.Address.As4() == f.Addresses().SrcIP {
				s = one
			}
		}
		stranger = !s.Address.IsValid()
		lies = u.Cluster != s.Cluster || u.Worker != s.Worker
		u.Cluster, u.Worker = s.Cluster, s.Worker
	}
	d.judge(u, lanes, passed == Pass, stranger, lies, fault)
}

// judge determines the expected outcome of a frame, and of its update in the engine.
func (d *differential) judge(u olaf.Update, lanes []int32, passed, stranger, lies bool, fault error) {
	bypassed := errors.Is(fault, olaf.ErrNotOLAF)
	switch {
	case fault != nil && !bypassed:
		d.beside["malformed"]++
	case bypassed || stranger || int(u.Cluster) >= d.cfg.Clusters:
		d.beside["bypassed"]++
		if !bypassed && !stranger {
			d.beside["beyond_clusters"]++
		}
		if bypassed {
			d.beside["foreign"]++
		}
		bypassed = true
	default:
		if lies {
			d.beside["misidentified"]++
		}
		o := d.e.Offer(0, &u, lanes, nil)
		d.beside["in_bytes"] += uint64(u.Size())
		d.want = append(d.want, dataplane.Decision{Kind: dataplane.Arrival, Class: o.Class, Slot: o.Slot, Update: u})
	}
	if passed != bypassed {
		d.t.Fatalf("%+v (%v) is passed to the network stack: %v", u, fault, passed)
	}
}

// turn makes the output end one frame, begin another, or both.
func (d *differential) turn() {
	release, start := d.rng.IntN(8) > 0, d.rng.IntN(8) > 0
	if release && d.leaving != engine.NoSlot {
		u := d.view(d.leaving).Update
		d.want = append(d.want, dataplane.Decision{Kind: dataplane.Release, Slot: d.leaving,
			Update: olaf.Update{Cluster: u.Cluster, Count: u.Count, Lanes: u.Lanes}})
		d.beside["delivered_bytes"] += uint64(u.Size())
		d.e.Release(d.leaving)
		d.leaving = engine.NoSlot
	}
	x, frame, err := d.k.Turn(release, start, d.out)
	d.must(err)
	if !start {
		return
	}
	slot, _, ok := d.e.Lock()
	if ok != x.Started {
		d.t.Fatalf("a frame starts: kernel %v, engine %v", x.Started, ok)
	}
	if !ok {
		return
	}
	d.leaving = slot
	f := d.view(slot)
	d.want = append(d.want, dataplane.Decision{Kind: dataplane.Start, Slot: slot,
		Update: olaf.Update{Cluster: f.Update.Cluster, Count: f.Update.Count, Lanes: f.Update.Lanes}})
	if x.Update != f.Update || x.Slot != int(slot) {
		d.t.Fatalf("slot %d starts with %+v, but the engine starts slot %d with %+v", x.Slot, x.Update, slot, f.Update)
	}
	d.sameFrame(frame, &f)
}

func (d *differential) view(s engine.Slot) (f engine.Frame) {
	d.e.View(s, &f)
	return f
}

func (d *differential) sameFrame(frame []byte, want *engine.Frame) {
	f, err := olaf.ParseFrame(frame)
	d.must(err)
	u := want.Update
	u.Flags &= olaf.Retransmission
	lanes := make([]int32, f.LaneCount())
	f.Lanes(lanes)
	if f.Update() != u || !slices.Equal(lanes, want.Lanes[:u.Lanes]) {
		d.t.Fatalf("leaves as %+v %v\nwant      %+v %v", f.Update(), lanes, u, want.Lanes)
	}
}

func (d *differential) flush() {
	_, err := d.k.Flush()
	d.must(err)
	d.e.Flush()
	d.leaving = engine.NoSlot
	d.want = append(d.want, dataplane.Decision{Kind: dataplane.Flush, Slot: engine.NoSlot})
}

// compare reads the log and the state, and compares them with the engine's.
func (d *differential) compare() {
	i := 0
	d.must(d.k.Decisions(func(got *dataplane.Decision) {
		if i == len(d.want) {
			d.t.Fatalf("one too many: %+v", *got)
		}
		w := d.want[i]
		w.Number, w.AtNS, w.Saturated = d.next, got.AtNS, got.Saturated
		if *got != w {
			d.t.Fatalf("decision %d:\n got %+v\nwant %+v", d.next, *got, w)
		}
		i++
		d.next++
	}))
	if i != len(d.want) {
		d.t.Fatalf("%d of %d decisions are in the log", i, len(d.want))
	}
	d.checked += i
	d.want = d.want[:0]
	x, err := d.k.Inspect(0, nil)
	d.must(err)
	frames, updates := d.e.QueuedCount()
	inside := uint64(x.Waiting)
	if x.Leaving >= 0 {
		inside++
	}
	s := d.e.Stats()
	if inside != frames || x.Updates != updates || x.Active != d.e.ActiveClusters() || x.Peak != s.PeakOccupancy {
		d.t.Fatalf("%+v; the engine has %d frames, %d updates, %d clusters, peak %d", x, frames, updates, d.e.ActiveClusters(),
			s.PeakOccupancy)
	}
}

// counters compares the sums with the engine's.
func (d *differential) counters() {
	_, more, err := d.k.Latch(false)
	d.must(err)
	for name, n := range more {
		d.sums[name] += n
	}
	s := d.e.Stats()
	want := map[string]uint64{
		"accepted_updates": s.SumAccepted, "started_frames": s.Locked, "delivered_frames": s.Released, "flushed_frames": s.Flushed,
		"delivered_updates": s.SumReleased, "flushed_updates": s.SumFlushed, "discarded_updates": s.SumDiscarded,
		"lane_saturations": s.LaneSaturations, "reward_saturations": s.RewardSaturations, "count_saturations": s.CountSaturations,
		"locked_collisions": s.LockedCollisions,
	}
	for class := range engine.Classes {
		want[class.String()] = s.Class[class]
	}
	maps.Copy(want, d.beside)
	if diff := cmp.Diff(want, d.sums); diff != "" {
		d.t.Fatalf("counters (-engine +kernel):\n%s", diff)
	}
}

// TestRandomEvents sends random events through the kernel and the engine and checks that decisions, frames, sums and
// counters are equal.
func TestRandomEvents(t *testing.T) {
	configs := []engine.Config{
		{Slots: 4, Clusters: 6, LaneMemory: 5},
		{Slots: 8, Clusters: 9, LaneMemory: 48},
		{Slots: 3, Clusters: 5, LaneMemory: 20, FreeSlotOnStart: true, RewardFilter: true, RewardThreshold: 10},
		{Slots: 2, Clusters: 3, LaneMemory: 33, RewardFilter: true},
	}
	for _, name := range slices.Sorted(maps.Keys(disciplines)) {
		for i, cfg := range configs {
			t.Run(fmt.Sprint(name, i), func(t *testing.T) {
				d := newDifferential(t, name, cfg, uint64(i))
				n := *events / len(configs) / len(disciplines)
				for e := range n {
					switch r := d.rng.IntN(1000); {
					case r < 700:
						d.arrive()
					case r < 999:
						d.turn()
					default:
						d.flush()
					}
					if e%500 == 499 {
						d.compare()
					}
				}
				d.compare()
				d.counters()
				d.must(d.k.Run(false))
				t.Logf("%d decisions, %v", d.checked, d.sums)
			})
		}
	}
}
