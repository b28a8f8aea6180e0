package twin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/test/golden"
)

// hearing is an observer that records its events.
type hearing struct{ io.Writer }

func (h hearing) Arrival(at olaf.Time, class engine.Class, slot engine.Slot, u *olaf.Update, inside []olaf.Contributor) {
	fmt.Fprintf(h, "%d arrives %v in %d: %d.%d", at, class, slot, u.Cluster, u.Seq)
	for _, k := range inside {
		fmt.Fprintf(h, " %d.%d", k.Worker, k.Seq)
	}
	fmt.Fprintln(h)
}
func (h hearing) Start(at olaf.Time, slot engine.Slot) { fmt.Fprintf(h, "%d starts %d\n", at, slot) }
func (h hearing) Departure(at olaf.Time, slot engine.Slot, u *olaf.Update) {
	fmt.Fprintf(h, "%d leaves %d: %d.%d of %d\n", at, slot, u.Cluster, u.Seq, u.Count)
}
func (h hearing) Answer(at olaf.Time, o *olaf.Observation) {
	fmt.Fprintf(h, "%d answers %d.%d of %d\n", at, o.Update.Cluster, o.Update.Seq, o.Update.Count)
}

// mixed returns traffic of a few frames of every kind, including flags, for a card with clusters of three.
func mixed(r *rand.Rand, sizes ...uint16) traffic {
	c := traffic{mode: smart | regmap.QueueModeProvenance, depth: 4, increment: uint32(engine.Line) / 5, overhead: 24, dequeue: 2,
		merge: 1, clusters: 3, workers: 3, unlisted: 1,
		delay: 150}
	at := uint64(0)
	for i := range 40 {
		at += []uint64{0, 1, 7, 40}[r.IntN(4)]
		c.descriptors = append(c.descriptors, regmap.Descriptor{Time: at, Flow: uint16(r.IntN(c.clusters * c.workers)),
			Sequence: uint32(i),
			Length:   sizes[r.IntN(len(sizes))], Reward: r.Int32N(800) - 400,
			Flags: []uint16{0, 0, 0, 0, 0, 0, 1, 2, 4, 8}[r.IntN(10)]})
	}
	return c
}

// registers writes every register that differs from a fresh card, with the counters of each cluster and the inspectors'
// contents, if there are any.
func (b *bench) registers(w io.Writer, clusters, inside int) {
	b.Helper()
	b.write(regmap.CommonCommand, regmap.CommonCommandSnapshot)
	b.shown(w, func(name string) bool {
		return !strings.HasPrefix(name, "queue.cluster_") && !strings.Contains(name, ".inspect_") && !strings.Contains(name, ".mem_") &&
			name != "common.build_hash"
	})
	for c := range clusters {
		b.write(regmap.QueueClusterIndex, uint32(c))
		b.shown(w, func(name string) bool { return strings.HasPrefix(name, "queue.cluster_") })
	}
	for i := range inside {
		b.write(regmap.QueueInspectIndex, uint32(i))
		if b.buildsPrograms() {
			b.write(regmap.AggregatorInspectIndex, uint32(i))
		}
		b.shown(w, func(name string) bool { return strings.Contains(name, ".inspect_") })
	}
}

// template sets the first lanes of template 1.
func (b *bench) template(lanes ...int32) {
	b.Helper()
	words := make([]uint32, regmap.TemplateWords)
	for i, v := range lanes {
		words[i] = uint32(v)
	}
	b.write(regmap.GeneratorMemSelect, 2)
	b.write(regmap.GeneratorMemAddress, regmap.TemplateWords)
	if err := b.WriteBurst(regmap.GeneratorMemData, words); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) buildsPrograms() bool { return b.cfg.buildsPrograms() }

func (b *bench) shown(w io.Writer, which func(name string) bool) {
	b.Helper()
	fresh := newBench(b.TB, Config{Clusters: b.cfg.Clusters, ReadPorts: b.cfg.ReadPorts, Programs: b.cfg.Programs, Wire: b.cfg.Wire,
		Unit: b.cfg.Unit})
	for _, block := range regmap.AllBlocks() {
		if block.Base == regmap.AggregatorType && !b.buildsPrograms() {
			continue
		}
		line := ""
		for _, r := range block.Registers {
			for off := uint32(0); off < r.Bytes() && r.Access != regmap.Command && which(block.Name+"."+r.Name); off += 4 {
				if at := block.Base + r.Offset + off; b.read(at) != fresh.read(at) {
					v := b.read(at)
					line += fmt.Sprintf(" %s+%d=%x", r.Name, off, v)
				}
			}
		}
		if line != "" {
			fmt.Fprintf(w, "%s:%s\n", block.Name, line)
		}
	}
}

// TestWholeRuns checks everything visible of cards of every kind over a whole run: all registers in the middle, while
// the queue is frozen and at the end, every departing frame, and an observer's events.
func TestWholeRuns(t *testing.T) {
	summer := []program.Description{summing}
	slow := aggregator.Unit{BusBytes: 32, Beat: 5 * olaf.Nanosecond, Pipeline: 16, Room: 2}
	var b bytes.Buffer
	for i, c := range []struct {
		name   string
		cfg    Config
		mode   uint32
		answer bool
		sizes  []uint16
	}{
		{"plain", Config{}, 0, false, []uint16{0, 64, 300}},
		{"free on start, rewards", Config{}, regmap.QueueModeFreeOnStart | regmap.QueueModeRewardFilter, false, []uint16{0}},
		{"one read port", Config{ReadPorts: 1}, 0, false, []uint16{0, 0, 0, 1500, 65}},
		{"two read ports", Config{ReadPorts: 2}, 0, false, []uint16{0, 0, 0, 1500, 65}},
		{"a program", Config{Programs: summer}, 0, false, []uint16{0}},
		{"a program that answers", Config{Programs: summer}, 0, true, []uint16{0}},
		{"a program that takes its time", Config{Programs: summer, Unit: &slow}, 0, true, []uint16{0}},
		{"one read port in front of a program", Config{ReadPorts: 1, Programs: summer}, 0, false, []uint16{0}},
		{"one read port in front of a program that takes its time", Config{ReadPorts: 1, Programs: summer, Unit: &slow}, 0, false,
			[]uint16{0}},
	} {
		fmt.Fprintf(&b, "== %s\n", c.name)
		load := mixed(rand.New(rand.NewPCG(uint64(i), 14)), c.sizes...)
		load.mode |= c.mode
		load.flow = func(id int, f *regmap.Flow) {
			f.Template, f.Seg, f.SourcePort = uint16(id%2), uint64(id%4/3), uint16(4000+id)
			if id%4 == 2 && len(c.cfg.Programs) > 0 { // use the program's own frame format
				f.Format, f.ToS = uint8(summing.Code), summing.ToS
			}
		}
		cfg := c.cfg
		cfg.Tables, cfg.Clusters, cfg.Wire, cfg.Observer = load.tables(), 64, true, hearing{&b}
		w := newBench(t, cfg)
		pass := func(d olaf.Duration) { // frames on the bus are not counted until they are decided
			if err := w.Sleep(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		if w.buildsPrograms() {
			w.write(regmap.AggregatorProgram, summing.Code)
			w.write(regmap.AggregatorH, 2)
			w.write(regmap.AggregatorSegments, 2)
			w.write(regmap.AggregatorDownlinkIncrement, uint32(engine.Line)/64*5/2)
		}
		if c.answer {
			w.write(regmap.AggregatorResults, regmap.AggregatorResultsToWorkers)
		}
		w.write(regmap.ModelControl, regmap.ModelControlAck)
		w.template(3, -5)
		load.programme(w)
		pass(800 * olaf.Nanosecond)
		w.registers(&b, 0, 0)
		w.write(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze)
		pass(200 * olaf.Nanosecond)
		w.registers(&b, 0, 3)
		w.write(regmap.QueueControl, regmap.QueueControlEnable)
		pass(300 * olaf.Nanosecond)
		if i%2 == 1 {
			w.write(regmap.CommonCommand, regmap.CommonCommandClear)
			w.registers(&b, load.clusters, 0)
			pass(300 * olaf.Nanosecond)
			w.write(regmap.QueueCommand, regmap.QueueCommandFlush)
		}
		pass(100 * olaf.Microsecond)
		w.registers(&b, load.clusters, 0)
		for _, o := range w.Drain(nil) {
			fmt.Fprintf(&b, "%d after %d: %+v of %v\n", o.At, o.Queued, o.Update, o.Contributors)
		}
		for _, p := range w.DrainPackets(nil) {
			fmt.Fprintf(&b, "%d after %d: kind %d by %d, segment %d, tos %d, %d lanes %v, %v, %v:%d to %v:%d, %+v\n", p.At, p.Queued,
				p.Kind, p.Port, p.Seg, p.ToS, len(p.Lanes), p.Lanes[:min(len(p.Lanes), 2)], p.Status,
				p.Addresses.SourceIP, p.Addresses.SourcePort, p.Addresses.DestIP, p.Addresses.DestPort, p.Update)
		}
	}
	golden.Equal(t, "whole.txt", b.Bytes())
}

// TestResetCardEqualsNewCard resets cards of every kind in the middle of a run, lets frames that are on their way pass,
// and checks that the next run has the same results as on a fresh card.
func TestResetCardEqualsNewCard(t *testing.T) {
	slow := aggregator.Unit{BusBytes: 32, Beat: 50 * olaf.Nanosecond, Pipeline: 16, Room: 6}
	for _, cfg := range []Config{
		{}, {ReadPorts: 1}, {ReadPorts: 2}, {Programs: []program.Description{summing}},
		{ReadPorts: 1, Programs: []program.Description{summing}, Unit: &slow},
	} {
		for seed := range uint64(8) {
			before, after := crowded(rand.New(rand.NewPCG(seed, 17))), crowded(rand.New(rand.NewPCG(seed, 18)))
			play := func(b *bench, c *traffic, d olaf.Duration) {
				b.tables.init(c.tables())
				if b.buildsPrograms() {
					b.write(regmap.AggregatorProgram, summing.Code)
					b.write(regmap.AggregatorH, 2)
					b.write(regmap.AggregatorResults, regmap.AggregatorResultsToWorkers*uint32(seed%2))
					b.write(regmap.AggregatorDownlinkIncrement, uint32(engine.Line)/64)
				}
				b.write(regmap.ModelControl, regmap.ModelControlAck)
				c.programme(b)
				if err := b.Sleep(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			cfg.Clusters, cfg.Wire = 64, true
			fresh, used := newBench(t, cfg), newBench(t, cfg)
			play(used, &before, olaf.Duration(200+300*int64(seed))*olaf.Nanosecond)
			used.reset()
			if err := used.Sleep(t.Context(), 20*olaf.Microsecond); err != nil {
				t.Fatal(err)
			}
			used.Drain(nil)
			used.DrainPackets(nil)
			used.write(regmap.CommonCommand, regmap.CommonCommandClear) // clears the counts of later activity and losses
			for _, b := range []*bench{fresh, used} {
				play(b, &after, 200*olaf.Microsecond)
			}
			if d := cmp.Diff(fresh.Drain(nil), used.Drain(nil)); d != "" {
				t.Fatalf("%d ports, seed %d: -fresh +used:\n%s", cfg.ReadPorts, seed, d)
			}
			if d := cmp.Diff(fresh.DrainPackets(nil), used.DrainPackets(nil)); d != "" {
				t.Fatalf("%d ports, seed %d: -fresh +used:\n%s", cfg.ReadPorts, seed, d)
			}
			a, b := fresh.count(), used.count()
			for _, c := range []*regmap.QueueCounters{&a, &b} {
				c.SnapshotCycle, c.CoveredCycles = 0, 0
			}
			if d := cmp.Diff(a, b); d != "" {
				t.Fatalf("%d ports, seed %d: -fresh +used:\n%s", cfg.ReadPorts, seed, d)
			}
		}
	}
}

// TestNextAnswer checks that a sum on a link to workers has arrived in the cycle of its last bit.
func TestNextAnswer(t *testing.T) {
	for at, want := range map[olaf.Time]int64{1: 1, 3999: 1, 4000: 1, 4001: 2, 7999: 2, 8000: 2, 8001: 3} {
		l := &downlinks{onTheWay: []answer{{at: at}}}
		if got := l.nextArrival(); got != want {
			t.Errorf("what arrives at %d ps is there in cycle %d, want %d", at, got, want)
		}
	}
	if l := (&downlinks{}); l.nextArrival() != never {
		t.Errorf("nothing arrives in cycle %d", l.nextArrival())
	}
}

// TestSegmentsOfClusters checks which clusters have segments: as many as the total number of segments allows.
func TestSegmentsOfClusters(t *testing.T) {
	for _, c := range []struct {
		clusters int
		segments uint32
		cluster  uint16
		around   uint64
	}{
		{64, 1, 63, 0}, {64, 2, 31, 0}, {64, 2, 32, 1}, {64, 64, 0, 0}, {64, 64, 1, 1},
		{0, 1, builtSegments - 1, 0}, {0, 1, builtSegments, 1}, {0, 2, builtSegments/2 - 1, 0}, {0, 2, builtSegments / 2, 1},
		{0, builtSegments, 0, 0}, {0, builtSegments, 1, 1},
	} {
		tables := newTables(1, 1)
		for a := range tables.workers {
			tables.workers[a] = [2]uint16{c.cluster, 0}
		}
		b := newBench(t, Config{Tables: tables, Clusters: c.clusters, Programs: []program.Description{summing}})
		b.write(regmap.AggregatorProgram, summing.Code)
		b.write(regmap.AggregatorH, 1)
		b.write(regmap.AggregatorSegments, c.segments)
		b.configure(fifo, 8, 20)
		b.loadFlows(1, 1, func(_ int, f *regmap.Flow) { f.Seg = uint64(c.segments - 1) })
		b.loadDescriptors(regmap.Descriptor{})
		b.start()
		b.finish()
		if n := b.count(); n.Bypassed != c.around || n.In != 1-c.around {
			t.Errorf("cluster %d of %d with %d segments: %d around, %d in", c.cluster, c.clusters, c.segments, n.Bypassed, n.In)
		}
	}
}

// TestInputFills sends bypassing frames faster than they are decided, until the logic's input accepts no more, because
// of their beats or, for short frames, their number. The expected times were recorded when twin and logic agreed.
func TestInputFills(t *testing.T) {
	for size, want := range map[uint16][2]uint64{64: {1672, 283003}, 128: {2012, 344432}, 256: {2748, 485664}, 1500: {10916, 2140320}} {
		b := newBench(t, Config{ReadPorts: 1, Tables: newTables(1, 1)})
		b.configure(fifo, 8, 64)
		b.loadFlows(1, 1, nil)
		ds := make([]regmap.Descriptor, 400)
		for i := range ds {
			ds[i] = regmap.Descriptor{Sequence: uint32(i), Length: size, Flags: regmap.FlagNotOlaf}
		}
		b.loadDescriptors(ds...)
		b.start()
		if err := b.Sleep(t.Context(), 100*olaf.Microsecond); err != nil {
			t.Fatal(err)
		}
		c := b.counters.generator
		if c.SentPackets != 400 || [2]uint64{c.LateCyclesMax, c.LateCyclesSum} != want {
			t.Errorf("%d bytes: %+v, want %v", size, c, want)
		}
	}
}

// TestCountsBelongToTheirProgram checks that counts of one program are not attributed to another, and that the same
// program continues its counts.
func TestCountsBelongToTheirProgram(t *testing.T) {
	b := newSummingBench(t, newTables(1, 3), 3, 8, 20)
	run := func() {
		b.loadFlows(1, 3, nil)
		b.loadDescriptors(burst(3, 3, 100)...)
		b.start()
		b.finish()
	}
	for round := uint64(1); round <= 2; round++ {
		run()
		b.configure(fifo|regmap.QueueModeProvenance, uint32(8+round), 20)
		if n := b.frontCount("completed"); n != round {
			t.Errorf("round %d: %d are completed", round, n)
		}
	}
	b.write(regmap.QueueControl, 0)
	b.write(regmap.AggregatorProgram, 0)
	b.write(regmap.QueueControl, regmap.QueueControlEnable)
	if n := b.frontCount("completed"); n != 0 {
		t.Errorf("without a program %d are completed", n)
	}
	b.write(regmap.CommonCommand, regmap.CommonCommandClear)
	run()
	if got := b.Drain(nil); len(got) != 5 { // two sums, and three forwarded updates
		t.Errorf("%d frames left", len(got))
	}
}

// arrivals is an observer that records when updates arrive.
type arrivals []int64

func (a *arrivals) Arrival(at olaf.Time, _ engine.Class, _ engine.Slot, _ *olaf.Update, _ []olaf.Contributor) {
	*a = append(*a, cycleOf(at))
}
func (*arrivals) Start(olaf.Time, engine.Slot)                   {}
func (*arrivals) Departure(olaf.Time, engine.Slot, *olaf.Update) {}

// TestBackToBackDecisions sends a short update directly behind a long frame. It checks that the wait for its decision
// depends on the long frame's outcome (docs/reference/semantics.md, Measured).
func TestBackToBackDecisions(t *testing.T) {
	const beats = 24 // of 1,500 bytes
	arrive := func(first regmap.Descriptor) []int64 {
		heard := &arrivals{}
		tables := newTables(2, 1)
		delete(tables.workers, netip.AddrFrom4(workerIP(1, 0)))
		b := newBench(t, Config{ReadPorts: 2, Tables: tables, Observer: heard})
		b.configure(fifo, 8, 64)
		b.loadFlows(2, 1, nil)
		first.Length = 1500
		b.loadDescriptors(first, regmap.Descriptor{Length: 64, Sequence: 1})
		b.start()
		if err := b.Sleep(t.Context(), olaf.Microsecond); err != nil {
			t.Fatal(err)
		}
		return *heard
	}
	stored := arrive(regmap.Descriptor{})
	if len(stored) != 2 || stored[1]-stored[0] != beats {
		t.Fatalf("after an update: %v", stored)
	}
	for name, c := range map[string]struct {
		first regmap.Descriptor
		after int64
	}{
		"bad checksum":   {regmap.Descriptor{Flags: regmap.FlagBadChecksum}, decisionCycles},
		"bad length":     {regmap.Descriptor{Flags: regmap.FlagBadLength}, decisionCycles},
		"not OLAF":       {regmap.Descriptor{Flags: regmap.FlagNotOlaf}, beats + decisionCycles},
		"unknown source": {regmap.Descriptor{Flow: 1}, beats + decisionCycles},
	} {
		if got := arrive(c.first); len(got) != 1 || got[0]-stored[0] != c.after {
			t.Errorf("%s: the update after it is decided on in cycle %v, want %d", name, got, stored[0]+c.after)
		}
	}
}

// TestSleepReturnsAtOnceIfDone checks that no time passes if the context is done, however short the sleep.
func TestSleepReturnsAtOnceIfDone(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(1, 1)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, d := range []olaf.Duration{0, 1, olaf.Microsecond} {
		if err := b.Sleep(ctx, d); !errors.Is(err, context.Canceled) || b.now != 0 {
			t.Errorf("%v: %v in cycle %d", d, err, b.now)
		}
	}
}

// TestInspectorForgets inspects a partial sum whose times need more than 32 bits, and then an empty slot.
func TestInspectorForgets(t *testing.T) {
	const late = 5_000_000_000 // cycles
	b := newSummingBench(t, newTables(1, 3), 3, 8, 20)
	b.loadFlows(1, 3, nil)
	b.loadDescriptors(regmap.Descriptor{Time: late, Flow: 1})
	b.start()
	b.sleep(21 * olaf.Second)
	b.write(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze)
	shown := func(addr uint32) uint64 { return uint64(b.read(addr)) | uint64(b.read(addr+4))<<32 }
	b.write(regmap.AggregatorInspectIndex, 0)
	if generated, since := shown(regmap.AggregatorInspectGeneration), shown(regmap.AggregatorInspectSince); generated != 4*late ||
		since != late {
		t.Errorf("generated at %d, since %d", generated, since)
	}
	b.write(regmap.AggregatorInspectIndex, 1)
	for _, at := range []uint32{regmap.AggregatorInspectState, regmap.AggregatorInspectIdentity, regmap.AggregatorInspectSize,
		regmap.AggregatorInspectSegment,
		regmap.AggregatorInspectGeneration, regmap.AggregatorInspectGeneration + 4, regmap.AggregatorInspectSince,
		regmap.AggregatorInspectSince + 4} {
		if v := b.read(at); v != 0 {
			t.Errorf("of nothing %#x shows %#x", at, v)
		}
	}
}
