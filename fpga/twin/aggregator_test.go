package twin

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/regmap"
	"pgregory.net/rapid"
)

var summing = iswitch.Describe()

// newSummingBench returns a card with iSwitch in front of a queue with the given depth and rate.
func newSummingBench(tb testing.TB, tables *fakeTables, h, depth, bytesPerCycle uint32) *bench {
	b := newBench(tb, Config{Tables: tables, Programs: []program.Description{summing}})
	b.write(regmap.AggregatorProgram, summing.Code)
	b.write(regmap.AggregatorH, h)
	b.configure(fifo|regmap.QueueModeProvenance, depth, bytesPerCycle)
	return b
}

// frontCount returns a counter of the program by name, after a snapshot.
func (b *bench) frontCount(name string) uint64 {
	b.Helper()
	b.write(regmap.CommonCommand, regmap.CommonCommandSnapshot)
	c, err := regmap.ReadAggregatorCounters(b)
	if err != nil {
		b.Fatal(err)
	}
	return *c.At(countRegister(summing.Ledger.Index(name)))
}

// TestProgramInFrontOfTheQueue checks that three updates of a cluster leave as one, at the time at which the last of
// them arrived, and that a fourth waits.
func TestProgramInFrontOfTheQueue(t *testing.T) {
	b := newSummingBench(t, newTables(2, 3), 3, 8, 20)
	b.loadFlows(2, 3, nil)
	var ds []regmap.Descriptor
	for i, flow := range []uint16{0, 3, 1, 2, 4, 3, 5} { // alternates between clusters 0 and 1
		ds = append(ds, regmap.Descriptor{Time: uint64(100 * i), Flow: flow, Sequence: uint32(i), Reward: 256})
	}
	b.loadDescriptors(ds...)
	b.start()
	b.finish()
	got := b.Drain(nil)
	if len(got) != 2 {
		t.Fatalf("%d frames", len(got))
	}
	want := olaf.Update{GenNS: 1200, Seq: 3, Reward: 768, Cluster: 0, Worker: 2, Count: 3, Lanes: 48}
	if got[0].Update != want || got[0].At != cycleTime(313) || len(got[0].Contributors) != 3 || got[0].Contributors[0].Worker != 0 {
		t.Errorf("%+v, want %+v at cycle 313", got[0], want)
	}
	if u := got[1].Update; u.Cluster != 1 || u.Count != 3 || u.Seq != 5 {
		t.Errorf("the other cluster's sum is %+v", u)
	}
	for name, want := range map[string]uint64{"consumed": 5, "completed": 2, "vectors_in": 7, "vectors_out": 6, "vectors_held": 1,
		"vectors_cleared": 0} {
		if n := b.frontCount(name); n != want {
			t.Errorf("%s = %d, want %d", name, n, want)
		}
	}
	if held, peak := b.read(regmap.AggregatorOccupied), b.read(regmap.AggregatorPeakOccupied); held != 1 || peak != 2 {
		t.Errorf("%d segments held, %d at most", held, peak)
	}
	b.inspectsPartials(t)
	// A clear does not reset levels; their values are carried over.
	b.write(regmap.CommonCommand, regmap.CommonCommandClear)
	if in, held := b.frontCount("vectors_in"), b.frontCount("vectors_held"); in != 0 || held != 1 {
		t.Errorf("after a clear %d came in, %d are held", in, held)
	}
	b.write(regmap.QueueCommand, regmap.QueueCommandFlush)
	if cleared := b.frontCount("vectors_cleared"); cleared != 1 || b.read(regmap.AggregatorOccupied) != 0 {
		t.Errorf("a flush cleared %d", cleared)
	}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

// inspectsPartials checks the inspected state of the one waiting update, from worker 5 in cluster 1.
func (b *bench) inspectsPartials(t *testing.T) {
	if err := b.Write32(regmap.AggregatorInspectIndex, 0); !errors.Is(err, fpga.ErrRefused) {
		t.Errorf("inspected while running: %v", err)
	}
	b.write(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze)
	b.write(regmap.AggregatorInspectIndex, 0)
	got := []uint32{
		b.read(regmap.AggregatorInspectState), b.read(regmap.AggregatorInspectIdentity), b.read(regmap.AggregatorInspectSize),
		b.read(regmap.AggregatorInspectSegment), b.read(regmap.AggregatorInspectGeneration), b.read(regmap.AggregatorInspectSince),
	}
	start := b.read(regmap.GeneratorStartCycle)
	if d := cmp.Diff([]uint32{1, 1<<16 | 5, 1, 1, 2400, start + 600}, got); d != "" {
		t.Error(d)
	}
	b.write(regmap.AggregatorInspectIndex, 1)
	if s := b.read(regmap.AggregatorInspectState); s != 0 {
		t.Errorf("a second partial sum: %#x", s)
	}
	b.write(regmap.QueueControl, regmap.QueueControlEnable)
}

// TestOccupiedSlotsIntegral checks the integral of occupied slots and the cycles that it covers: from the first update
// to the latest, and from a clear to a flush. The next update ends the time in which the table was empty, and a clear
// of an empty table does not start a new one.
func TestOccupiedSlotsIntegral(t *testing.T) {
	b := newSummingBench(t, newTables(1, 2), 2, 8, 20)
	b.loadFlows(1, 2, nil)
	var ds []regmap.Descriptor
	for i, at := range []uint64{100, 600, 900} { // one sum, and half of one
		ds = append(ds, regmap.Descriptor{Time: at, Flow: uint16(i % 2), Sequence: uint32(i)})
	}
	b.loadDescriptors(ds...)
	b.start()
	b.finish()
	hold := func(when string, slots, cycles uint64) {
		t.Helper()
		if got := b.frontOwn(); got.OccupancyIntegral != slots || got.OccupancyCycles != cycles {
			t.Errorf("%s: %d segment cycles in %d cycles, want %d in %d", when, got.OccupancyIntegral, got.OccupancyCycles, slots,
				cycles)
		}
		b.sleep(olaf.Microsecond)
	}
	hold("after the latest update", 500, 800)
	hold("1 µs later", 500, 800)
	b.write(regmap.CommonCommand, regmap.CommonCommandClear|regmap.CommonCommandSnapshot)
	b.sleep(olaf.Microsecond)
	b.write(regmap.QueueCommand, regmap.QueueCommandFlush)
	b.sleep(olaf.Microsecond)
	hold("from a clear to a flush 1 µs later", 250, 250)
	b.write(regmap.QueueCommand, regmap.QueueCommandFlush)
	hold("after a flush of nothing", 250, 250)
	b.write(regmap.CommonCommand, regmap.CommonCommandClear|regmap.CommonCommandSnapshot)
	b.sleep(olaf.Microsecond)
	b.start()
	b.finish()
	hold("after a clear with nothing held, and the same again", 500, 800)
}

// TestSumsThatFindNoSlot checks that sums dropped by a full queue are counted in contributions.
func TestSumsThatFindNoSlot(t *testing.T) {
	b := newSummingBench(t, newTables(1, 2), 2, 1, 1)
	b.loadFlows(1, 2, nil)
	b.loadDescriptors(burst(8, 2, 10)...)
	b.start()
	b.finish()
	c := b.count()
	front, err := regmap.ReadAggregatorCounters(b)
	if err != nil {
		t.Fatal(err)
	}
	if c.In != 4 || c.DroppedFull != 3 || c.DeliveredUpdates != 2 || front.DroppedVectors != 6 {
		t.Errorf("in %d, dropped %d, delivered %d updates, dropped %d", c.In, c.DroppedFull, c.DeliveredUpdates, front.DroppedVectors)
	}
}

// TestClusterWithoutSegment checks that an update of a cluster without a segment bypasses the program and raises the
// error bit for the cluster's range.
func TestClusterWithoutSegment(t *testing.T) {
	tables := newTables(1, 1)
	for a := range tables.workers {
		tables.workers[a] = [2]uint16{builtSegments, 0}
	}
	b := newSummingBench(t, tables, 1, 8, 20)
	b.loadFlows(1, 1, nil)
	b.loadDescriptors(regmap.Descriptor{})
	b.start()
	b.finish()
	if c := b.count(); c.Bypassed != 1 || c.In != 0 || b.read(regmap.QueueErrors)&regmap.QueueErrorsClusterRange == 0 {
		t.Errorf("bypassed %d, in %d", c.Bypassed, c.In)
	}
}

// TestTwinAgreesWithTheProgramAlone plays random traffic, with freezes, flushes and clears. It checks departures in
// runs without these against a plain loop over program and port.
func TestTwinAgreesWithTheProgramAlone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawTraffic(rt)
		h := rapid.IntRange(1, 6).Draw(rt, "h")
		b := rapidBench(t, rt, Config{Tables: c.tables(), Programs: []program.Description{summing},
			Wire: rapid.Bool().Draw(rt, "wire")})
		b.write(regmap.QueueControl, 0)
		b.write(regmap.AggregatorProgram, summing.Code)
		b.write(regmap.AggregatorH, uint32(h))
		c.programme(b)
		disturbed := rapid.Bool().Draw(rt, "disturbed")
		var got []olaf.Observation
		for range rapid.IntRange(0, 6).Draw(rt, "slices") {
			b.sleep(olaf.Duration(rapid.IntRange(0, 20_000_000).Draw(rt, "slice")))
			got = append(got, copied(b.Drain(nil))...)
			if disturbed {
				rapid.SampledFrom([]func(){
					func() { b.write(regmap.QueueCommand, regmap.QueueCommandFlush) },
					func() { b.write(regmap.AggregatorCommand, regmap.AggregatorCommandClear) },
					func() { b.write(regmap.CommonCommand, regmap.CommonCommandClear|regmap.CommonCommandSnapshot) },
					func() { b.write(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze) },
					func() { b.write(regmap.QueueControl, regmap.QueueControlEnable) },
				}).Draw(rt, "disturbance")()
			}
		}
		b.write(regmap.QueueControl, regmap.QueueControlEnable)
		b.finish()
		got = append(got, copied(b.Drain(nil))...)
		if disturbed {
			return // the identities were checked all along
		}
		if d := cmp.Diff(c.summed(rt, h), got); d != "" {
			rt.Fatal(d)
		}
	})
}

// summed is like reference, with the program in front of the queue.
func (c *traffic) summed(t *rapid.T, h int) []olaf.Observation {
	var front *aggregator.Aggregator
	return c.played(t, func(out *engine.Port, at olaf.Time, u *olaf.Update) {
		if front == nil {
			up := func(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) {
				out.OfferMerged(now, u, nil, inside)
			}
			var err error
			if front, err = aggregator.New(&summing, aggregator.Config{Clusters: 64, H: h, Up: up}); err != nil {
				t.Fatal(err)
			}
		}
		front.Offer(at, u, 0, nil)
	})
}

// TestSegments checks that the partial sums read from registers are those that the twin has. A running queue is not
// inspected, and a disabled one is frozen only meanwhile.
func TestSegments(t *testing.T) {
	b := newSummingBench(t, newTables(2, 3), 3, 8, 20)
	b.loadFlows(2, 3, nil)
	var ds []regmap.Descriptor
	for i, flow := range []uint16{0, 3, 1, 4} { // two of each cluster
		ds = append(ds, regmap.Descriptor{Time: uint64(100 * i), Flow: flow, Sequence: uint32(i)})
	}
	b.loadDescriptors(ds...)
	b.start()
	b.finish()
	if _, err := fpga.ReadSegments(b.Twin); !errors.Is(err, fpga.ErrRunning) || !strings.Contains(err.Error(), "freeze=1 -d twin:") {
		t.Errorf("of a queue that runs: %v", err)
	}
	for _, look := range []struct {
		control uint32
		read    func(fpga.Device) (fpga.Segments, error)
	}{
		{regmap.QueueControlEnable, fpga.FreezeAndReadSegments}, // the engine is frozen for the duration of the read
		{regmap.QueueControlEnable | regmap.QueueControlFreeze, fpga.ReadSegments},
		{0, fpga.ReadSegments},
	} {
		control := look.control
		b.write(regmap.QueueControl, control)
		got, err := look.read(b.Twin)
		if err != nil {
			t.Fatal(err)
		}
		known := b.Table()
		if got.Program != summing.Code || got.H != 3 || got.Built != known.Slots || len(got.Held) != 2 || len(known.Held) != 2 {
			t.Fatalf("%+v, the twin says %+v", got, known)
		}
		for i, s := range got.Held {
			k := &known.Held[i]
			newest := k.Inside[len(k.Inside)-1]
			if s.Cluster != k.Cluster || s.Seg != k.Seg || s.Count != 2 || k.Count != 2 || s.Newest != newest.Worker ||
				s.GenNS != newest.GenNS || s.Since != uint64(cycleOf(k.Since)) {
				t.Errorf("%+v, the twin says %+v", s, k)
			}
		}
		if now, err := b.Read32(regmap.QueueControl); err != nil || now != control {
			t.Errorf("the control register is %#x after, %v", now, err)
		}
	}
	if _, err := fpga.ReadSegments(newBench(t, Config{Tables: newTables(2, 3)}).Twin); !errors.Is(err, fpga.ErrRefused) {
		t.Errorf("without the block: %v", err)
	}
}

// olderMap is a card with an older map, which has no registers from an address on.
type olderMap struct {
	*bench
	version, end uint32
}

func (o olderMap) Read32(addr uint32) (uint32, error) {
	if addr == regmap.AggregatorVersion {
		return o.version, nil
	}
	if addr >= o.end {
		return regmap.Placeholder, fpga.ErrAddress
	}
	return o.bench.Read32(addr)
}

// TestIntegralOfOlderMap checks that registers that an older card lacks are not read.
func TestIntegralOfOlderMap(t *testing.T) {
	b := newSummingBench(t, newTables(1, 2), 2, 8, 20)
	b.loadFlows(1, 2, nil)
	b.loadDescriptors(regmap.Descriptor{}, regmap.Descriptor{Time: 500, Flow: 1})
	b.start()
	b.finish()
	for name, c := range map[string]struct {
		fpga.Device
		slots, cycles uint64
	}{
		"today's": {b, 500, 500},
		"map 1.3": {olderMap{b, 1<<24 | 3<<16, regmap.AggregatorOccupancyCycles}, 500, 0},
		"map 1.2": {olderMap{b, 1<<24 | 2<<16, regmap.AggregatorOccupancyIntegral}, 0, 0},
	} {
		got, err := fpga.SnapshotProgram(c.Device)
		if a := &got.Aggregator; err != nil || a.OccupancyIntegral != c.slots || a.OccupancyCycles != c.cycles ||
			got.MostSegments != 1 {
			t.Errorf("%s: %d segment cycles in %d, %d at most, %v; want %d in %d", name, a.OccupancyIntegral, a.OccupancyCycles,
				got.MostSegments, err, c.slots, c.cycles)
		}
	}
}
