package rtl

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// The twin has no receiver that could stall it, so back-pressure is checked without it: each frame must be the sum of
// the updates in its provenance log, and nothing may be lost.

// always makes a consumer accept every beat.
const always = 1 << 16

// sent contains the updates that a test put on the input, by contributor.
type sent map[olaf.Contributor]offered

type offered struct {
	update olaf.Update
	lanes  []int32
}

// offer puts n updates of random sizes and gradients on the input, back to back or with gaps.
func (b *bench) offer(t *testing.T, n int) sent {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	all := sent{}
	at := b.child.cycle + 10
	for i := range n {
		size := []int{64, 256, 256, 1500, 9036}[r.IntN(5)]
		worker := r.IntN(12)
		u := olaf.Update{
			GenNS: uint64(i), Seq: uint32(i), Reward: r.Int32() - r.Int32(), Cluster: olaf.ClusterID(worker % 3),
			Worker: olaf.WorkerID(worker),
			Count:  1, Lanes: uint16((size - olaf.HeaderBytes) / olaf.LaneBytes),
		}
		lanes := make([]int32, u.Lanes)
		for k := range lanes {
			lanes[k] = int32(r.Uint32())
		}
		if err := b.child.inject(&injection{cycle: at, known: true, cluster: u.Cluster, worker: u.Worker,
			bytes: encode(t, &u, lanes)}); err != nil {
			t.Fatal(err)
		}
		all[olaf.Contributor{Worker: u.Worker, Seq: u.Seq, GenNS: u.GenNS}] = offered{u, lanes}
		at += int64(r.IntN(60))
	}
	return all
}

// ready sets both consumers.
func (b *bench) ready(t *testing.T, server, around uint32) {
	t.Helper()
	if err := b.child.ready(false, server, 7); err != nil {
		t.Fatal(err)
	}
	if err := b.child.ready(true, around, 8); err != nil {
		t.Fatal(err)
	}
}

// rest lets time pass until the card is idle, but at most the given number of cycles. It reports whether the card
// became idle.
func (b *bench) rest(t *testing.T, cycles int64) bool {
	t.Helper()
	until := b.child.cycle + cycles
	if err := b.child.runCycles(cycles, true); err != nil {
		t.Fatal(err)
	}
	return b.child.cycle < until
}

// work resets the card and enables a merging queue at 20 bytes per cycle, with its log.
func (b *bench) work(t *testing.T) {
	t.Helper()
	b.configure(t, "olaf", &engine.Config{Slots: 8, Provenance: true}, engine.Output{Rate: 20 << 24})
}

// judge checks every departed frame against the updates that it contains.
func (b *bench) judge(t *testing.T, all sent) {
	t.Helper()
	var inside uint64
	for i := range b.frames {
		f := &b.frames[i]
		if len(f.inside) == 0 {
			t.Fatalf("frame %d is of nobody", i)
		}
		want := all[f.inside[0]]
		reward, lanes := int64(want.update.Reward), slices.Clone(want.lanes)
		for _, who := range f.inside[1:] {
			want = all[who]
			reward = saturated(reward + int64(want.update.Reward))
			for k := range lanes {
				lanes[k] = int32(saturated(int64(lanes[k]) + int64(want.lanes[k])))
			}
		}
		u := f.update
		if int64(u.Reward) != reward || int(u.Count) != len(f.inside) || u.Seq != want.update.Seq || u.Worker != want.update.Worker {
			t.Errorf("frame %d is %+v; its contributors %v make a reward of %d", i, u, f.inside, reward)
		}
		if !slices.Equal(lanesOf(f.bytes), lanes) {
			t.Errorf("frame %d has other gradients than its contributors %v", i, f.inside)
		}
		inside += uint64(len(f.inside))
	}
	b.write(t, regmap.CommonCommand, regmap.CommonCommandSnapshot)
	c, err := regmap.ReadQueueCounters(b)
	if err != nil {
		t.Fatal(err)
	}
	if c.In != uint64(len(all)) || c.DeliveredFrames != uint64(len(b.frames)) || c.DeliveredUpdates != inside ||
		c.Appended != c.DeliveredFrames ||
		inside+c.DiscardedUpdates != c.Appended+c.Aggregated+c.Replaced {
		t.Errorf("%d updates were offered and %d are in %d frames: %+v", len(all), inside, len(b.frames), c)
	}
}

func saturated(v int64) int64 { return min(max(v, math.MinInt32), math.MaxInt32) }

// TestBackPressure uses consumers that accept beats at random. It checks that stalls that the output's buffer absorbs
// change no decision and no end of a frame, and that after longer stalls the output is late but every frame is
// complete.
func TestBackPressure(t *testing.T) {
	b := openBench(t, Build{})
	var first []seen
	for _, c := range []struct {
		of65536 uint32
		hidden  bool
	}{{always, true}, {60_000, true}, {20_000, false}, {5_000, false}} {
		b.work(t)
		b.ready(t, c.of65536, always)
		all := b.offer(t, 300)
		if !b.rest(t, 2_000_000) {
			t.Fatalf("a beat in %.1f cycles: it does not come to rest", always/float64(c.of65536))
		}
		b.judge(t, all)
		if first == nil {
			first = b.frames
		}
		same := slices.EqualFunc(first, b.frames, func(x, y seen) bool {
			return x.over-first[0].over == y.over-b.frames[0].over && bytes.Equal(x.bytes, y.bytes)
		})
		if same != c.hidden {
			t.Errorf("a beat in %.1f cycles: the frames are the same ones at the same times: %t", always/float64(c.of65536), same)
		}
	}
	b.ready(t, always, always)
}

// TestBlockedOutput uses a parameter server that never accepts a beat. It checks that the queue fills and continues to
// count, that registers answer, and that a reset removes everything except the frame on the bus.
func TestBlockedOutput(t *testing.T) {
	b := openBench(t, Build{})
	b.work(t)
	b.ready(t, 0, always)
	all := b.offer(t, 300)
	if b.rest(t, 40_000) || len(b.frames) != 0 {
		t.Fatalf("%d frames left", len(b.frames))
	}
	b.write(t, regmap.CommonCommand, regmap.CommonCommandSnapshot)
	c, err := regmap.ReadQueueCounters(b)
	if err != nil {
		t.Fatal(err)
	}
	kept := c.Appended + c.Aggregated + c.Replaced
	if c.In != uint64(len(all)) || c.In != kept+c.DroppedFull+c.DroppedMismatch || c.QueuedFrames+c.DeliveredFrames != c.Appended {
		t.Errorf("%d updates were offered: %+v", len(all), c)
	}
	b.work(t)
	b.ready(t, always, always)
	if !b.rest(t, 1000) {
		t.Fatal("it does not come to rest")
	}
	b.work(t)
	all = b.offer(t, 20)
	if !b.rest(t, 40_000) {
		t.Fatal("it does not come to rest after a reset")
	}
	b.judge(t, all)
}

// TestBlockedBypass blocks the queue's bypass. It checks that the input stops, that nothing is lost, and that all
// frames leave in order afterwards.
func TestBlockedBypass(t *testing.T) {
	b := openBench(t, Build{})
	b.watch(t, reportLog|reportDecisions|reportLanes|reportBypassed)
	b.work(t)
	b.ready(t, always, 0)
	var strange [][]byte
	for i := range 40 {
		frame := bytes.Repeat([]byte{byte(i)}, 60+i*37)
		strange = append(strange, frame)
		if err := b.child.inject(&injection{cycle: b.child.cycle + int64(i), bytes: frame}); err != nil {
			t.Fatal(err)
		}
	}
	all := b.offer(t, 20)
	if b.rest(t, 20_000) || len(b.passed) != 0 {
		t.Fatalf("%d frames passed", len(b.passed))
	}
	if v, err := b.Read32(regmap.CommonMagic); err != nil || v == 0 {
		t.Fatalf("%#x, %v", v, err)
	}
	b.ready(t, always, 30_000)
	if !b.rest(t, 40_000) {
		t.Fatal("it does not come to rest")
	}
	if !slices.EqualFunc(strange, b.passed, bytes.Equal) {
		t.Errorf("%d of %d frames passed, or others", len(b.passed), len(strange))
	}
	b.judge(t, all)
	b.ready(t, always, always)
}

// TestOverlongFramesAreDropped checks that frames longer than the build allows are dropped and counted, whatever their
// length, and that frames behind them are not.
func TestOverlongFramesAreDropped(t *testing.T) {
	b := openBench(t, Build{})
	b.work(t)
	u := olaf.Update{Cluster: 1, Worker: 1, Count: 1, Lanes: 48}
	whole := encode(t, &u, make([]int32, u.Lanes))
	lengths := []int{9037, 9088, 9089, 9600, 20_000, 65_535}
	for _, n := range lengths {
		for _, frame := range [][]byte{append(slices.Clone(whole), make([]byte, n-len(whole))...), make([]byte, n), whole} {
			if err := b.child.inject(&injection{cycle: b.child.cycle, known: true, cluster: 1, worker: 1, bytes: frame}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !b.rest(t, 100_000) {
		t.Fatal("it does not come to rest")
	}
	b.write(t, regmap.CommonCommand, regmap.CommonCommandSnapshot)
	c, err := regmap.ReadQueueCounters(b)
	if err != nil {
		t.Fatal(err)
	}
	if c.In != uint64(len(lengths)) || c.Malformed+c.Bypassed != uint64(2*len(lengths)) || c.Malformed < uint64(2*len(lengths)-2) {
		t.Errorf("of %d frames of each kind: %+v", len(lengths), c)
	}
}

// TestResetInFrame resets the card in every cycle in which a long frame arrives, and then sends another frame after the
// rest of it.
func TestResetInFrame(t *testing.T) {
	b := openBench(t, Build{})
	updates := []olaf.Update{{Cluster: 2, Worker: 2, Count: 1, Lanes: 2243}, {Cluster: 1, Worker: 1, Seq: 9, Count: 1, Lanes: 48}}
	for phase := int64(5); phase < 140; phase++ {
		b.work(t)
		for i := range updates {
			u := &updates[i]
			frame := encode(t, u, make([]int32, u.Lanes))
			if err := b.child.inject(&injection{cycle: b.child.cycle + 1, known: true, cluster: u.Cluster, worker: u.Worker,
				bytes: frame}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.child.runCycles(phase, false); err != nil {
			t.Fatal(err)
		}
		b.work(t)
		if !b.rest(t, 2000) {
			t.Fatalf("phase %d: it does not come to rest", phase)
		}
		if len(b.frames) != 1 || b.frames[0].update.Seq != 9 {
			t.Errorf("phase %d: %d frames, not the second alone", phase, len(b.frames))
		}
	}
}
