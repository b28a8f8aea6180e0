package twin

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestFrameCounters checks which counter counts a frame of each kind.
func TestFrameCounters(t *testing.T) {
	cases := []struct {
		name   string
		flags  uint16
		change func(f *regmap.Flow)
		off    bool // the queue is disabled
		want   regmap.QueueCounters
	}{
		{name: "known", want: regmap.QueueCounters{In: 1, Appended: 1, DeliveredFrames: 1, DeliveredUpdates: 1}},
		{name: "retransmission", flags: regmap.FlagRetransmission,
			want: regmap.QueueCounters{In: 1, Appended: 1, DeliveredFrames: 1, DeliveredUpdates: 1}},
		{name: "bad checksum", flags: regmap.FlagBadChecksum, want: regmap.QueueCounters{Malformed: 1}},
		{name: "bad length", flags: regmap.FlagBadLength, want: regmap.QueueCounters{Malformed: 1}},
		{name: "not OLAF", flags: regmap.FlagNotOlaf, want: regmap.QueueCounters{Bypassed: 1}},
		{name: "not OLAF and bad", flags: regmap.FlagNotOlaf | regmap.FlagBadChecksum, want: regmap.QueueCounters{Bypassed: 1}},
		{name: "another port", change: func(f *regmap.Flow) { f.DestPort = 53 }, want: regmap.QueueCounters{Bypassed: 1}},
		{name: "unknown source", change: func(f *regmap.Flow) { f.SourceIP = [4]byte{8, 8, 8, 8} },
			want: regmap.QueueCounters{Bypassed: 1}},
		{name: "claims another cluster", change: func(f *regmap.Flow) { f.Cluster = 9 },
			want: regmap.QueueCounters{In: 1, Appended: 1, DeliveredFrames: 1, DeliveredUpdates: 1, Misidentified: 1}},
		{name: "claims another worker", change: func(f *regmap.Flow) { f.Worker = 9 },
			want: regmap.QueueCounters{In: 1, Appended: 1, DeliveredFrames: 1, DeliveredUpdates: 1, Misidentified: 1}},
		{name: "beyond the built clusters", change: func(f *regmap.Flow) { f.SourceIP = [4]byte{10, 99, 0, 0} },
			want: regmap.QueueCounters{Bypassed: 1}},
		{name: "disabled", off: true, want: regmap.QueueCounters{LostBeforeEngine: 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tables := newTables(4, 1)
			tables.workers[netip.MustParseAddr("10.99.0.0")] = [2]uint16{16, 0}
			b := newBench(t, Config{Tables: tables, Clusters: 16})
			b.configure(smart, 8, 20)
			if c.off {
				b.write(regmap.QueueControl, 0)
			}
			b.loadFlows(1, 1, func(_ int, f *regmap.Flow) {
				if c.change != nil {
					c.change(f)
				}
			})
			b.loadDescriptors(regmap.Descriptor{Flags: c.flags})
			b.start()
			b.finish()
			got := b.count()
			want := c.want
			want.InBytes, want.DeliveredBytes = 256*want.In, 256*want.DeliveredFrames
			got.SnapshotCycle, got.CoveredCycles, got.BusyCycles, got.OccupancyIntegral = 0, 0, 0, 0
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			for _, o := range b.Drain(nil) {
				if o.Update.Cluster != 0 || o.Update.Worker != 0 {
					t.Errorf("delivered as %d/%d, the tables say 0/0", o.Update.Cluster, o.Update.Worker)
				}
				if (o.Update.Flags&olaf.Retransmission != 0) != (c.flags&regmap.FlagRetransmission != 0) {
					t.Errorf("flags %v", o.Update.Flags)
				}
			}
			beyond := c.name == "beyond the built clusters"
			if set := b.read(regmap.QueueErrors)&regmap.QueueErrorsClusterRange != 0; set != beyond {
				t.Errorf("queue.errors.cluster_range = %v", set)
			}
			if wrong := b.read(regmap.QueueErrors) == regmap.QueueErrorsClusterRange &&
				b.read(regmap.CommonErrors)&regmap.CommonErrorsQueue != 0; wrong != beyond {
				t.Errorf("queue.errors %#x, common.errors %#x", b.read(regmap.QueueErrors), b.read(regmap.CommonErrors))
			}
		})
	}
}

func TestRegroupingUnderLoad(t *testing.T) {
	tables := newTables(2, 1)
	b := newBench(t, Config{Tables: tables})
	b.configure(fifo, 64, 64)
	b.loadFlows(2, 1, nil)
	b.loadDescriptors(burst(300, 2, 100)...) // 120 µs
	b.start()
	b.sleep(40 * olaf.Microsecond)
	tables.workers[netip.AddrFrom4(workerIP(0, 0))] = [2]uint16{1, 7}
	tables.version++
	b.sleep(40 * olaf.Microsecond)
	delete(tables.workers, netip.AddrFrom4(workerIP(1, 0)))
	tables.version++
	b.finish()
	c := b.count()
	var seen [2][2]int // flow, cluster
	for _, o := range b.Drain(nil) {
		flow := 0
		if o.Update.Worker == 1 {
			flow = 1
		}
		seen[flow][o.Update.Cluster]++
	}
	// Arrivals up to and including 40 µs are packets 0…100; flow 0 has the even ones.
	if seen != [2][2]int{{51, 99}, {0, 100}} {
		t.Errorf("delivered by flow and cluster %v", seen)
	}
	if c.Bypassed != 50 || c.Misidentified != 99 || c.In != 250 {
		t.Errorf("bypassed %d, misidentified %d, in %d", c.Bypassed, c.Misidentified, c.In)
	}
}

func TestDisablingDrains(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(4, 1)})
	b.configure(fifo, 8, 1)
	b.loadFlows(4, 1, nil)
	b.loadDescriptors(burst(8, 4, 100)...)
	b.start()
	b.sleep(1300 * olaf.Nanosecond) // four arrivals, one delivery
	b.write(regmap.QueueControl, 0)
	if s := b.read(regmap.QueueStatus); s != regmap.QueueStatusDraining {
		t.Errorf("status %#x", s)
	}
	if err := b.Write32(regmap.QueueDepth, 4); !errors.Is(err, fpga.ErrRefused) {
		t.Errorf("depth while draining: %v", err)
	}
	b.finish()
	b.write(regmap.QueueDepth, 4)
	if c := b.count(); c.In != 4 || c.DeliveredFrames != 4 || c.LostBeforeEngine != 4 {
		t.Errorf("in %d, delivered %d, lost %d", c.In, c.DeliveredFrames, c.LostBeforeEngine)
	}
	// Counters survive the rebuilding of the queue.
	b.write(regmap.QueueControl, regmap.QueueControlEnable)
	if c := b.count(); c.In != 4 || c.DeliveredFrames != 4 {
		t.Errorf("after rebuilding: in %d, delivered %d", c.In, c.DeliveredFrames)
	}
}

func TestFreezeStopsTheQueuesClock(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(3, 1)})
	b.configure(smart, 8, 1) // a frame takes 256 cycles
	b.loadFlows(3, 1, nil)
	ds := []regmap.Descriptor{{Time: 0, Flow: 0}, {Time: 10, Flow: 1, Reward: 5}, {Time: 20, Flow: 1, Reward: 6, Sequence: 1},
		{Time: 30, Flow: 2}, {Time: 150, Flow: 2, Sequence: 1}}
	b.loadDescriptors(ds...)
	b.start()
	b.sleep(100 * olaf.Cycle)
	b.write(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze)
	wantInside := []struct{ state, identity, size, sequence, appended uint32 }{
		{regmap.QueueInspectStateValid | regmap.QueueInspectStateLeaving, 0, 48<<16 | 1, 0, 0},
		{regmap.QueueInspectStateValid, 1<<16 | 1, 48<<16 | 1, 1, 10},
		{regmap.QueueInspectStateValid, 2<<16 | 2, 48<<16 | 1, 0, 30},
		{0, 0, 0, 0, 0},
	}
	for i, w := range wantInside {
		b.write(regmap.QueueInspectIndex, uint32(i))
		got := [...]uint32{b.read(regmap.QueueInspectState), b.read(regmap.QueueInspectIdentity), b.read(regmap.QueueInspectSize),
			b.read(regmap.QueueInspectSequence), b.read(regmap.QueueInspectAppended)}
		if got != [...]uint32{w.state, w.identity, w.size, w.sequence, w.appended} {
			t.Errorf("slot %d: %#x, want %#x", i, got, w)
		}
	}
	b.sleep(101 * olaf.Cycle) // frozen for 100 cycles and one
	b.write(regmap.QueueControl, regmap.QueueControlEnable)
	b.finish()
	var at, queued []int64
	for _, o := range b.Drain(nil) {
		at = append(at, int64(o.At)/int64(olaf.Cycle))
		queued = append(queued, int64(o.Queued/olaf.Cycle))
	}
	// Without the freeze the three leave at 256, 512 and 768.
	if d := cmp.Diff([]int64{356, 612, 868}, at); d != "" {
		t.Errorf("departures: %s", d)
	}
	if d := cmp.Diff([]int64{356, 602, 838}, queued); d != "" {
		t.Errorf("queued: %s", d)
	}
	if c := b.count(); c.LostBeforeEngine != 1 || c.Replaced != 1 || c.OccupancyIntegral != 356+602+838 {
		t.Errorf("lost %d, replaced %d, integral %d", c.LostBeforeEngine, c.Replaced, c.OccupancyIntegral)
	}
}

func TestFlushAndClearKeepTheIdentities(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(8, 1)})
	b.configure(smart, 8, 1)
	b.loadFlows(8, 1, nil)
	b.loadDescriptors(burst(16, 8, 50)...)
	b.start()
	b.sleep(420 * olaf.Cycle) // arrivals 0…8: one left, one is leaving, six wait; the ninth was appended, its cluster had left
	if p := b.read(regmap.QueuePeakOccupancy); p != 8 {
		t.Errorf("peak %d before clear", p)
	}
	b.write(regmap.CommonCommand, regmap.CommonCommandClear)
	c := b.count()
	if c.CarriedFrames != 8 || c.QueuedFrames != 8 || c.In != 0 || c.OccupancyIntegral != 0 {
		t.Errorf("after clear: %+v", c)
	}
	if p := b.read(regmap.QueuePeakOccupancy); p != 8 {
		t.Errorf("peak %d", p)
	}
	b.sleep(10 * olaf.Cycle)
	b.write(regmap.QueueCommand, regmap.QueueCommandFlush)
	b.sleep(0)
	if c = b.count(); c.OccupancyIntegral != 80 {
		t.Errorf("eight updates for ten cycles are %d slot cycles", c.OccupancyIntegral)
	}
	if c = b.count(); c.FlushedFrames != 8 || c.FlushedUpdates != 8 || c.QueuedFrames != 0 {
		t.Errorf("after flush: %+v", c)
	}
	b.finish()
	c = b.count()
	if c.In != 7 || c.Appended+c.CarriedFrames != c.DeliveredFrames+c.FlushedFrames {
		t.Errorf("at the end: %+v", c)
	}
	b.write(regmap.QueueClusterIndex, 1)
	if n := b.read(regmap.QueueClusterIn); n != 1 {
		t.Errorf("cluster 1 has in = %d since the clear", n)
	}
	if n := b.read(regmap.QueueClusterDeliveredFrames); n != 1 {
		t.Errorf("cluster 1 has delivered %d since the clear", n)
	}
}

func TestResetInTheMiddleOfARun(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(4, 1)})
	b.configure(smart, 8, 1)
	b.loadFlows(4, 1, nil)
	b.loadDescriptors(burst(100, 4, 10)...)
	b.write(regmap.ModelControl, regmap.ModelControlAck)
	b.start()
	b.sleep(500 * olaf.Cycle)
	before := b.read(regmap.CommonCycles)
	b.write(regmap.CommonCommand, regmap.CommonCommandReset)
	b.sleep(olaf.Millisecond)
	if b.read(regmap.GeneratorState) != uint32(idle) || b.read(regmap.QueueStatus) != regmap.QueueStatusEmpty {
		t.Error("still at work after reset")
	}
	if c := b.count(); c.In != 0 || c.AcksIn != 0 || c.DeliveredFrames != 0 {
		t.Errorf("counters after reset: %+v", c)
	}
	if b.read(regmap.CommonCycles) <= before {
		t.Error("time went back")
	}
}

func TestGeneratorPacing(t *testing.T) {
	cases := []struct {
		name       string
		ds         []regmap.Descriptor
		stopAfter  uint32
		generation []uint64 // ns
		late, max  uint64
		sum        uint64
	}{
		{"in time", []regmap.Descriptor{{Time: 0}, {Time: 4}, {Time: 1000}}, 0, []uint64{0, 16, 4000}, 0, 0, 0},
		{"the bus moves 64 B a cycle", []regmap.Descriptor{{Time: 5}, {Time: 5}, {Time: 6, Length: 64}, {Time: 7}}, 0,
			[]uint64{20, 36, 52, 56}, 3, 7, 4 + 7 + 7},
		{"stop after two", []regmap.Descriptor{{Time: 1}, {Time: 10}, {Time: 20}}, 2, []uint64{4, 40}, 0, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, Config{Tables: newTables(1, 1)})
			b.configure(fifo, 8, 64)
			b.loadFlows(1, 1, nil)
			b.loadDescriptors(c.ds...)
			b.write(regmap.GeneratorStopAfter, c.stopAfter)
			b.sleep(77 * olaf.Nanosecond) // the run clock starts at 0 regardless of the card's time
			b.start()
			b.finish()
			var got []uint64
			for _, o := range b.Drain(nil) {
				got = append(got, o.Update.GenNS)
			}
			if d := cmp.Diff(c.generation, got); d != "" {
				t.Error(d)
			}
			b.write(regmap.CommonCommand, regmap.CommonCommandSnapshot)
			g, err := regmap.ReadGeneratorCounters(b)
			if err != nil || g.LatePackets != c.late || g.LateCyclesMax != c.max || g.LateCyclesSum != c.sum {
				t.Errorf("late %+v, %v", g, err)
			}
		})
	}
}

// TestGenerationWraps sends packets at and next to the three times at which 48 bits of nanoseconds wrap within a run,
// and at the last cycle that a descriptor can name. It checks that stamps restart at each wrap, in updates and packets,
// and that ages continue.
func TestGenerationWraps(t *testing.T) {
	const wrap = uint64(olaf.GenModulus) / 4 // cycles
	for _, ports := range []int{0, 1, 2} {
		b := newBench(t, Config{Tables: newTables(1, 1), Wire: true, ReadPorts: ports})
		b.Record(true)
		b.configure(fifo|regmap.QueueModeProvenance, 8, 64)
		b.loadFlows(1, 1, func(_ int, f *regmap.Flow) { f.Length = 64 })
		var ds []regmap.Descriptor
		var want []uint64
		for k := uint64(1); k <= 4; k++ {
			for i, after := range []uint64{4*wrap - 4, 0, 4} { // ns
				if at := k*wrap + uint64(i) - 1; at <= regmap.MaxDescriptorTime {
					ds, want = append(ds, regmap.Descriptor{Time: at, Sequence: uint32(len(ds))}), append(want, after)
				}
			}
		}
		b.loadDescriptors(ds...)
		b.sleep(77 * olaf.Nanosecond) // the run clock starts at 0 regardless of the card's time
		b.start()
		b.sleep(olaf.Microsecond) // every check is after a wrap, when nothing is in progress
		var stamps, inside, sent []uint64
		for range 4 {
			b.sleep(olaf.Duration(wrap) * olaf.Cycle)
			for _, o := range b.Drain(nil) {
				stamps = append(stamps, o.Update.GenNS)
				for _, c := range o.Contributors {
					inside = append(inside, c.GenNS)
				}
				if age := (uint64(o.At.NS()) - o.Update.GenNS) % olaf.GenModulus; age > 100 {
					t.Errorf("%d ports: an update is %d ns old", ports, age)
				}
			}
			for _, p := range b.DrainPackets(nil) {
				sent = append(sent, p.Update.GenNS)
			}
		}
		for what, got := range map[string][]uint64{"updates": stamps, "contributors": inside, "packets": sent} {
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%d ports, %s: %s", ports, what, d)
			}
		}
	}
}

func TestRunsFollowOneAnother(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(2, 1)})
	b.configure(smart, 8, 20)
	b.loadFlows(2, 1, nil)
	b.loadDescriptors(burst(50, 2, 7)...)
	var first []olaf.Observation
	for range 3 {
		b.start()
		b.finish()
		got := b.Drain(nil)
		if first == nil {
			first = got
		}
		if d := cmp.Diff(first, got); d != "" {
			t.Fatal(d)
		}
		b.sleep(123457 * olaf.Nanosecond)
	}
}

func TestAcksCarryTheQueuesStatus(t *testing.T) {
	tables := newTables(2, 2)
	b := newBench(t, Config{Tables: tables, Wire: true})
	b.configure(smart, 8, 1)
	b.write(regmap.ModelControl, regmap.ModelControlAck)
	b.write(regmap.ModelAckDelay, 44)
	b.loadFlows(2, 2, nil)
	// Cluster 0 leaves at 256. When its ACK passes at 300, two clusters are inside: 1 is leaving and 0 is waiting
	// again, merged.
	b.loadDescriptors(regmap.Descriptor{Time: 0, Flow: 0}, regmap.Descriptor{Time: 10, Flow: 2},
		regmap.Descriptor{Time: 20, Flow: 0, Sequence: 1},
		regmap.Descriptor{Time: 280, Flow: 1})
	b.start()
	b.finish()
	b.finish()
	var acks []Packet
	for _, p := range b.DrainPackets(nil) {
		if p.Kind == Ack {
			acks = append(acks, p)
		}
	}
	if len(acks) != 6 {
		t.Fatalf("%d copies of 3 ACKs to 2 workers each", len(acks))
	}
	for i, want := range []struct {
		cycle  int64
		worker olaf.WorkerID
		status olaf.QueueStatus
	}{{300, 0, olaf.QueueStatus{Occupancy: 2, ActiveClusters: 2, Slots: 8}},
		{300, 1, olaf.QueueStatus{Occupancy: 2, ActiveClusters: 2, Slots: 8}},
		{556, 2, olaf.QueueStatus{Occupancy: 1, ActiveClusters: 1, Slots: 8}},
		{556, 3, olaf.QueueStatus{Occupancy: 1, ActiveClusters: 1, Slots: 8}},
		{812, 0, olaf.QueueStatus{Occupancy: 0, ActiveClusters: 0, Slots: 8}},
		{812, 1, olaf.QueueStatus{Occupancy: 0, ActiveClusters: 0, Slots: 8}}} {
		a := acks[i]
		if a.At != cycleTime(want.cycle) || a.Update.Worker != want.worker || a.Status != want.status {
			t.Errorf("ack %d: at cycle %d to %d with %+v, want %+v", i, cycleOf(a.At), a.Update.Worker, a.Status, want)
		}
		if a.Addresses.SourceIP != serverIP || a.Addresses.DestPort != olaf.UDPPort {
			t.Errorf("ack %d: addresses %+v", i, a.Addresses)
		}
	}
	if c := b.count(); c.AcksIn != 3 || c.AcksOut != 6 || c.AcksNoGroup != 0 {
		t.Errorf("acks in %d, out %d, without group %d", c.AcksIn, c.AcksOut, c.AcksNoGroup)
	}
}

// TestAcksPrecedeArrivals checks the order if an update arrives in the cycle in which an ACK passes VNP4-2.
func TestAcksPrecedeArrivals(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(2, 1), Wire: true})
	b.configure(smart, 8, 1)
	b.write(regmap.ModelControl, regmap.ModelControlAck)
	b.write(regmap.ModelAckDelay, 44)
	b.loadFlows(2, 1, nil)
	b.loadDescriptors(regmap.Descriptor{Time: 0, Flow: 0}, regmap.Descriptor{Time: 300, Flow: 1})
	b.start()
	b.finish()
	for _, p := range b.DrainPackets(nil) {
		if p.Kind == Ack && p.At == cycleTime(300) && p.Status.Occupancy != 0 {
			t.Errorf("the ACK saw the later arrival: %+v", p.Status)
		}
	}
}

// TestManyAcksKeepTheirOrder checks the order of far more ACKs than the ring holds at first, while the delay is
// shortened.
func TestManyAcksKeepTheirOrder(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(1, 1), Wire: true})
	b.configure(fifo, 8, 64)
	b.write(regmap.ModelControl, regmap.ModelControlAck)
	b.write(regmap.ModelAckDelay, 500)
	b.loadFlows(1, 1, nil)
	b.loadDescriptors(burst(400, 1, 8)...)
	b.start()
	b.sleep(2500 * olaf.Cycle)
	b.write(regmap.ModelAckDelay, 50)
	b.finish()
	next := uint32(0)
	for _, p := range b.DrainPackets(nil) {
		if p.Kind != Ack {
			continue
		}
		sent := int64(8*next) + 4 // plus four cycles on the way out
		if due := max(sent+50, min(sent+500, 3000)); p.Update.Seq != next || cycleOf(p.At) < sent+50 || sent < 2000 &&
			cycleOf(p.At) != due {
			t.Fatalf("ack of %d at cycle %d, want %d at %d", p.Update.Seq, cycleOf(p.At), next, due)
		}
		next++
	}
	if next != 400 {
		t.Errorf("%d ACKs", next)
	}
}

// TestRearmingLeavesFramesInsideAlone loads new flows while an update of an old flow is still in the queue, and checks
// that the update keeps its addresses.
func TestRearmingLeavesFramesInsideAlone(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(1, 1), Wire: true})
	b.configure(fifo, 8, 1)
	b.loadFlows(1, 1, func(_ int, f *regmap.Flow) { f.SourcePort = 1111 })
	b.loadDescriptors(regmap.Descriptor{})
	b.start()
	b.sleep(100 * olaf.Cycle)
	b.loadFlows(1, 1, func(_ int, f *regmap.Flow) { f.SourcePort = 2222 })
	b.start()
	b.finish()
	var ports []uint16
	for _, p := range b.DrainPackets(nil) {
		ports = append(ports, p.Addresses.SourcePort)
	}
	if d := cmp.Diff([]uint16{1111, 2222}, ports); d != "" {
		t.Error(d)
	}
}

func TestContributorsLiveUntilTheNextDrain(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(1, 2)})
	b.configure(smart|regmap.QueueModeProvenance, 8, 1)
	b.loadFlows(1, 2, nil)
	b.loadDescriptors(burst(100, 2, 100)...)
	b.start()
	b.finish()
	b.Drain(nil) // so that the arenas have room
	b.start()
	b.finish()
	first := b.Drain(nil)
	kept := copied(append([]olaf.Observation(nil), first...))
	b.loadDescriptors(burst(100, 1, 90)...)
	b.start()
	b.finish()
	if d := cmp.Diff(kept, first); d != "" {
		t.Error(d)
	}
}

func TestCyclesAreSixtyFourBits(t *testing.T) {
	b := newBench(t, Config{})
	b.sleep(20 * olaf.Second)
	if got, err := regmap.Read64(b, regmap.CommonCycles); err != nil || got != 5_000_000_000 {
		t.Errorf("%d cycles in 20 s, %v", got, err)
	}
}

func TestAcksWithoutGroup(t *testing.T) {
	cases := []struct {
		name         string
		prepare      func(b *bench, tables *fakeTables)
		out, noGroup uint64
	}{
		{"by the tables", func(*bench, *fakeTables) {}, 2, 0},
		{"no group", func(_ *bench, f *fakeTables) { delete(f.groups, 0) }, 0, 1},
		{"by the replication block", func(b *bench, f *fakeTables) {
			delete(f.groups, 0)
			b.write(regmap.ReplicationGroupIndex, 0)
			b.write(regmap.ReplicationGroupSize, 3)
		}, 3, 0},
		{"unknown server", func(b *bench, _ *fakeTables) {
			b.loadFlows(1, 2, func(_ int, f *regmap.Flow) { f.DestIP = [4]byte{1, 2, 3, 4} })
		}, 0, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tables := newTables(1, 2)
			b := newBench(t, Config{Tables: tables})
			b.configure(smart, 8, 20)
			b.write(regmap.ModelControl, regmap.ModelControlAck)
			b.loadFlows(1, 2, nil)
			b.loadDescriptors(regmap.Descriptor{})
			c.prepare(b, tables)
			b.start()
			b.finish()
			if n := b.count(); n.AcksIn != 1 || n.AcksOut != c.out || n.AcksNoGroup != c.noGroup {
				t.Errorf("in %d, out %d, without group %d", n.AcksIn, n.AcksOut, n.AcksNoGroup)
			}
		})
	}
}

// heldTables answer from the state at the last call of Version, as an agent's tables do.
type heldTables struct {
	*fakeTables
	newest *fakeTables
}

func (h *heldTables) Version() uint64 {
	h.fakeTables = h.newest
	return h.version
}

// TestAcksFindTheNewestTables checks that an answer that passes after a change of the tables uses the new group,
// although no frame has looked them up since.
func TestAcksFindTheNewestTables(t *testing.T) {
	tables := &heldTables{newest: newTables(1, 2)}
	b := newBench(t, Config{Tables: tables})
	b.configure(smart, 8, 20)
	b.write(regmap.ModelControl, regmap.ModelControlAck)
	b.write(regmap.ModelAckDelay, 1000)
	b.loadFlows(1, 2, nil)
	b.loadDescriptors(regmap.Descriptor{})
	b.start()
	if err := b.Sleep(t.Context(), 500*olaf.Cycle); err != nil {
		t.Fatal(err)
	}
	if n := b.count(); n.AcksIn != 0 {
		t.Fatal("the answer has passed")
	}
	tables.newest = newTables(1, 5)
	tables.newest.version = 2
	b.finish()
	if n := b.count(); n.AcksIn != 1 || n.AcksOut != 5 {
		t.Errorf("in %d, out %d, want a copy for each of the 5 workers", n.AcksIn, n.AcksOut)
	}
}

func TestWireCarriesLanes(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(2, 2), Wire: true})
	if b.read(regmap.CommonCapabilities)&regmap.CommonCapabilitiesLanes == 0 {
		t.Error("the capability is not shown")
	}
	b.configure(smart, 8, 1)
	b.loadFlows(2, 2, func(i int, f *regmap.Flow) {
		f.Length = 72
		f.SourceMAC[5] = byte(i)
		if i >= 2 {
			f.Template = 1
		}
	})
	template := make([]uint32, regmap.TemplateWords)
	template[0], template[1] = 7, 0xFFFFFFFE
	b.write(regmap.GeneratorMemSelect, 2)
	b.write(regmap.GeneratorMemAddress, regmap.TemplateWords)
	if err := b.WriteBurst(regmap.GeneratorMemData, template); err != nil {
		t.Fatal(err)
	}
	b.loadDescriptors(
		regmap.Descriptor{Time: 0, Flow: 0},                              // leaves alone at 72
		regmap.Descriptor{Time: 10, Flow: 2},                             // waits
		regmap.Descriptor{Time: 20, Flow: 0, Sequence: 1},                // waits
		regmap.Descriptor{Time: 30, Flow: 1},                             // merges with it
		regmap.Descriptor{Time: 40, Flow: 3},                             // merges with flow 2's
		regmap.Descriptor{Time: 100, Flow: 3, Flags: regmap.FlagNotOlaf}, // bypasses the queue after the first has left
	)
	b.start()
	b.finish()
	type line struct {
		Cycle int64
		Kind  Kind
		Count uint16
		MAC   byte
		Port  uint16
		Lanes []int32
	}
	var got []line
	for _, p := range b.DrainPackets(nil) {
		got = append(got, line{cycleOf(p.At), p.Kind, p.Update.Count, p.Addresses.SourceMAC[5], p.Addresses.DestPort, p.Lanes})
	}
	want := []line{
		{72, Delivered, 1, 0, 20300, []int32{1 << 16, 1 << 16}},
		{100, Bypassed, 1, 3, 9, []int32{7, -2}},
		{144, Delivered, 2, 3, 20300, []int32{14, -4}},
		{216, Delivered, 2, 1, 20300, []int32{2 << 16, 2 << 16}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestSleepObeysContextAndClose(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(1, 1)})
	b.configure(fifo, 8, 64)
	b.loadFlows(1, 1, nil)
	b.loadDescriptors(burst(5*contextInterval, 1, 10)...)
	b.start()
	ctx, cancel := context.WithCancel(context.Background())
	b.tables.lookup = cancelAfter{newTables(1, 1), cancel, new(int)}
	if err := b.Sleep(ctx, olaf.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if sent := b.counters.generator.SentPackets; sent < 2*contextInterval || sent > 4*contextInterval {
		t.Errorf("%d packets were sent before the context was seen", sent)
	}
	b.finish()
	if err := b.Sleep(context.Background(), olaf.Duration(math.MaxInt64)); !errors.Is(err, fpga.ErrRefused) {
		t.Errorf("beyond the end of time: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := b.Read32(regmap.CommonMagic)
	for _, err := range []error{err, b.Write32(regmap.CommonScratch, 1), b.WriteBurst(regmap.GeneratorMemData, []uint32{1}),
		b.Sleep(ctx, 1)} {
		if !errors.Is(err, fpga.ErrGone) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// cancelAfter cancels the context during the lookup of a frame that comes after the first checks of the context.
type cancelAfter struct {
	*fakeTables
	cancel func()
	n      *int
}

func (c cancelAfter) Version() uint64 {
	if *c.n++; *c.n == 3*contextInterval-100 {
		c.cancel()
	}
	return 1
}
