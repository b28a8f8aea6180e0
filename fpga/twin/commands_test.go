package twin

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestCommandsObeyTheirBits checks that the command registers of the queue, of the block in front of it and of the
// counters do what their bits mean, and nothing without these bits.
func TestCommandsObeyTheirBits(t *testing.T) {
	for name, c := range map[string]struct {
		register, bits     uint32
		inside, held, sent uint32
	}{
		"nothing of the queue":    {regmap.QueueCommand, 0, 1, 1, 4},
		"a flush of the queue":    {regmap.QueueCommand, regmap.QueueCommandFlush, 0, 0, 4},
		"nothing of the block":    {regmap.AggregatorCommand, 0, 1, 1, 4},
		"a clear of the block":    {regmap.AggregatorCommand, regmap.AggregatorCommandClear, 1, 0, 4},
		"nothing of the card":     {regmap.CommonCommand, 0, 1, 1, 4},
		"a snapshot of the card":  {regmap.CommonCommand, regmap.CommonCommandSnapshot, 1, 1, 4},
		"a clear of the counters": {regmap.CommonCommand, regmap.CommonCommandClear, 1, 1, 0},
		"a reset of the card":     {regmap.CommonCommand, regmap.CommonCommandReset, 0, 0, 0},
	} {
		b := newSummingBench(t, newTables(2, 3), 3, 8, 1) // a sum takes 256 cycles to send
		b.loadFlows(2, 3, nil)
		b.loadDescriptors(burst(4, 3, 10)...) // a sum of three, and one more
		b.start()
		if err := b.Sleep(t.Context(), 60*olaf.Cycle); err != nil {
			t.Fatal(err)
		}
		b.write(c.register, c.bits)
		b.write(regmap.CommonCommand, regmap.CommonCommandSnapshot)
		if inside, held, sent := b.read(regmap.QueueOccupancy), b.read(regmap.AggregatorOccupied),
			b.read(regmap.GeneratorSentPackets); inside != c.inside || held != c.held || sent != c.sent {
			t.Errorf("%s: %d frames inside, %d sums held, %d packets sent; want %+v", name, inside, held, sent, c)
		}
	}
}

// TestRefusalsRaiseTheirBit checks that inspecting a running queue sets the right error bit and no other.
func TestRefusalsRaiseTheirBit(t *testing.T) {
	b := newSummingBench(t, newTables(1, 1), 1, 8, 20)
	for _, at := range []uint32{regmap.QueueInspectIndex, regmap.AggregatorInspectIndex} {
		if err := b.Write32(at, 0); !errors.Is(err, fpga.ErrRefused) {
			t.Errorf("%#x: %v", at, err)
		}
	}
	if got := b.read(regmap.QueueErrors); got != regmap.QueueErrorsNotFrozen|regmap.QueueErrorsState {
		t.Errorf("the queue's errors are %#x, want %#x", got, regmap.QueueErrorsNotFrozen|regmap.QueueErrorsState)
	}
}

// TestFailuresRaiseTheirReason checks that a failing generator sets the bit for its reason and no other.
func TestFailuresRaiseTheirReason(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(b *bench)
		want  uint32
	}{
		"done": {func(b *bench) { b.loadDescriptors(regmap.Descriptor{}) }, regmap.GeneratorEventsDone},
		"underrun": {func(b *bench) { b.loadDescriptors(regmap.Descriptor{}); b.write(regmap.GeneratorDescriptors, 2) },
			regmap.GeneratorEventsError | regmap.GeneratorEventsUnderrun},
		"unsorted": {func(b *bench) { b.loadDescriptors(regmap.Descriptor{Time: 5}, regmap.Descriptor{Time: 4}) },
			regmap.GeneratorEventsError | regmap.GeneratorEventsUnsorted},
		"bad flow": {func(b *bench) { b.loadDescriptors(regmap.Descriptor{Flow: 1}) },
			regmap.GeneratorEventsError | regmap.GeneratorEventsBadFlow},
		"bad length": {func(b *bench) { b.loadDescriptors(regmap.Descriptor{Length: 66}) },
			regmap.GeneratorEventsError | regmap.GeneratorEventsBadLength},
	} {
		b := newBench(t, Config{Tables: newTables(1, 1)})
		b.configure(fifo, 8, 20)
		b.loadFlows(1, 1, nil)
		c.spoil(b)
		b.start()
		if err := b.Sleep(t.Context(), olaf.Microsecond); err != nil {
			t.Fatal(err)
		}
		if got := b.read(regmap.GeneratorEvents); got != c.want {
			t.Errorf("%s: events %#x, want %#x", name, got, c.want)
		}
	}
}

// TestResetForgetsCleared checks that counts saved by a clear are gone after a reset.
func TestResetForgetsCleared(t *testing.T) {
	b := newSummingBench(t, newTables(1, 3), 3, 8, 20)
	b.loadFlows(1, 3, nil)
	b.loadDescriptors(burst(4, 3, 10)...)
	b.start()
	b.finish()
	b.write(regmap.CommonCommand, regmap.CommonCommandClear)
	b.reset()
	if got := b.frontOwn(); got != (regmap.AggregatorCounters{}) {
		t.Errorf("%+v", got)
	}
}

// TestRearmingLeavesOneAnswerAlone loads new flows while one ACK, or one sum for workers, is on its way, and checks
// that it reaches the worker that sent the update.
func TestRearmingLeavesOneAnswerAlone(t *testing.T) {
	for name, b := range map[string]*bench{"an ACK": newBench(t, Config{Tables: newTables(1, 1), Wire: true}),
		"a sum": newAnsweringBench(t, Config{Wire: true})} {
		flows := 1
		if name == "an ACK" {
			b.configure(fifo, 8, 64)
			b.loadFlows(1, 1, nil)
			b.write(regmap.ModelControl, regmap.ModelControlAck)
			b.write(regmap.ModelAckDelay, 1000)
		} else {
			flows = 3
		}
		b.loadDescriptors(burst(flows, flows, 0)...)
		b.start()
		b.sleep(40 * olaf.Cycle)
		b.write(regmap.GeneratorCommand, regmap.GeneratorCommandAbort)
		b.loadFlows(1, flows, func(_ int, f *regmap.Flow) { f.SourceMAC[5], f.SourceIP, f.Seg = 9, [4]byte{9, 9, 9, 9}, 7 })
		b.write(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
		b.sleep(2000 * olaf.Cycle)
		answers := 0
		for _, p := range b.DrainPackets(nil) {
			if p.Kind == Ack || p.Kind == Answered {
				if answers++; p.Addresses.DestMAC[5] != 0 || p.Addresses.DestIP[0] != 10 || p.Seg != 0 {
					t.Errorf("%s: %+v", name, p)
				}
			}
		}
		if answers != flows {
			t.Errorf("%s: %d came", name, answers)
		}
	}
}

// TestRearmingAtAnyCycle loads new flows in every cycle of a run on cards of every kind. It checks that every departing
// frame has the addresses of the flow that sent it, wherever the frame was.
func TestRearmingAtAnyCycle(t *testing.T) {
	slow := aggregator.Unit{BusBytes: 32, Beat: 20 * olaf.Nanosecond, Pipeline: 4, Room: 6}
	for _, cfg := range []Config{{}, {ReadPorts: 1}, {ReadPorts: 2}, {Programs: []program.Description{summing}, Unit: &slow}} {
		for cycle := range 60 {
			cfg.Wire, cfg.Tables = true, newTables(1, 3)
			b := newBench(t, cfg)
			if b.buildsPrograms() {
				b.write(regmap.AggregatorProgram, summing.Code)
				b.write(regmap.AggregatorH, 1)
			}
			b.configure(fifo, 8, 20)
			b.loadFlows(1, 3, nil)
			b.loadDescriptors(regmap.Descriptor{Length: 1500}, regmap.Descriptor{Flow: 1},
				regmap.Descriptor{Flow: 2, Flags: regmap.FlagNotOlaf})
			b.start()
			if err := b.Sleep(t.Context(), olaf.Duration(cycle)*olaf.Cycle); err != nil {
				t.Fatal(err)
			}
			sent := b.counters.generator.SentPackets
			b.write(regmap.GeneratorCommand, regmap.GeneratorCommandAbort)
			b.loadFlows(1, 3, func(_ int, f *regmap.Flow) { f.SourceMAC[5] = 9 })
			b.write(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
			if err := b.Sleep(t.Context(), 2000*olaf.Cycle); err != nil {
				t.Fatal(err)
			}
			left := b.DrainPackets(nil)
			for _, p := range left {
				if p.Addresses.SourceMAC[5] != 0 {
					t.Errorf("%d ports, armed in cycle %d: %+v", cfg.ReadPorts, cycle, p)
				}
			}
			if len(left) != int(sent) {
				t.Errorf("%d ports, armed in cycle %d: of %d packets %d left", cfg.ReadPorts, cycle, sent, len(left))
			}
		}
	}
}
