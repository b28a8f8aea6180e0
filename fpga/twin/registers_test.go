package twin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/test/golden"
)

// TestEveryRegister checks, for every word of the map, its value after a reset, the values that it accepts, and the
// error registers after a refusal, as listed in testdata/registers.golden.
func TestEveryRegister(t *testing.T) {
	open := slices.DeleteFunc(programs.AllPrograms(), func(d program.Description) bool { return !d.Open })
	b := newBench(t, Config{Tables: newTables(1, 1), Programs: open})
	var out strings.Builder
	for _, block := range regmap.AllBlocks() {
		for _, r := range block.Registers {
			for off := uint32(0); off < r.Bytes(); off += 4 {
				addr := block.Base + r.Offset + off
				name := block.Name + "." + r.Name
				if off > 0 {
					name += "+4"
				}
				fmt.Fprintf(&out, "%-34s %s\n", name, b.portrait(addr, r.Access))
			}
		}
	}
	golden.Equal(t, "registers.golden", []byte(out.String()))
}

// portrait returns the line for one register.
func (b *bench) portrait(addr uint32, access regmap.Access) string {
	b.reset()
	line := fmt.Sprintf("%08x", b.read(addr))
	if addr == regmap.CommonBuildHash {
		line = "(build)"
	}
	if access == regmap.Command {
		return line + " command"
	}
	takes := func(v uint32) bool {
		b.reset()
		return b.Write32(addr, v) == nil
	}
	low, high := uint32(0), uint32(math.MaxUint32)
	if access == regmap.ReadOnly {
		high = 0
	}
	for low < high { // binary search for the largest accepted value, as if all smaller ones were accepted
		if mid := low + (high-low)/2 + 1; takes(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	line += fmt.Sprintf(" 0 %v, 1 %v, up to %x", takes(0), takes(1), low)
	b.reset()
	if err := b.Write32(addr, math.MaxUint32); err != nil {
		said := strings.Split(err.Error(), ": ")
		line += fmt.Sprintf("; errors %x queue %x generator %x at %x: %s", b.read(regmap.CommonErrors), b.read(regmap.QueueErrors),
			b.read(regmap.GeneratorEvents), b.read(regmap.CommonErrorAddress), said[len(said)-1])
	}
	return line
}

func (b *bench) reset() {
	b.Helper()
	b.write(regmap.CommonCommand, regmap.CommonCommandReset)
}

// TestAddressesWithoutRegister checks that accesses to them are refused, and that the card reports it.
func TestAddressesWithoutRegister(t *testing.T) {
	b := newBench(t, Config{})
	for _, addr := range []uint32{0, 1, regfile.FirstAddress - 4, regfile.FirstAddress + 2, regfile.EndAddress, math.MaxUint32 - 3} {
		b.reset()
		if v, err := b.Read32(addr); !errors.Is(err, fpga.ErrAddress) || v != regmap.Placeholder {
			t.Errorf("read of %#x: %#x, %v", addr, v, err)
		}
		if e, at := b.read(regmap.CommonErrors), b.read(regmap.CommonErrorAddress); e != regmap.CommonErrorsAddress || at != addr {
			t.Errorf("read of %#x: errors %#x at %#x", addr, e, at)
		}
	}
}

// TestBurstsToPlainRegisters checks that all words of a burst are written, up to the first that is refused.
func TestBurstsToPlainRegisters(t *testing.T) {
	b := newBench(t, Config{})
	if err := b.WriteBurst(regmap.CommonScratch, []uint32{1, 2, 3}); err != nil || b.read(regmap.CommonScratch) != 3 {
		t.Errorf("scratch %d, %v", b.read(regmap.CommonScratch), err)
	}
	if err := b.WriteBurst(regmap.QueueDepth, []uint32{5, 0, 7}); !errors.Is(err, fpga.ErrRefused) || b.read(regmap.QueueDepth) != 5 {
		t.Errorf("depth %d, %v", b.read(regmap.QueueDepth), err)
	}
	b.loadFlows(1, 1, nil)
	b.loadDescriptors(regmap.Descriptor{})
	b.write(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
	if err := b.WriteBurst(regmap.GeneratorMemData, nil); err != nil {
		t.Errorf("nothing at all, to memory that is in use: %v", err)
	}
	if err := b.WriteBurst(regmap.GeneratorMemData, []uint32{1}); !errors.Is(err, fpga.ErrRefused) {
		t.Errorf("memory that is in use: %v", err)
	}
}

// TestTimeStopsAtLastCycle checks that device time reaches its last cycle and stops there.
func TestTimeStopsAtLastCycle(t *testing.T) {
	b := newBench(t, Config{})
	b.sleep(olaf.Duration(math.MaxInt64/4000-1) * olaf.Cycle)
	if err := b.Sleep(context.Background(), olaf.Cycle); !errors.Is(err, fpga.ErrRefused) {
		t.Errorf("a cycle after the last one: %v", err)
	}
}

// TestShortFreeze checks that a freeze of two cycles stops the queue's clock for one.
func TestShortFreeze(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(1, 1)})
	b.configure(smart, 8, 1) // a frame takes 256 cycles
	b.loadFlows(1, 1, nil)
	b.loadDescriptors(regmap.Descriptor{})
	b.start()
	b.sleep(100 * olaf.Cycle)
	b.write(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze)
	b.sleep(2 * olaf.Cycle)
	b.write(regmap.QueueControl, regmap.QueueControlEnable)
	b.finish()
	got := b.Drain(nil)
	if len(got) != 1 || got[0].At != olaf.Time(257*olaf.Cycle) {
		t.Errorf("%v, want a departure at cycle 257", got)
	}
}

// TestInspectorShowsFlags merges more updates than a count can represent, and inspects the result.
func TestInspectorShowsFlags(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(1, 3)})
	b.configure(smart, 8, 1)
	b.write(regmap.QueueControl, 0)
	b.write(regmap.QueueLimiterIncrement, 1) // one frame takes practically forever
	b.write(regmap.QueueControl, regmap.QueueControlEnable)
	b.loadFlows(1, 3, func(_ int, f *regmap.Flow) { f.Length = 64 })
	ds := []regmap.Descriptor{{Time: 0, Flow: 2}}
	for i := range 1<<16 + 1 {
		ds = append(ds, regmap.Descriptor{Time: uint64(10 + i), Flow: uint16(i % 2), Sequence: uint32(i),
			Flags: regmap.FlagRetransmission})
	}
	b.loadDescriptors(ds...)
	b.start()
	b.sleep(olaf.Millisecond)
	b.write(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze)
	b.write(regmap.QueueInspectIndex, 1)
	want := uint32(regmap.QueueInspectStateValid | regmap.QueueInspectStateRetransmission | regmap.QueueInspectStateSaturated)
	if state, size := b.read(regmap.QueueInspectState), b.read(regmap.QueueInspectSize); state != want || size&0xffff != 0xffff {
		t.Errorf("state %#x with a count of %d, want %#x with 65535", state, size&0xffff, want)
	}
}

// TestLargestQueueSaysSo checks an ACK for a queue with more slots than its field can represent.
func TestLargestQueueSaysSo(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(1, 1), Slots: engine.MaxSlots, Wire: true})
	b.configure(fifo, engine.MaxSlots, 20)
	b.write(regmap.ModelControl, regmap.ModelControlAck)
	b.loadFlows(1, 1, nil)
	b.loadDescriptors(regmap.Descriptor{})
	b.start()
	b.finish()
	for _, p := range b.DrainPackets(nil) {
		if p.Kind == Ack && p.Status.Slots != math.MaxUint16 {
			t.Errorf("%d slots", p.Status.Slots)
		}
	}
}

// TestReplicationBlockNamesThePort checks that an ACK is sent to members that only the replication block lists, if it
// lists any.
func TestReplicationBlockNamesThePort(t *testing.T) {
	members := [][2]int{{0x8007, 3}, {9, 1}}
	for n := range len(members) + 1 {
		tables := newTables(1, 1)
		delete(tables.groups, 0)
		b := newBench(t, Config{Tables: tables, Wire: true})
		b.configure(smart, 8, 20)
		b.write(regmap.ModelControl, regmap.ModelControlAck)
		b.write(regmap.ReplicationGroupIndex, 0)
		b.write(regmap.ReplicationGroupSize, uint32(n))
		b.write(regmap.ReplicationMemberIndex, 0)
		for _, m := range members[:n] {
			b.write(regmap.ReplicationMemberData, uint32(m[1]<<16|m[0]))
		}
		b.loadFlows(1, 1, nil)
		b.loadDescriptors(regmap.Descriptor{})
		b.start()
		b.finish()
		got := [][2]int{}
		for _, p := range b.DrainPackets(nil) {
			if p.Kind == Ack {
				got = append(got, [2]int{int(p.Update.Worker), int(p.Port)})
			}
		}
		if d := cmp.Diff(members[:n], got); d != "" {
			t.Errorf("worker and port: %s", d)
		}
		none := uint64(0)
		if n == 0 {
			none = 1
		}
		if c := b.count(); c.AcksIn != 1 || c.AcksOut != uint64(n) || c.AcksNoGroup != none {
			t.Errorf("a group of %d: of %d ACKs there are %d copies, %d have no group", n, c.AcksIn, c.AcksOut, c.AcksNoGroup)
		}
	}
}
