package twin

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestDownlinks checks the links to the workers against a slow reference: every sum arrives once, no earlier than its
// frame takes behind the earlier frames of its cluster, and in order of time.
func TestDownlinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &downlinks{}
		free := map[olaf.ClusterID]olaf.Time{}
		var want, have []answer
		now := olaf.Time(0)
		look := func() {
			for l.nextArrival() <= cycleOf(now) {
				have = append(have, l.takeSum())
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "sums") {
			now += olaf.Time(rapid.OneOf(rapid.Int64Range(0, 400_000), rapid.SampledFrom([]int64{0, 1000})).Draw(t, "gap"))
			look()
			a := answer{update: olaf.Update{Cluster: olaf.ClusterID(rapid.IntRange(0, 2).Draw(t, "cluster")), Seq: uint32(len(want))}}
			takes := olaf.Duration(rapid.OneOf(rapid.Int64Range(1, 300_000), rapid.SampledFrom([]int64{1000, 2000})).Draw(t, "takes")) // often to the same instant
			l.putSum(a, now, takes)
			a.number = uint64(len(want))
			a.at = max(free[a.update.Cluster], now).Add(takes)
			a.queued = a.at.Sub(now)
			free[a.update.Cluster] = a.at
			want = append(want, a)
		}
		now = 1 << 40
		look()
		slices.SortStableFunc(want, func(a, b answer) int { return int(a.at - b.at) })
		if d := cmp.Diff(want, have, cmp.AllowUnexported(answer{})); d != "" {
			t.Fatal(d)
		}
	})
}

// answers is an observer that records what reaches workers.
type answers struct{ at []olaf.Time }

func (*answers) Arrival(olaf.Time, engine.Class, engine.Slot, *olaf.Update, []olaf.Contributor) {
}
func (*answers) Start(olaf.Time, engine.Slot)                   {}
func (*answers) Departure(olaf.Time, engine.Slot, *olaf.Update) {}
func (a *answers) Answer(at olaf.Time, _ *olaf.Observation)     { a.at = append(a.at, at) }

// newAnsweringBench returns a card whose program answers the workers at 2.5 bytes per cycle and link, which is 102.4
// cycles per frame.
func newAnsweringBench(t *testing.T, cfg Config) *bench {
	cfg.Programs = []program.Description{summing}
	if cfg.Tables == nil {
		cfg.Tables = newTables(2, 3)
	}
	b := newBench(t, cfg)
	b.write(regmap.AggregatorProgram, summing.Code)
	b.write(regmap.AggregatorH, 3)
	b.write(regmap.AggregatorResults, regmap.AggregatorResultsToWorkers)
	b.write(regmap.AggregatorDownlinkIncrement, uint32(engine.Line)/64*5/2)
	b.configure(fifo|regmap.QueueModeProvenance, 8, 64)
	b.loadFlows(2, 3, nil)
	return b
}

// TestSumsGoToWorkers checks that sums cross the switch at the rate of the data path, and reach the workers of their
// cluster one after the other at the rate of the link. Before that, they are only visible as frames on their way.
func TestSumsGoToWorkers(t *testing.T) {
	heard := &answers{}
	b := newAnsweringBench(t, Config{Wire: true, Observer: heard})
	var ds []regmap.Descriptor
	for i, flow := range []uint16{0, 1, 2, 3, 4, 5, 0, 1, 2} { // two sums of cluster 0, one of cluster 1
		ds = append(ds, regmap.Descriptor{Time: uint64(4 * i), Flow: flow, Sequence: uint32(i)})
	}
	b.loadDescriptors(ds...)
	b.start()
	b.sleep(60 * olaf.Cycle)
	if waiting, seen := b.read(regmap.AggregatorDownlinkWaiting), b.Drain(nil); waiting != 3 || len(seen) != 0 {
		t.Errorf("%d on their way, %d seen", waiting, len(seen))
	}
	b.sleep(400 * olaf.Cycle)
	seen := b.Drain(nil)
	if len(seen) != 3 || b.read(regmap.AggregatorDownlinkWaiting) != 0 || b.frontOwn().ResultsOut != 9 {
		t.Fatalf("%d seen, %d copies", len(seen), b.frontOwn().ResultsOut)
	}
	frame := olaf.Duration(102.4 * float64(olaf.Cycle))
	for i, c := range []olaf.ClusterID{0, 1, 0} {
		if seen[i].Update.Cluster != c || len(seen[i].Contributors) != 3 || heard.at[i] != seen[i].At+cycleTime(b.generator.zero) {
			t.Errorf("%+v", seen[i])
		}
	}
	// The second sum of a cluster comes while the first is still on the link.
	if got := seen[2].At.Sub(seen[0].At); got != frame {
		t.Errorf("the second sum comes %v after the first, want %v", got, frame)
	}
	var to [][4]byte
	for _, p := range b.DrainPackets(nil) {
		if p.Kind == Answered {
			to = append(to, p.Addresses.DestIP)
		}
	}
	want := [][4]byte{}
	for _, c := range []int{0, 1, 0} {
		for w := range 3 {
			want = append(want, workerIP(c, w))
		}
	}
	if d := cmp.Diff(want, to); d != "" {
		t.Error(d)
	}
}

// TestSumsOfJobsBelowAnotherSwitch checks that, if the program's tables name a parent switch for a job, the job's sums
// leave by the uplink, from the first that leaves after the change. Sums of other jobs go to the workers.
func TestSumsOfJobsBelowAnotherSwitch(t *testing.T) {
	tables := &admitting{fakeTables: newTables(2, 3), members: map[olaf.ClusterID]map[olaf.WorkerID]bool{},
		above: map[olaf.ClusterID]bool{1: true}}
	tables.set(0, 0, 1, 2)
	tables.set(1, 3, 4, 5)
	b := newAnsweringBench(t, Config{Wire: true, Tables: tables})
	sums := func() (kinds map[olaf.ClusterID]Kind) {
		var ds []regmap.Descriptor
		for i := range uint16(6) {
			ds = append(ds, regmap.Descriptor{Time: uint64(4 * i), Flow: i, Sequence: uint32(i)})
		}
		b.loadDescriptors(ds...)
		b.start()
		b.sleep(1000 * olaf.Cycle)
		kinds = map[olaf.ClusterID]Kind{}
		for _, p := range b.DrainPackets(nil) {
			kinds[p.Update.Cluster] = p.Kind
		}
		if seen := b.Drain(nil); len(seen) != 2 || len(seen[0].Contributors) != 3 || len(seen[1].Contributors) != 3 {
			t.Errorf("seen %+v", seen)
		}
		return kinds
	}
	if have := sums(); have[0] != Answered || have[1] != Delivered || b.frontOwn().ResultsOut != 3 {
		t.Errorf("%v, %d copies", have, b.frontOwn().ResultsOut)
	}
	tables.above = nil
	tables.version++
	if have := sums(); have[0] != Answered || have[1] != Answered || b.frontOwn().ResultsOut != 9 {
		t.Errorf("with nobody above: %v, %d copies", have, b.frontOwn().ResultsOut)
	}
}

// TestResultsDoNotDependOnObservers checks that results do not depend on an observer or on how time is divided.
func TestResultsDoNotDependOnObservers(t *testing.T) {
	play := func(cfg Config, step olaf.Duration) (all []olaf.Observation) {
		b := newAnsweringBench(t, cfg)
		var ds []regmap.Descriptor
		for i := range 60 {
			ds = append(ds, regmap.Descriptor{Time: uint64(7 * i), Flow: uint16(i * 5 % 6), Sequence: uint32(i)})
		}
		b.loadDescriptors(ds...)
		b.start()
		for range 4000 * olaf.Cycle / step {
			b.sleep(step)
			for _, o := range b.Drain(nil) {
				o.Contributors = slices.Clone(o.Contributors)
				all = append(all, o)
			}
		}
		return all
	}
	want := play(Config{}, 4000*olaf.Cycle)
	if len(want) != 20 {
		t.Fatalf("%d sums", len(want))
	}
	for _, c := range []struct {
		cfg  Config
		step olaf.Duration
	}{{Config{}, olaf.Cycle}, {Config{Observer: &answers{}}, 10 * olaf.Cycle}, {Config{Wire: true}, 100 * olaf.Cycle}} {
		if d := cmp.Diff(want, play(c.cfg, c.step)); d != "" {
			t.Error(d)
		}
	}
}

// TestLinksAreACapability checks that a card without a program has neither links nor formats, and that its capabilities
// show this.
func TestLinksAreACapability(t *testing.T) {
	plain := newBench(t, Config{Tables: newTables(1, 1)})
	const both = regmap.CommonCapabilitiesDownlinks | regmap.CommonCapabilitiesWireFormats
	if plain.read(regmap.CommonCapabilities)&both != 0 {
		t.Error("a card without a program has links to workers")
	}
	b := newAnsweringBench(t, Config{})
	if b.read(regmap.CommonCapabilities)&both != both {
		t.Error("the capabilities are missing")
	}
	b.write(regmap.QueueControl, 0)
	for _, bad := range []struct{ addr, value uint32 }{
		{regmap.AggregatorDownlinkIncrement, 0}, {regmap.AggregatorDownlinkIncrement, uint32(engine.Line) + 1},
		{regmap.AggregatorSegments, 0},
		{regmap.AggregatorSegments, builtSegments + 1},
	} {
		if err := b.Write32(bad.addr, bad.value); !errors.Is(err, fpga.ErrRefused) {
			t.Errorf("%#x = %d: %v", bad.addr, bad.value, err)
		}
	}
}

// TestSegmentsAndFormats checks that flows specify the format of their frames and the segment of the vector: segments
// are summed separately, and frames that are not the program's data bypass it.
func TestSegmentsAndFormats(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(2, 3), Programs: []program.Description{summing}})
	b.write(regmap.AggregatorProgram, summing.Code)
	b.write(regmap.AggregatorH, 2)
	b.write(regmap.AggregatorSegments, 2)
	b.configure(fifo|regmap.QueueModeProvenance, 8, 20)
	b.loadFlows(2, 3, func(id int, f *regmap.Flow) {
		switch f.Format, f.ToS = uint8(summing.Code), summing.ToS; id {
		case 1, 4:
			f.Seg = 1
		case 2:
			f.Seg = 2 // beyond the vector
		case 3:
			f.ToS = 0 // ordinary traffic
		case 5:
			f.Format = 2 // frame format of another program
		}
	})
	var ds []regmap.Descriptor
	for i, flow := range []uint16{0, 1, 0, 1, 2, 3, 4, 5} {
		ds = append(ds, regmap.Descriptor{Time: uint64(100 * i), Flow: flow, Sequence: uint32(i)})
	}
	b.loadDescriptors(ds...)
	b.start()
	b.finish()
	seen := b.Drain(nil)
	if len(seen) != 2 || seen[0].Contributors[1].Seq != 2 || seen[1].Contributors[1].Seq != 3 {
		t.Errorf("segments were mixed: %+v", seen)
	}
	if c := b.count(); c.Bypassed != 3 {
		t.Errorf("%d went around, want 3", c.Bypassed)
	}
	b.write(regmap.QueueControl, 0)
	table, err := fpga.ReadSegments(b)
	if err != nil || len(table.Held) != 1 || table.Held[0].Cluster != 1 || table.Held[0].Seg != 1 || table.Held[0].Slot != 3 {
		t.Errorf("%+v, %v", table.Held, err)
	}
}

// frontOwn returns the block's own counters after a snapshot.
func (b *bench) frontOwn() regmap.AggregatorCounters {
	b.Helper()
	b.write(regmap.CommonCommand, regmap.CommonCommandSnapshot)
	c, err := regmap.ReadAggregatorCounters(b)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// older is a card with an image of map 1.1, which has no links to workers, no formats, and none of their registers.
type older struct{ *bench }

func (o older) Read32(addr uint32) (uint32, error) {
	v, err := o.bench.Read32(addr)
	switch addr {
	case regmap.CommonCapabilities:
		v &^= regmap.CommonCapabilitiesDownlinks | regmap.CommonCapabilitiesWireFormats
	case regmap.AggregatorResults, regmap.AggregatorDownlinkIncrement, regmap.AggregatorSegments, regmap.AggregatorDownlinkWaiting:
		return regmap.Placeholder, fpga.ErrAddress
	}
	return v, err
}

func (o older) Write32(addr, v uint32) error {
	if addr == regmap.AggregatorResults || addr == regmap.AggregatorDownlinkIncrement || addr == regmap.AggregatorSegments {
		return fpga.ErrAddress
	}
	return o.bench.Write32(addr, v)
}

// TestOlderImages checks that an older image is programmed and read as before, and that only features that it lacks are
// refused.
func TestOlderImages(t *testing.T) {
	card := older{newBench(t, Config{Tables: newTables(1, 3), Programs: []program.Description{summing}})}
	c := fpga.QueueConfig{Discipline: "fifo", Depth: 8, Output: engine.Output{Rate: engine.Line}, Program: &summing, H: 2}
	if err := fpga.ConfigureQueue(t.Context(), card, c); err != nil {
		t.Fatal(err)
	}
	card.loadFlows(1, 3, nil)
	card.loadDescriptors(burst(3, 3, 10)...)
	card.start()
	card.finish()
	card.write(regmap.QueueControl, 0)
	if table, err := fpga.ReadSegments(card); err != nil || len(table.Held) != 1 || table.Held[0].Seg != 0 {
		t.Errorf("%+v, %v", table, err)
	}
	c.Downlink = engine.Line
	if err := fpga.ConfigureQueue(t.Context(), card, c); !errors.Is(err, fpga.ErrRefused) ||
		!strings.Contains(err.Error(), "no links to the workers") {
		t.Errorf("%v", err)
	}
}
