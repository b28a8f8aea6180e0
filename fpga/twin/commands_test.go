package twin

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestCommandsObeyTheirBits holds that a command register does what its bits say and nothing without them: of the queue, of the
// block in front of it, and of the counters.
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
		b := newSummingBench(t, newTables(2, 3), 3, 8, 1) // a sum takes 256 cycles to leave
		b.loadFlows(2, 3, nil)
		b.loadDescriptors(burst(4, 3, 10)...) // a sum of three, and one more
		b.start()
		if err := b.Sleep(t.Context(), 60*olaf.Cycle); err != nil {
			t.Fatal(err)
		}
		b.write(c.register, c.bits)
		b.write(regmap.CommonCommand, regmap.CommonCommandSnapshot)
		if inside, held, sent := b.read(regmap.QueueOccupancy), b.read(regmap.AggregatorOccupied), b.read(regmap.GeneratorSentPackets); inside != c.inside || held != c.held || sent != c.sent {
			t.Errorf("%s: %d frames inside, %d sums held, %d packets sent; want %+v", name, inside, held, sent, c)
		}
	}
}

// TestRefusalsRaiseTheirBit holds which error a queue shows that is looked into while it runs, and no other.
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
