package xdp

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
)

// load loads a discipline, or skips the test if the process lacks the rights.
func load(t testing.TB, name string, b dataplane.Build) *Queue {
	t.Helper()
	k, err := LoadQueue(name, b)
	loaded(t, err)
	return k
}

// loaded skips the test if a right is missing, and prints the verifier's output if it refuses the program.
func loaded(t testing.TB, err error) {
	t.Helper()
	var refused *ebpf.VerifierError
	switch {
	case errors.Is(err, netlab.ErrRights):
		t.Skip(err)
	case errors.As(err, &refused):
		t.Fatalf("%+v", refused)
	case err != nil:
		t.Fatal(err)
	}
}

// identity identifies a sender.
type identity struct {
	cluster olaf.ClusterID
	worker  olaf.WorkerID
}

// addressOf returns the source address of an identity.
func addressOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i + 1)})
}

// discipline makes the kernel's queue an engine.Discipline. Every call runs a program, so that tests of the engine also
// test the kernel. It stores only what the programs do not have: virtual times, and the contributors of arrivals.
type discipline struct {
	t       testing.TB
	k       *Queue
	cfg     engine.Config
	known   map[identity]netip.Addr
	frame   []byte
	out     []byte
	leaving []byte // the frame on the wire
	places  map[engine.Slot]*beside
	sums    map[string]uint64
}

// beside contains what the kernel's slot does not.
type beside struct {
	appended olaf.Time
	inside   []olaf.Contributor
}

// newDiscipline makes an empty discipline with configuration cfg from a loaded queue. The identities in known may send.
func newDiscipline(t testing.TB, k *Queue, cfg engine.Config, known map[identity]netip.Addr) *discipline {
	d := &discipline{t: t, k: k, cfg: cfg, known: known, places: map[engine.Slot]*beside{}, sums: map[string]uint64{},
		frame: make([]byte, olaf.MaxFrame), out: make([]byte, int(olaf.FrameSize(cfg.LaneMemory)))}
	d.must(k.Run(false))
	d.must(k.Reset())
	d.must(k.Configure(dataplane.Settings{Depth: cfg.Slots, FreeSlotOnStart: cfg.FreeSlotOnStart, RewardFilter: cfg.RewardFilter,
		RewardThreshold: cfg.RewardThreshold}))
	d.must(k.Run(true))
	return d
}

func (d *discipline) must(err error) {
	if err != nil {
		d.t.Helper()
		d.t.Fatal(err)
	}
}

// takeDecision returns the only decision since the last call.
func (d *discipline) takeDecision(kind dataplane.DecisionKind) (found dataplane.Decision) {
	n := 0
	d.must(d.k.Decisions(func(one *dataplane.Decision) { found, n = *one, n+1 }))
	if n != 1 || found.Kind != kind {
		d.t.Fatalf("%d decisions, the last %+v; want one of kind %d", n, found, kind)
	}
	return found
}

func (d *discipline) Offer(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) engine.Outcome {
	a := olaf.Addresses{SrcIP: d.known[identity{u.Cluster, u.Worker}].As4(), DstIP: [4]byte{10, 255, 255, 254}}
	n, err := olaf.EncodeUpdate(d.frame, &a, u, lanes)
	d.must(err)
	verdict, err := d.k.Arrive(d.frame[:n])
	d.must(err)
	if verdict != Drop {
		d.t.Fatalf("%+v: verdict %d", u, verdict)
	}
	got := d.takeDecision(dataplane.Arrival)
	if got.Update != *u {
		d.t.Fatalf("%+v is logged as %+v", *u, got.Update)
	}
	d.remember(now, &got, u, inside)
	c := got.Class
	return engine.Outcome{Slot: got.Slot, Class: c, Ready: c == engine.Appended,
		Merged: c == engine.Aggregated || c == engine.Replaced || c == engine.ReplacedReward}
}

// remember stores what belongs to a slot but is not in it.
func (d *discipline) remember(now olaf.Time, got *dataplane.Decision, u *olaf.Update, inside []olaf.Contributor) {
	if got.Slot == engine.NoSlot {
		return
	}
	if inside == nil {
		inside = []olaf.Contributor{{GenNS: u.GenNS, Seq: u.Seq, Worker: u.Worker}}
	}
	b := d.places[got.Slot]
	switch {
	case got.Class == engine.Appended:
		b = &beside{appended: now}
		d.places[got.Slot] = b
	case got.Class != engine.Aggregated:
		b.inside = nil
	}
	b.inside = append(b.inside, inside...)
}

func (d *discipline) Lock() (engine.Slot, olaf.Size, bool) {
	x, frame, err := d.k.Turn(false, true, d.out)
	d.must(err)
	if !x.Started {
		return engine.NoSlot, 0, false
	}
	if got := d.takeDecision(dataplane.Start); int(got.Slot) != x.Slot {
		d.t.Fatalf("slot %d starts and %+v is logged", x.Slot, got)
	}
	d.leaving = slices.Clone(frame)
	return engine.Slot(x.Slot), x.Update.Size(), true
}

// View returns a slot as the inspector does. The frame on the wire must equal the started frame byte by byte.
func (d *discipline) View(s engine.Slot, f *engine.Frame) {
	x := d.inspect(s)
	b := d.places[s]
	*f = engine.Frame{Update: x.Update, AppendedAt: b.appended}
	if d.cfg.Provenance {
		f.Contributors = b.inside
	}
	if d.cfg.LaneMemory > 0 {
		f.Lanes = d.lanes(&x.Update)
	}
	if x.Leaving == x.Slot {
		d.sameBytes(&x.Update)
	}
}

// inspect finds a slot in the order of departure.
func (d *discipline) inspect(s engine.Slot) dataplane.Exchange {
	for i := 0; ; i++ {
		x, err := d.k.Inspect(i, d.out)
		d.must(err)
		if x.Slot < 0 {
			d.t.Fatalf("slot %d is not inside", s)
		}
		if x.Slot == int(s) {
			return x
		}
	}
}

// lanes reads the gradients of the frame in out.
func (d *discipline) lanes(u *olaf.Update) []int32 {
	lanes := make([]int32, min(int(u.Lanes), d.cfg.LaneMemory))
	for i := range lanes {
		lanes[i] = int32(binary.BigEndian.Uint32(d.out[olaf.HeaderBytes+olaf.LaneBytes*i:]))
	}
	return lanes
}

// sameBytes compares the frame on the wire with out and with its expected header.
func (d *discipline) sameBytes(u *olaf.Update) {
	if !slices.Equal(d.leaving, d.out[:len(d.leaving)]) {
		d.t.Fatalf("the frame on the wire changed:\n%x\n%x", d.leaving, d.out)
	}
	if int(u.Lanes) > d.cfg.LaneMemory {
		return
	}
	f, err := olaf.ParseFrame(d.leaving[:u.Size()])
	d.must(err)
	want := *u
	want.Flags &= olaf.Retransmission
	if f.Update() != want {
		d.t.Fatalf("%+v leaves as %+v", *u, f.Update())
	}
}

func (d *discipline) Release(s engine.Slot) {
	x, _, err := d.k.Turn(true, false, nil)
	d.must(err)
	if got := d.takeDecision(dataplane.Release); !x.Released || got.Slot != s {
		d.t.Fatalf("slot %d: %+v, %+v", s, x, got)
	}
	delete(d.places, s)
}

func (d *discipline) Flush() {
	_, err := d.k.Flush()
	d.must(err)
	d.takeDecision(dataplane.Flush)
	clear(d.places)
}

func (d *discipline) state() dataplane.Exchange {
	x, err := d.k.Inspect(0, nil)
	d.must(err)
	return x
}

func (d *discipline) Waiting() int { return d.state().Waiting }

func (d *discipline) Occupancy() int {
	x := d.state()
	if x.Leaving >= 0 && !d.cfg.FreeSlotOnStart {
		return x.Waiting + 1
	}
	return x.Waiting
}

func (d *discipline) ActiveClusters() int { return d.state().Active }

func (d *discipline) Queued(visit func(s engine.Slot, locked bool) bool) {
	for i := 0; ; i++ {
		x, err := d.k.Inspect(i, nil)
		d.must(err)
		if x.Slot < 0 || !visit(engine.Slot(x.Slot), x.Slot == x.Leaving) {
			return
		}
	}
}

func (d *discipline) QueuedCount() (frames, updates uint64) {
	x := d.state()
	frames = uint64(x.Waiting)
	if x.Leaving >= 0 {
		frames++
	}
	return frames, x.Updates
}

func (d *discipline) Stats() engine.Stats {
	x, err := d.k.run("latch", 0, 0, nil)
	d.must(err)
	more, err := d.k.drain(x.Bank ^ 1) // drained at once, because nothing else runs
	d.must(err)
	for name, n := range more {
		d.sums[name] += n
	}
	c := d.sums
	s := engine.Stats{
		SumAccepted: c["accepted_updates"], Locked: c["started_frames"], Released: c["delivered_frames"], Flushed: c["flushed_frames"],
		SumReleased: c["delivered_updates"], SumFlushed: c["flushed_updates"], SumDiscarded: c["discarded_updates"],
		LaneSaturations: c["lane_saturations"], RewardSaturations: c["reward_saturations"], CountSaturations: c["count_saturations"],
		LockedCollisions: c["locked_collisions"], PeakOccupancy: d.state().Peak,
	}
	for class := range engine.Classes {
		s.Class[class] = c[class.String()]
		s.Offered += c[class.String()]
	}
	for _, never := range []string{"bypassed", "malformed", "misidentified", "beyond_clusters", "lost_before_engine", "unlogged"} {
		if c[never] != 0 {
			d.t.Fatalf("%d %s", c[never], never)
		}
	}
	return s
}

func (d *discipline) Reset() { d.t.Fatal("the kernel's queue is not reset, it is loaded anew") }
