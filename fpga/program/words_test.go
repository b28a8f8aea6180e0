package program_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// TestWords checks the words used in golden vectors and pages, and the text for a number without a word.
func TestWords(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"up": program.Up, "down": program.Down, "others": program.Others, "port:0": program.Dest(0), "port:7": program.Dest(7),
		"port:-4": program.Dest(-4),
		"other":   program.Other, "data": program.Data, "result": program.Result, "ack": program.Ack, "control": program.Control,
		"kind(5)": program.Kind(5),
		"opaque":  program.Opaque, "float32": program.Float32, "int32 wrapping": program.Wrapping,
		"int32 saturating":         program.Saturating,
		"int32 saturating, sticky": program.Sticky, "arithmetic(5)": program.Arithmetic(5),
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	d := program.Description{Classes: 2, Ledger: program.NewLedger([]olaf.Counter{{Name: "added"}, {Name: "lost", Column: "LOST"}},
		"added")}
	for c, want := range []string{"added", "lost", "class(2)"} {
		if got := d.ClassName(program.Class(c)); got != want {
			t.Errorf("class %d is %q, want %q", c, got, want)
		}
	}
}

// TestAccountOfAProgram checks that a program's account contains its counts under the names in its ledger and in its
// order.
func TestAccountOfAProgram(t *testing.T) {
	d := program.Description{Classes: 2, Ledger: program.NewLedger([]olaf.Counter{{Name: "added"}, {Name: "lost", Column: "LOST"}},
		"added")}
	c := d.CountsOf(counted{5, 1, 9, 4, 3, 2})
	for name, want := range map[string]int64{"added": 5, "lost": 1, "vectors_in": 9, "vectors_out": 4, "vectors_held": 3,
		"vectors_cleared": 2} {
		if c.Of(name) != want {
			t.Errorf("%s is %d, want %d", name, c.Of(name), want)
		}
	}
	if err := c.Balance(); err != nil {
		t.Error(err)
	}
	for i := program.VectorsIn; i < program.Sums; i++ {
		wrong := counted{5, 1, 9, 4, 3, 2}
		wrong[d.Classes+i]++
		if err := d.CountsOf(wrong).Balance(); !errors.Is(err, olaf.ErrAccounting) {
			t.Errorf("sum %d is off by one: %v", i, err)
		}
	}
	for _, counter := range d.Ledger.Counters {
		unit := "vectors"
		if !strings.HasPrefix(counter.Name, unit) {
			unit = "packets"
		}
		if counter.Unit != unit || counter.Gauge != (counter.Name == "vectors_held") {
			t.Errorf("%+v", counter)
		}
	}
	if !slices.Equal(d.Ledger.Inside, []string{"vectors_held"}) {
		t.Errorf("inside are %v", d.Ledger.Inside)
	}
}

// counted is a program that returns fixed counts and does nothing.
type counted []uint64

func (c counted) Receive(olaf.Time, program.Port, *program.Packet, []uint32, program.Out) program.Class {
	return 0
}
func (c counted) Configure(program.Job) error { return nil }
func (c counted) Remove(olaf.ClusterID)       {}
func (c counted) Slots() int                  { return 0 }
func (c counted) Slot(int) program.Slot       { return program.Slot{} }
func (c counted) CountOccupied() int          { return 0 }
func (c counted) Memory() olaf.Size           { return 0 }
func (c counted) Counts() []uint64            { return c }
func (c counted) Reset()                      {}

// TestMarks checks that marks are those of stored runs: SplitMix64 of worker and vector, next to each other in a word.
func TestMarks(t *testing.T) {
	for _, c := range []struct {
		worker olaf.WorkerID
		vector uint32
		want   uint64
	}{
		{0, 0, 0xe220a8397b1dcdaf}, {0, 1, 0x910a2dec89025cc1}, {1, 0, 0xc42c5a1aa3820138}, {65535, 1<<32 - 1, 0xc5c358ac47bd80ec},
	} {
		if got := program.ContributionMark(c.worker, c.vector); got != c.want {
			t.Errorf("worker %d, vector %d: %#x, want %#x", c.worker, c.vector, got, c.want)
		}
	}
	for workers := range 5 {
		sum := uint64(0)
		for w := range workers {
			sum += program.ContributionMark(olaf.WorkerID(w), 9)
		}
		if got := program.MarkWorkers(workers, 9); got != sum {
			t.Errorf("%d workers: %#x, want %#x", workers, got, sum)
		}
	}
	want := program.Trace{Inside: program.ContributionMark(3, 4), NewestNS: 500, OldestNS: 500, SumNS: 500, Vectors: 1}
	if got := program.NewTrace(3, 4, 500); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	full, copied := program.Trace{Inside: 1, NewestNS: 2, OldestNS: 3, SumNS: 4, ReadSum: 5, Vectors: 6}, program.Trace{}
	if copied.Set(&full); copied != full {
		t.Errorf("%+v, want %+v", copied, full)
	}
}

// emitted records the destination of a packet.
type emitted struct {
	to     []program.Dest
	packet *program.Packet
	lanes  []uint32
}

func (e *emitted) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	e.to, e.packet, e.lanes = append(e.to, to), p, lanes
}

// TestForward checks that packets that do not concern a program are forwarded in the direction in which they arrived.
func TestForward(t *testing.T) {
	for from, want := range map[program.Port]program.Dest{program.Uplink: program.Down, 0: program.Up, 1: program.Up, 9: program.Up} {
		var out emitted
		p, lanes := &program.Packet{Seg: 5}, []uint32{1, 2}
		program.ForwardPacket(from, p, lanes, &out)
		if !slices.Equal(out.to, []program.Dest{want}) || out.packet != p || !slices.Equal(out.lanes, lanes) {
			t.Errorf("from %d: %+v, want %v", from, out, want)
		}
	}
}

// every returns a description with a table that has a field with each meaning.
func every() program.Description {
	bits := func(name string, n int, m program.Meaning) program.Field {
		return program.Field{Name: name, Bits: n, Means: m}
	}
	return program.Description{Name: "every", Tables: []program.Table{
		{Name: "every.members", Key: []program.Field{bits("job", 16, program.JobID), bits("worker", 16, program.WorkerID)},
			Params: []program.Field{bits("port", 8, program.ChildPort)}},
		{Name: "every.jobs", Key: program.JobKey(),
			Params: append(program.PartParams(), bits("fan", 5, program.FanIn), bits("parent", 1, program.HasParent))},
		{Name: "every.levels", Key: program.JobKey(), Params: []program.Field{bits("level", 3, program.TreeLevel)}, Shared: true},
	}}
}

// TestEveryFieldSetsItsMeaning checks that every field sets what it means, for all values that its bits allow, and
// nothing else. Values out of range are rejected.
func TestEveryFieldSetsItsMeaning(t *testing.T) {
	d := every()
	for _, c := range []struct {
		field string
		most  int
		set   func(*program.Job, int)
	}{
		{"job", 1<<16 - 1, func(j *program.Job, n int) { j.ID = olaf.ClusterID(n) }},
		{"worker", 1<<16 - 1, func(j *program.Job, n int) { j.Members[0].Worker = olaf.WorkerID(n) }},
		{"port", 1<<8 - 1, func(j *program.Job, n int) { j.Members[0].Port = program.Port(n) }},
		{"first", 1<<32 - 1, func(j *program.Job, n int) { j.Base = n }},
		{"size", 1<<32 - 1, func(j *program.Job, n int) { j.Slots = n }},
		{"fan", 1<<5 - 1, func(j *program.Job, n int) { j.Fan = n }},
		{"parent", 1, func(j *program.Job, n int) { j.Parent = n == 1 }},
		{"level", 1<<3 - 1, func(j *program.Job, n int) { j.Level = n }},
	} {
		for _, n := range []int{0, 1, c.most, c.most + 1, -1} {
			j := program.Job{ID: 1, Members: []program.Member{{Worker: 2, Port: 3}}, Base: 4, Slots: 5, Fan: 6, Level: 7}
			c.set(&j, n)
			entries, err := d.Entries(j)
			narrow := c.field == "job" || c.field == "worker" || c.field == "parent" // the field is as wide as its value
			if fits := n >= 0 && n <= c.most || narrow; (err == nil) != fits {
				t.Errorf("%s of %d: %v", c.field, n, err)
			}
			if err != nil {
				if !errors.Is(err, program.ErrConfig) ||
					!strings.Contains(err.Error(), fmt.Sprintf("%s of job 1 is %d, and every.", c.field, n)) {
					t.Error(err)
				}
				continue
			}
			for i, e := range entries {
				for f, field := range slices.Concat(d.Tables[i].Key, d.Tables[i].Params) {
					if v := slices.Concat(e.Key, e.Params)[f]; field.Name == c.field && c.field != "parent" && !narrow && int(v) != n {
						t.Errorf("%s of %d is written as %d", c.field, n, v)
					}
				}
			}
			if diff := cmp.Diff([]program.Job{j}, d.Jobs(entries, nil)); diff != "" {
				t.Errorf("%s of %d: %s", c.field, n, diff)
			}
		}
	}
	if key := d.Tables[0].KeyOf(9, 8); !slices.Equal(key, []uint32{9, 8}) {
		t.Errorf("the key is %v", key)
	}
}

// TestOrderOfJobs checks that members are sorted by port, then by number, and jobs by id, and that a job without
// entries in all its tables does not exist.
func TestOrderOfJobs(t *testing.T) {
	d := every()
	members := []program.Member{{Worker: 9, Port: 1}, {Worker: 1, Port: 2}, {Worker: 5, Port: 2}, {Worker: 0, Port: 3}}
	jobs := []program.Job{{ID: 2, Members: members, Slots: 1}, {ID: 30, Members: members, Slots: 1},
		{ID: 400, Members: members, Slots: 1}}
	entries, err := d.Entries(jobs...)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(entries)
	if diff := cmp.Diff(jobs, d.Jobs(entries, func(olaf.ClusterID) []program.Member { t.Error("a group was asked"); return nil })); diff != "" {
		t.Error(diff)
	}
	for i, e := range entries {
		if d.Tables[e.Table].ByMember() {
			continue
		}
		if diff := cmp.Diff(len(jobs)-1, len(d.Jobs(slices.Delete(slices.Clone(entries), i, i+1), nil))); diff != "" {
			t.Errorf("without %+v: %s", e, diff)
		}
	}
	if got := d.Jobs(entries[:0], nil); len(got) != 0 {
		t.Errorf("nothing is %+v", got)
	}
}

// TestParts checks that a partition ends where its parameters state. A partition of size 0 is the whole table, or is
// shared by all jobs.
func TestParts(t *testing.T) {
	alone := program.Table{Params: program.PartParams()}
	shared := program.Table{Params: program.PartParams(), Shared: true}
	for _, c := range []struct {
		table  *program.Table
		params []uint32
		want   program.Range
		words  string
	}{
		{&alone, []uint32{4, 3}, program.Range{First: 4, End: 7}, "slots 4 to 6"},
		{&shared, []uint32{4, 3}, program.Range{First: 4, End: 7}, "slots 4 to 6"},
		{&alone, []uint32{4, 0}, program.Range{First: 4, End: 1 << 33}, "slots from 4 on"},
		{&shared, []uint32{4, 0}, program.Range{First: 4, End: 4}, "slots 4 to 3"},
		{&alone, []uint32{1<<32 - 1, 1<<32 - 1}, program.Range{First: 1<<32 - 1, End: 1<<33 - 2}, "slots 4294967295 to 8589934589"},
	} {
		got := c.table.Partition(c.params)
		if got != c.want || got.String() != c.words || !c.table.HasPartitions() {
			t.Errorf("%v: %+v, %q; want %+v, %q", c.params, got, got, c.want, c.words)
		}
	}
	if (&program.Table{Params: []program.Field{{Means: program.FirstSlot}}}).HasPartitions() {
		t.Error("a table without sizes gives parts")
	}
}

// followed is a program that records which jobs were admitted and removed.
type followed struct {
	counted
	said []string
}

func (f *followed) Configure(j program.Job) error {
	f.said = append(f.said, fmt.Sprint("+", j.ID))
	return nil
}

func (f *followed) Remove(id olaf.ClusterID) { f.said = append(f.said, fmt.Sprint("-", id)) }

// TestFollowerNoticesEveryChange checks that any change of a job restarts the job, and that it is left alone if nothing
// changes.
func TestFollowerNoticesEveryChange(t *testing.T) {
	job := func() program.Job {
		return program.Job{ID: 7, Members: []program.Member{{Worker: 1, Port: 2}}, Fan: 3, Base: 4, Slots: 5, Parent: true, Level: 6,
			In: 7, Out: 8}
	}
	for name, change := range map[string]func(*program.Job){
		"members": func(j *program.Job) { j.Members = append(j.Members, program.Member{}) },
		"worker":  func(j *program.Job) { j.Members[0].Worker++ },
		"port":    func(j *program.Job) { j.Members[0].Port++ }, "fan": func(j *program.Job) { j.Fan++ },
		"base":  func(j *program.Job) { j.Base++ },
		"slots": func(j *program.Job) { j.Slots++ }, "parent": func(j *program.Job) { j.Parent = false },
		"level": func(j *program.Job) { j.Level++ },
		"in":    func(j *program.Job) { j.In++ }, "out": func(j *program.Job) { j.Out++ },
	} {
		p := &followed{}
		f := programtest.Follower{Program: p}
		changed := job()
		change(&changed)
		for _, jobs := range [][]program.Job{{job()}, {job()}, {changed}, {changed}, {{ID: 9}, changed}, {}} {
			if err := f.Update(jobs); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"+7", "-7", "+7", "+9", "-7", "-9"}; !slices.Equal(p.said, want) {
			t.Errorf("%s: %v, want %v", name, p.said, want)
		}
	}
}
