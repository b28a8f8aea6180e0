package twin

import (
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
)

// admitting are tables in which those of a switch program determine the contributors.
type admitting struct {
	*fakeTables
	members map[olaf.ClusterID]map[olaf.WorkerID]bool // nil if the pipeline has no such table
	above   map[olaf.ClusterID]bool
}

func (a *admitting) Admits(_ *program.Description, c olaf.ClusterID, w olaf.WorkerID) bool {
	return a.members == nil || a.members[c][w]
}

func (a *admitting) Jobs(*program.Description) (jobs []program.Job, has bool) {
	for c, m := range a.members {
		if len(m) > 0 {
			jobs = append(jobs, program.Job{ID: c, Parent: a.above[c]})
		}
	}
	return jobs, a.members != nil
}

func (a *admitting) set(c olaf.ClusterID, workers ...olaf.WorkerID) {
	m := map[olaf.WorkerID]bool{}
	for _, w := range workers {
		m[w] = true
	}
	a.members[c] = m
	a.version++
}

// TestAdmission checks that updates of workers that are not admitted are dropped and counted as strangers', from the
// first frame after the tables changed, and that a cluster without members loses its contents.
func TestAdmission(t *testing.T) {
	tables := &admitting{fakeTables: newTables(2, 3), members: map[olaf.ClusterID]map[olaf.WorkerID]bool{}}
	tables.set(0, 0, 1)
	tables.set(1, 3, 4, 5)
	b := newBench(t, Config{Tables: tables, Programs: []program.Description{summing}})
	b.write(regmap.AggregatorProgram, summing.Code)
	b.write(regmap.AggregatorH, 3)
	b.configure(fifo|regmap.QueueModeProvenance, 8, 20)
	b.loadFlows(2, 3, nil)
	play := func(flows ...uint16) {
		t.Helper()
		var ds []regmap.Descriptor
		for i, f := range flows {
			ds = append(ds, regmap.Descriptor{Time: uint64(100 * i), Flow: f, Sequence: uint32(i)})
		}
		b.loadDescriptors(ds...)
		b.start()
		b.finish()
	}
	want := func(stranger, in, held, cleared uint64) {
		t.Helper()
		for name, n := range map[string]uint64{"stranger": stranger, "vectors_in": in, "vectors_held": held,
			"vectors_cleared": cleared} {
			if got := b.frontCount(name); got != n {
				t.Errorf("%s = %d, want %d", name, got, n)
			}
		}
	}
	play(0, 2, 1, 2, 3) // worker 2 is in no table
	want(2, 3, 3, 0)
	tables.set(0, 1, 2) // worker 0 is removed; its updates stay
	play(0, 2, 4)
	want(3, 5, 2, 0)
	if got := b.Drain(nil); len(got) != 1 || len(got[0].Contributors) != 3 || got[0].Update.Cluster != 0 {
		t.Errorf("delivered %+v", got)
	}
	tables.set(1) // the job is removed
	play(3)
	want(4, 5, 0, 2)
	tables.members = nil // a pipeline without the table
	tables.version++
	play(3)
	want(4, 6, 1, 2)
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

// TestProgramsUseTheirOwnTables checks that the tables of programs have no effect while updates only queue, and that
// each program uses its own tables.
func TestProgramsUseTheirOwnTables(t *testing.T) {
	tables := &admitting{fakeTables: newTables(1, 2), members: map[olaf.ClusterID]map[olaf.WorkerID]bool{}}
	b := newBench(t, Config{Tables: tables, Programs: []program.Description{summing}})
	b.configure(fifo, 8, 20)
	b.loadFlows(1, 2, nil)
	b.loadDescriptors(burst(4, 2, 10)...)
	b.start()
	b.finish()
	if n := len(b.Drain(nil)); n != 4 {
		t.Fatalf("%d of 4 updates came through", n)
	}
	b.write(regmap.QueueControl, 0)
	b.write(regmap.AggregatorProgram, summing.Code)
	b.write(regmap.QueueControl, regmap.QueueControlEnable)
	b.write(regmap.CommonCommand, regmap.CommonCommandClear)
	b.start()
	b.finish()
	if n := len(b.Drain(nil)); n != 0 || b.frontCount("stranger") != 4 {
		t.Errorf("%d came through, %d strangers", n, b.frontCount("stranger"))
	}
}
