package twin

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/switchml"
	"github.com/olafctl/olaf/fpga/regmap"
)

var pooling = switchml.Describe()

// telling are tables that determine SwitchML's jobs.
type telling struct {
	*fakeTables
	jobs []program.Job
}

func (a *telling) Admits(*program.Description, olaf.ClusterID, olaf.WorkerID) bool { return true }
func (a *telling) Jobs(*program.Description) ([]program.Job, bool)                 { return a.jobs, a.jobs != nil }

// newLoopBench returns a card with SwitchML and an enabled queue. If jobs are given, the tables contain exactly these.
func newLoopBench(t *testing.T, jobs ...program.Job) *bench {
	b := newBench(t, Config{Tables: &telling{newTables(2, 3), jobs}, Programs: []program.Description{summing, pooling}})
	b.write(regmap.AggregatorProgram, pooling.Code)
	b.configure(fifo, 1, 20)
	return b
}

func looped(t *testing.T, b *bench, slots int) program.Program {
	t.Helper()
	p, err := b.OpenLoop(program.Config{Slots: slots})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func threeOf(job olaf.ClusterID, base, slots int) program.Job {
	j := program.Job{ID: job, Base: base, Slots: slots}
	for w := range 3 {
		j.Members = append(j.Members, program.Member{Worker: olaf.WorkerID(w), Port: program.Port(w)})
	}
	return j
}

// sent is a departed packet, with the time that the program had been given.
type sent struct {
	to program.Dest
	program.Packet
}

type outlet []sent

func (o *outlet) Emit(to program.Dest, p *program.Packet, _ []uint32) {
	*o = append(*o, sent{to, *p})
}

// TestLoopReachesProgram checks that hosts next to the card reach the program itself: the same packets leave, and the
// registers have its counts, whatever the card did before.
func TestLoopReachesProgram(t *testing.T) {
	b := newLoopBench(t)
	for round := range 3 {
		b.write(regmap.CommonCommand, regmap.CommonCommandClear)
		alone, err := switchml.New(program.Config{Slots: 8})
		if err != nil {
			t.Fatal(err)
		}
		loop := looped(t, b, 8)
		for _, p := range []program.Program{alone, loop} {
			if err := errors.Join(p.Configure(threeOf(0, 0, 4)), p.Configure(threeOf(1, 4, 4))); err != nil {
				t.Fatal(err)
			}
		}
		began, now := b.now, olaf.Time(0)
		r := rand.New(rand.NewPCG(7, uint64(round)))
		peak := 0
		for range 2000 {
			now += olaf.Time(r.IntN(20_000))
			p := program.Packet{Kind: program.Data, Job: olaf.ClusterID(r.IntN(3)), Index: uint32(r.IntN(9)), Lanes: 64,
				Flags: program.Set1 * program.Flags(r.IntN(2)),
				Trace: program.NewTrace(0, 0, uint64(now)/1000)}
			from := program.Port(r.IntN(4))
			var want, have outlet
			if c, l := alone.Receive(now, from, &p, nil, &want), loop.Receive(now, from, &p, nil, &have); c != l ||
				!slices.Equal(want, have) {
				t.Fatalf("%+v from %d: class %d and %v, want %d and %v", p, from, l, have, c, want)
			}
			peak = max(peak, alone.CountOccupied())
		}
		if b.now != began+(int64(now)+int64(olaf.Cycle)-1)/int64(olaf.Cycle) {
			t.Errorf("%d cycles passed in %v", b.now-began, now)
		}
		if have := b.read(regmap.AggregatorPeakOccupied); int(have) != peak || peak == 0 {
			t.Errorf("at most %d slots were held, want %d", have, peak)
		}
		counts, err := fpga.SnapshotProgram(b)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range alone.Counts() {
			if have := *counts.Aggregator.At(countRegister(i)); have != want {
				t.Errorf("round %d: %s is %d, want %d", round, pooling.Ledger.Counters[i].Name, have, want)
			}
		}
		b.inspectsLoop(alone)
		b.configure(fifo, 1, 20) // like a bench between runs
		if held := b.read(regmap.AggregatorOccupied); held != 0 {
			t.Errorf("%d slots are held by a loop that ended", held)
		}
	}
}

// inspectsLoop checks that the inspector shows every occupied slot.
func (b *bench) inspectsLoop(p program.Program) {
	b.Helper()
	b.write(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze)
	index := uint32(0)
	for i := range p.Slots() {
		if !p.Slot(i).Occupied {
			continue
		}
		b.write(regmap.AggregatorInspectIndex, index)
		if at := b.read(regmap.AggregatorInspectSegment); b.read(regmap.AggregatorInspectState) == 0 || int(at) != i {
			b.Errorf("slot %d is shown as %d", i, at)
		}
		index++
	}
	b.write(regmap.AggregatorInspectIndex, index)
	if b.read(regmap.AggregatorInspectState) != 0 {
		b.Errorf("a slot beyond the %d that are held is shown", index)
	}
	b.write(regmap.QueueControl, 0)
}

// TestLoopIsRefused checks that a loop through a missing program is refused.
func TestLoopIsRefused(t *testing.T) {
	below := threeOf(3, 8, 4)
	below.Parent = true
	b := newLoopBench(t, threeOf(0, 0, 4), threeOf(1, 4, 4), below)
	p := looped(t, b, 12)
	if err := p.Configure(threeOf(0, 0, 4)); err != nil {
		t.Errorf("a job that the tables have: %v", err)
	}
	two := threeOf(1, 4, 4)
	two.Members = two.Members[:2]
	for what, err := range map[string]error{
		"a job that the tables do not have":           p.Configure(threeOf(2, 0, 4)),
		"a job with other slots than the tables have": p.Configure(threeOf(1, 0, 4)),
		"a job with fewer workers than the tables":    p.Configure(two),
		"a job whose sums the tables send up":         p.Configure(threeOf(3, 8, 4)),
		"a card whose queue stands":                   standing(b),
	} {
		if !errors.Is(err, fpga.ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b = newLoopBench(t)
	if err := errors.Join(looped(t, b, 8).Configure(threeOf(0, 0, 8))); err != nil {
		t.Fatal(err)
	}
	if err := looped(t, b, 8).Configure(threeOf(1, 0, 8)); err != nil {
		t.Errorf("the loop before still has its job: %v", err)
	}
	p = looped(t, b, 8)
	if err := errors.Join(p.Configure(threeOf(0, 0, 4)), p.Configure(threeOf(0, 0, 4))); err != nil {
		t.Errorf("a job that is configured twice: %v", err)
	}
	if err := p.Configure(threeOf(1, 2, 4)); !errors.Is(err, program.ErrConfig) {
		t.Errorf("a job on another one's slots: %v", err)
	}
	if _, err := b.OpenLoop(program.Config{Slots: -1}); !errors.Is(err, program.ErrConfig) {
		t.Errorf("a table of -1 slots: %v", err)
	}
}

func standing(b *bench) error {
	b.write(regmap.QueueControl, 0)
	_, err := b.OpenLoop(program.Config{})
	return err
}

// TestLoopThroughPlainCard checks that hosts may loop through a card without a program, and that passing packets are
// counted and take time.
func TestLoopThroughPlainCard(t *testing.T) {
	b := newLoopBench(t)
	b.write(regmap.QueueControl, 0)
	b.write(regmap.AggregatorProgram, 0)
	for round := range 2 {
		b.configure(fifo, 1, 20)
		b.write(regmap.CommonCommand, regmap.CommonCommandClear)
		began, p := b.now, looped(t, b, 0)
		if err := p.Configure(threeOf(0, 0, 0)); err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			var out outlet
			p.Receive(olaf.Time(k)*olaf.Time(olaf.Microsecond), program.Port(k), &program.Packet{Kind: program.Data}, nil, &out)
			if len(out) != 1 || out[0].to != program.Up {
				t.Errorf("%v left", out)
			}
		}
		counts, err := fpga.SnapshotProgram(b)
		if err != nil {
			t.Fatal(err)
		}
		if n := *counts.Aggregator.At(regmap.AggregatorCount0); n != 3 || b.now-began != 500 {
			t.Errorf("round %d: %d are counted, %d cycles passed", round, n, b.now-began)
		}
	}
}

// TestLoopEndsWithTheConfiguration checks that updates are summed again after the queue was configured for them.
func TestLoopEndsWithTheConfiguration(t *testing.T) {
	b := newSummingBench(t, newTables(1, 3), 3, 8, 20)
	if err := looped(t, b, 4).Configure(threeOf(0, 0, 0)); err != nil {
		t.Fatal(err)
	}
	b.configure(fifo|regmap.QueueModeProvenance, 8, 20)
	b.loadFlows(1, 3, nil)
	b.loadDescriptors(regmap.Descriptor{Flow: 0}, regmap.Descriptor{Time: 100, Flow: 1}, regmap.Descriptor{Time: 200, Flow: 2})
	b.start()
	b.finish()
	if got := b.Drain(nil); len(got) != 1 || got[0].Update.Count != 3 {
		t.Errorf("%+v", got)
	}
}

// TestClearKeepsLoopSlots checks that a clear keeps the contents of a loop's slots, and that a flush clears the slots
// of all its jobs.
func TestClearKeepsLoopSlots(t *testing.T) {
	for jobs := 1; jobs <= 3; jobs++ {
		b := newLoopBench(t)
		p := looped(t, b, 9)
		for job := range jobs {
			if err := p.Configure(threeOf(olaf.ClusterID(job), 3*job, 3)); err != nil {
				t.Fatal(err)
			}
			var out outlet
			p.Receive(olaf.Time(job)*olaf.Time(olaf.Microsecond), 0,
				&program.Packet{Kind: program.Data, Job: olaf.ClusterID(job), Index: uint32(3 * job),
					Trace: program.NewTrace(0, 0, 0)}, nil, &out)
		}
		held := func(what string, in, held, cleared uint64) {
			t.Helper()
			c, err := fpga.SnapshotProgram(b)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]uint64{"vectors_in": in, "vectors_held": held, "vectors_cleared": cleared} {
				if got := *c.Aggregator.At(countRegister(pooling.Ledger.Index(name))); got != want {
					t.Errorf("%d jobs, %s: %s is %d, want %d", jobs, what, name, got, want)
				}
			}
		}
		held("at first", uint64(jobs), uint64(jobs), 0)
		b.write(regmap.CommonCommand, regmap.CommonCommandClear)
		held("after a clear", 0, uint64(jobs), 0)
		b.write(regmap.QueueCommand, regmap.QueueCommandFlush)
		held("after a flush", 0, 0, uint64(jobs))
	}
}
