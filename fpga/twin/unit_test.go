package twin

import (
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestUnit checks that updates wait one behind the other in front of the program for as long as its hardware takes, and
// that only updates beyond its room are lost and counted.
func TestUnit(t *testing.T) {
	for _, u := range []aggregator.Unit{
		{BusBytes: 32, Beat: 5 * olaf.Nanosecond, Pipeline: 16, Room: 2}, {BusBytes: 256, Beat: 6*olaf.Cycle + 1, Room: 2},
		{BusBytes: 256, Beat: 6 * olaf.Cycle, Room: 3},
	} {
		throughUnit(t, u)
	}
}

func throughUnit(t *testing.T, u aggregator.Unit) {
	b := newBench(t, Config{Tables: newTables(1, 3), Programs: []program.Description{summing}, Unit: &u})
	b.write(regmap.AggregatorProgram, summing.Code)
	b.write(regmap.AggregatorH, 1)
	b.configure(fifo|regmap.QueueModeProvenance, 64, 20)
	b.loadFlows(1, 3, nil)
	inlet, lost := aggregator.NewInlet(u), uint64(0)
	var due []int64 // in run time
	var ds []regmap.Descriptor
	for i := range 40 { // every 4 cycles, at the speed of the bus; then a pause, then again
		at := int64(4*i + 400*(i/20))
		ds = append(ds, regmap.Descriptor{Time: uint64(at), Flow: uint16(i % 3), Sequence: uint32(i)})
		through, ok := inlet.Pass(cycleTime(at), 256)
		if !ok {
			lost++
			continue
		}
		due = append(due, cycleOf(through+olaf.Time(olaf.Cycle)-1))
	}
	b.loadDescriptors(ds...)
	b.start()
	b.finish()
	if lost == 0 || len(due) == 0 {
		t.Fatalf("%d lost, %d through: nothing is tried", lost, len(due))
	}
	got := b.Drain(nil)
	if len(got) != len(due) {
		t.Fatalf("%d updates came, want %d", len(got), len(due))
	}
	for i := range got {
		if wire := int64(13); cycleOf(got[i].At) < due[i]+wire || i > 0 && got[i].At <= got[i-1].At { // 256 bytes at 20 a cycle
			t.Errorf("update %d came at cycle %d, through at %d", i, cycleOf(got[i].At), due[i])
		}
	}
	if got[0].At != cycleTime(due[0]+13) {
		t.Errorf("the first came at cycle %d, want %d", cycleOf(got[0].At), due[0]+13)
	}
	c, err := fpga.SnapshotProgram(b)
	if err != nil {
		t.Fatal(err)
	}
	if c.Queue.LostBeforeEngine != lost || c.Queue.In != uint64(len(due)) || c.Generator.SentPackets != uint64(len(ds)) {
		t.Errorf("%d lost and %d in of %d, want %d lost", c.Queue.LostBeforeEngine, c.Queue.In, c.Generator.SentPackets, lost)
	}
}

// TestFlushLosesWaitingUpdates checks that updates that wait for the unit are still in the card, and are lost when the
// card is flushed.
func TestFlushLosesWaitingUpdates(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(1, 3), Programs: []program.Description{summing},
		Unit: &aggregator.Unit{BusBytes: 32, Beat: olaf.Microsecond, Room: 8}})
	b.write(regmap.AggregatorProgram, summing.Code)
	b.configure(fifo, 8, 20)
	b.loadFlows(1, 3, nil)
	b.loadDescriptors(regmap.Descriptor{Flow: 0}, regmap.Descriptor{Flow: 1})
	b.start()
	b.sleep(olaf.Microsecond)
	if b.read(regmap.QueueStatus)&regmap.QueueStatusEmpty != 0 {
		t.Error("nothing is inside")
	}
	b.write(regmap.QueueCommand, regmap.QueueCommandFlush)
	if b.read(regmap.QueueStatus)&regmap.QueueStatusEmpty == 0 {
		t.Error("something is inside after a flush")
	}
	b.write(regmap.CommonCommand, regmap.CommonCommandSnapshot)
	c, err := regmap.ReadQueueCounters(b)
	if err != nil || c.LostBeforeEngine != 2 || c.In != 0 {
		t.Errorf("%d lost, %d in: %v", c.LostBeforeEngine, c.In, err)
	}
}
