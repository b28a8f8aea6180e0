package rtl

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestGeneratorLeavesByTheWire checks that generator.control.wire sends the generator's frames out of the card
// unchanged, past the queue and its counters.
func TestGeneratorLeavesByTheWire(t *testing.T) {
	const frames = 20
	b := openBench(t, Build{})
	b.watch(t, reportBypassed|reportWire)
	words := make([]uint32, frames*regmap.DescriptorWords)
	for i := range frames {
		d := regmap.Descriptor{Time: uint64(400 * i), Flow: uint16(i % 3), Length: uint16(64 + 100*i), Sequence: uint32(i)}
		d.Put(words[i*regmap.DescriptorWords:])
	}
	play := func(wire uint32) [][]byte {
		b.configure(t, "olaf", &engine.Config{Slots: 8}, engine.Output{})
		for memory, load := range [][]uint32{words, trainingFlows(3)} {
			b.write(t, regmap.GeneratorMemSelect, uint32(memory))
			if err := b.WriteBurst(regmap.GeneratorMemData, load); err != nil {
				t.Fatal(err)
			}
		}
		b.write(t, regmap.GeneratorFlows, 3)
		b.write(t, regmap.GeneratorDescriptors, frames)
		b.write(t, regmap.GeneratorControl, wire)
		if err := b.playRound(context.Background()); err != nil {
			t.Fatal(err)
		}
		b.write(t, regmap.CommonCommand, regmap.CommonCommandSnapshot)
		for register, want := range map[uint32]uint32{
			regmap.GeneratorSentPackets: frames, regmap.QueueIn: 0, regmap.QueueDeliveredFrames: 0,
			regmap.QueueBypassed: frames * (1 - wire), // no table knows the sources
		} {
			if v, err := b.Read32(register); v != want || err != nil {
				t.Errorf("with wire=%d, register %#x counts %d (%v); want %d", wire, register, v, err, want)
			}
		}
		return slices.Concat(b.passed, b.sent)
	}
	around, out := play(0), play(regmap.GeneratorControlWire)
	if len(around) != frames || !slices.EqualFunc(around, out, bytes.Equal) {
		t.Errorf("%d frames went around the queue, %d left by the wire; the same %d were expected", len(around), len(out), frames)
	}
}
