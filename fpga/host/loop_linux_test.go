package host

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/switchml"
	"github.com/olafctl/olaf/fpga/regmap"
)

// one is a table of jobs with one entry.
type one struct{ job program.Job }

func (o one) Admits(*program.Description, olaf.ClusterID, olaf.WorkerID) bool { return true }
func (o one) Jobs(*program.Description) ([]program.Job, bool)                 { return []program.Job{o.job}, true }

func jobOf(id olaf.ClusterID, workers int) program.Job {
	j := program.Job{ID: id, Slots: 4}
	for w := range workers {
		j.Members = append(j.Members, program.Member{Worker: olaf.WorkerID(w), Port: program.Port(w)})
	}
	return j
}

// TestLoop checks that hosts reach a card's program, that registers show its counts and contents, that tables determine
// the jobs, and that updates of the generator that bypass it are reported.
func TestLoop(t *testing.T) {
	c := open(t)
	if _, err := c.OpenLoop(program.Config{Slots: 4}); !errors.Is(err, fpga.ErrRefused) {
		t.Errorf("a queue that stands: %v", err)
	}
	d := switchml.Describe()
	configure := func() {
		t.Helper()
		if err := errors.Join(fpga.ConfigureQueue(context.Background(), c,
			fpga.QueueConfig{Discipline: "fifo", Depth: 1, Program: &d, H: 2}), fpga.ClearCounters(c)); err != nil {
			t.Fatal(err)
		}
	}
	configure()
	c.SetTables(func() aggregator.Admission { return one{jobOf(1, 2)} })
	p, err := c.OpenLoop(program.Config{Slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Configure(jobOf(1, 3)); !errors.Is(err, fpga.ErrRefused) {
		t.Errorf("a job with more workers than the tables have: %v", err)
	}
	if err := p.Configure(jobOf(1, 2)); err != nil {
		t.Fatal(err)
	}
	send := func(from program.Port, slot uint32) {
		packet := program.Packet{Kind: program.Data, Job: 1, Index: slot, Lanes: 64, Trace: program.Trace{Vectors: 1}}
		p.Receive(olaf.Time(olaf.Millisecond), from, &packet, nil, discard{})
	}
	send(0, 2)
	send(0, 3)
	send(1, 3)
	read := func(at uint32) uint32 {
		t.Helper()
		v, err := c.Read32(at)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if held, most := read(regmap.AggregatorOccupied), read(regmap.AggregatorPeakOccupied); held != 1 || most != 2 {
		t.Errorf("%d slots held, %d at most", held, most)
	}
	counts, err := fpga.SnapshotProgram(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range p.Counts() {
		if have := *counts.Aggregator.At(regmap.AggregatorCount0 + uint32(8*i)); have != n {
			t.Errorf("%s is %d, want %d", d.Ledger.Counters[i].Name, have, n)
		}
	}
	if a := &counts.Aggregator; a.OccupancyIntegral < a.OccupancyCycles || a.OccupancyIntegral > 2*a.OccupancyCycles {
		t.Errorf("one slot or two were held for %d cycles, and %d slot cycles counted", a.OccupancyCycles, a.OccupancyIntegral)
	}
	before := counts.Aggregator.OccupancyCycles
	if err := errors.Join(c.Write32(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze),
		c.Write32(regmap.AggregatorInspectIndex, 0)); err != nil {
		t.Fatal(err)
	}
	if at := read(regmap.AggregatorInspectSegment); read(regmap.AggregatorInspectState) == 0 || at != 2 {
		t.Errorf("slot %d is shown", at)
	}
	if err := c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandArm); !errors.Is(err, fpga.ErrRefused) ||
		!strings.Contains(err.Error(), "for hosts that wait") {
		t.Errorf("the generator beside a program: %v", err)
	}
	cleared := regmap.AggregatorCount0 + uint32(8*d.Ledger.Index("vectors_cleared"))
	if err := c.Write32(regmap.QueueCommand, regmap.QueueCommandFlush); err != nil {
		t.Fatal(err)
	}
	if counts, err = fpga.SnapshotProgram(c); err != nil || *counts.Aggregator.At(cleared) != 1 ||
		read(regmap.AggregatorOccupied) != 0 || counts.Aggregator.OccupancyCycles <= before {
		t.Errorf("after a flush: %+v, %v", counts.Aggregator, err)
	}
	configure()
	if counts, err = fpga.SnapshotProgram(c); err != nil || counts.Aggregator != (regmap.AggregatorCounters{}) ||
		read(regmap.AggregatorOccupied) != 0 {
		t.Errorf("after another start: %+v, %v", counts.Aggregator, err)
	}
}
