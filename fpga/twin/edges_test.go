package twin

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestLoopsAtLastCycle lets hosts wait up to the last cycle and beyond. It checks that the program continues to answer
// while time stands still.
func TestLoopsAtLastCycle(t *testing.T) {
	b := newLoopBench(t)
	p := looped(t, b, 8)
	if err := p.Configure(threeOf(0, 0, 8)); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ at, now int64 }{{maxCycle - 1, maxCycle - 1}, {maxCycle, maxCycle}, {maxCycle + 1, maxCycle},
		{5, maxCycle}} {
		p.Receive(cycleTime(c.at), program.Port(i%3), &program.Packet{Kind: program.Data, Trace: program.NewTrace(0, 0, 0)}, nil,
			&outlet{})
		if b.now != c.now {
			t.Errorf("a packet in cycle %d: it is cycle %d, want %d", c.at, b.now, c.now)
		}
	}
}

// TestIdentity checks the twin's Identity against its registers.
func TestIdentity(t *testing.T) {
	b := newBench(t, Config{})
	v := b.read(regmap.CommonMapVersion)
	want := fpga.Identity{Address: "twin:", Kind: "twin", MapVersion: fmt.Sprintf("%d.%d.%d", v>>24, v>>16&0xff, v&0xffff),
		Build: ModelVersion, ClockHz: uint64(b.read(regmap.CommonClockHz))}
	if d := cmp.Diff(want, b.Identity()); d != "" || want.ClockHz != 250_000_000 {
		t.Error(d, want.ClockHz)
	}
}

// TestLimitsOfBuilds checks builds at both ends of each limit, and the errors beyond.
func TestLimitsOfBuilds(t *testing.T) {
	says := func(n int, what string, most int) string {
		return fmt.Sprintf("twin: %d %s cannot be built; 1 to %d can", n, what, most)
	}
	for _, c := range []struct {
		cfg  Config
		says string // empty if the configuration can be built
	}{
		{Config{Slots: 1, Clusters: 1, Descriptors: 1, ReadPorts: 2}, ""},
		{Config{Slots: engine.MaxSlots, Clusters: 65536, Descriptors: 1 << 28}, ""},
		{Config{Slots: -1}, says(-1, "slots", engine.MaxSlots)},
		{Config{Slots: engine.MaxSlots + 1}, says(engine.MaxSlots+1, "slots", engine.MaxSlots)},
		{Config{Clusters: -1}, says(-1, "clusters", 65536)}, {Config{Clusters: 65537}, says(65537, "clusters", 65536)},
		{Config{Descriptors: -5}, says(-5, "descriptors", 1<<28)},
		{Config{Descriptors: 1<<28 + 1}, says(1<<28+1, "descriptors", 1<<28)},
		{Config{ReadPorts: 3}, says(3, "read ports", 2)},
	} {
		said := ""
		if _, err := New(c.cfg); err != nil {
			said = err.Error()
		}
		if said != c.says {
			t.Errorf("%+v: %q, want %q", c.cfg, said, c.says)
		}
	}
	b := newBench(t, Config{})
	if slots, clusters := b.read(regmap.QueueBuiltSlots), b.read(regmap.QueueBuiltClusters); slots != 4096 || clusters != 65536 ||
		b.cfg.Descriptors != 1<<24 {
		t.Errorf("by default %d slots, %d clusters, %d descriptors", slots, clusters, b.cfg.Descriptors)
	}
}

// TestRecording turns recording off and on between runs. It checks that packets are available from runs with recording
// only, and never from a card without wire.
func TestRecording(t *testing.T) {
	for _, wire := range []bool{false, true} {
		b := newBench(t, Config{Tables: newTables(1, 2), Wire: wire})
		var want []Packet
		for round, on := range []bool{true, false, true, false, false, true} {
			b.Record(on)
			b.configure(fifo, 8, 20)
			b.loadFlows(1, 2, nil)
			b.loadDescriptors(burst(4, 2, 20)...)
			b.start()
			b.finish()
			got := b.DrainPackets(nil)
			if len(got) != 4 && wire && on || len(got) != 0 && !(wire && on) {
				t.Errorf("wire %t, recording %t: %d packets", wire, on, len(got))
			}
			if round == 0 {
				for _, p := range got {
					p.Lanes = append([]int32(nil), p.Lanes...)
					want = append(want, p)
				}
			} else if d := cmp.Diff(want, got); on && d != "" {
				t.Errorf("round %d: %s", round, d)
			}
			if n := len(b.Drain(nil)); n != 4 {
				t.Errorf("wire %t, recording %t: %d updates", wire, on, n)
			}
		}
	}
}

// TestFreezesOfAnEmptyQueue checks that freezes are stored only as long as a frame in the queue may have experienced
// them.
func TestFreezesOfAnEmptyQueue(t *testing.T) {
	b := newSummingBench(t, newTables(1, 3), 3, 8, 1)
	freezes := func(what string, want int) {
		t.Helper()
		for range 5 {
			b.write(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze)
			b.sleep(3 * olaf.Cycle)
			b.write(regmap.QueueControl, regmap.QueueControlEnable)
			b.sleep(3 * olaf.Cycle)
		}
		if n := len(b.queue.freezes); n != want {
			t.Errorf("%s: %d freezes are remembered, want %d", what, n, want)
		}
	}
	freezes("empty", 1)
	b.loadFlows(1, 3, nil)
	b.loadDescriptors(regmap.Descriptor{})
	b.start()
	b.sleep(10 * olaf.Cycle)
	freezes("an update in the program", 6)
	b.loadDescriptors(burst(3, 3, 0)...)
	b.start()
	b.sleep(20 * olaf.Cycle)
	freezes("a sum in the queue", 11)
	b.write(regmap.QueueCommand, regmap.QueueCommandFlush)
	freezes("empty again", 1)
}

// TestRunsAllocateNothing runs the same traffic on cards of every kind until their memory has its final size. It checks
// that the size depends on the frames that are inside at once, not on the number that passed.
func TestRunsAllocateNothing(t *testing.T) {
	slow := aggregator.Unit{BusBytes: 32, Beat: 10 * olaf.Nanosecond, Pipeline: 16, Room: 6} // always full
	for name, c := range map[string]struct {
		cfg    Config
		answer bool
	}{
		"plain": {Config{}, false}, "wire": {Config{Wire: true}, false}, "one read port": {Config{ReadPorts: 1, Wire: true}, false},
		"a program":                     {Config{Programs: []program.Description{summing}, Wire: true}, false},
		"answers":                       {Config{Programs: []program.Description{summing}, Wire: true}, true},
		"a program that takes its time": {Config{Programs: []program.Description{summing}, Unit: &slow}, true},
	} {
		c.cfg.Tables = newTables(3, 3)
		b := newBench(t, c.cfg)
		if b.buildsPrograms() {
			b.write(regmap.AggregatorProgram, summing.Code)
			b.write(regmap.AggregatorH, 3)
			b.write(regmap.AggregatorDownlinkIncrement, uint32(engine.Line)/64)
		}
		if c.answer {
			b.write(regmap.AggregatorResults, regmap.AggregatorResultsToWorkers)
		}
		b.write(regmap.ModelControl, regmap.ModelControlAck)
		b.write(regmap.ModelAckDelay, 700)
		b.configure(smart|regmap.QueueModeProvenance, 8, 20)
		b.loadFlows(3, 3, nil)
		b.loadDescriptors(burst(900, 9, 14)...)
		var observations []olaf.Observation
		var packets []Packet
		run := func() {
			b.start()
			for range 10 {
				if err := b.Sleep(t.Context(), 20*olaf.Microsecond); err != nil {
					t.Fatal(err)
				}
				observations, packets = b.Drain(observations[:0]), b.DrainPackets(packets[:0])
			}
		}
		run()
		if n := testing.AllocsPerRun(3, run); n > 0 {
			t.Errorf("%s: %v allocations in a run", name, n)
		}
		if waiting, pending := cap(b.unit.waiting), cap(b.server.pending); waiting > 32 || pending > 128 {
			t.Errorf("%s: room for %d updates that wait for the program, and for %d ACKs", name, waiting, pending)
		}
		if len(b.Drain(nil)) > 0 || b.read(regmap.GeneratorState) != uint32(done) {
			t.Errorf("%s: the run is not over", name)
		}
	}
}
