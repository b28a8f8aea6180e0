package program_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// told returns the programs whose jobs are determined by controllers.
func told(t testing.TB) []program.Description {
	t.Helper()
	all := slices.DeleteFunc(programs.AllPrograms(), func(d program.Description) bool { return len(d.Tables) == 0 })
	if len(all) < 4 {
		t.Fatalf("only %d programs have tables", len(all))
	}
	return all
}

// TestTablesAreWithinTheirBounds checks that a key is a 32-bit number, that an entry describes one member or one job,
// and that each program counts strangers in a class of its own.
func TestTablesAreWithinTheirBounds(t *testing.T) {
	for _, d := range told(t) {
		names := map[string]bool{}
		for _, table := range d.Tables {
			bits := 0
			for _, f := range table.Key {
				bits += f.Bits
			}
			if bits > 32 || table.Key[0].Means != program.JobID || len(table.Params) > program.MaxParams || names[table.Name] {
				t.Errorf("%s: %d key bits, %d parameters", table.Name, bits, len(table.Params))
			}
			names[table.Name] = true
		}
		if d.ClassName(d.Stranger) != "stranger" {
			t.Errorf("%s counts strangers as %s", d.Name, d.ClassName(d.Stranger))
		}
	}
}

// drawJob draws any job that its program's tables can describe.
func drawJob(t *rapid.T, d *program.Description, id olaf.ClusterID) program.Job {
	j := program.Job{ID: id}
	for i := range d.Tables {
		for _, f := range d.Tables[i].Params {
			v := rapid.IntRange(0, 1<<min(f.Bits, 20)-1).Draw(t, f.Name)
			switch f.Means {
			case program.FirstSlot:
				j.Base = v
			case program.SlotCount:
				j.Slots = v
			case program.FanIn:
				j.Fan = v
			case program.TreeLevel:
				j.Level = v
			case program.HasParent:
				j.Parent = v != 0
			}
		}
	}
	if d.AdmitsMembers() {
		for port := range rapid.IntRange(1, 4).Draw(t, "members") {
			j.Members = append(j.Members, program.Member{Worker: olaf.WorkerID(rapid.Uint16().Draw(t, "worker")),
				Port: program.Port(port)})
		}
		if slices.ContainsFunc(d.Tables, func(t program.Table) bool { return t.Rises }) && rapid.Bool().Draw(t, "above") {
			j.Parent, j.Above = true, olaf.WorkerID(rapid.Uint16().Draw(t, "parent"))
		}
	}
	return j
}

// TestEntriesRoundTripJobs checks that entries written for jobs are read as the same jobs, in any order of the entries.
func TestEntriesRoundTripJobs(t *testing.T) {
	all := told(t)
	rapid.Check(t, func(t *rapid.T) {
		d := &all[rapid.IntRange(0, len(all)-1).Draw(t, "program")]
		var jobs []program.Job
		for id := range rapid.IntRange(0, 3).Draw(t, "jobs") {
			jobs = append(jobs, drawJob(t, d, olaf.ClusterID(7*id)))
		}
		entries, err := d.Entries(jobs...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(jobs, d.Jobs(rapid.Permutation(entries).Draw(t, "entries"), nil)); diff != "" {
			t.Errorf("%s: %s", d.Name, diff)
		}
	})
}

func TestEntriesRefuse(t *testing.T) {
	for _, d := range told(t) {
		if !d.AdmitsMembers() {
			continue
		}
		if _, err := d.Entries(program.Job{Members: []program.Member{{Port: program.Uplink}}}); !errors.Is(err, program.ErrConfig) {
			t.Errorf("%s: a member behind the uplink: %v", d.Name, err)
		}
		if _, err := d.Entries(program.Job{Members: []program.Member{{Port: 1 << 16}}}); !errors.Is(err, program.ErrConfig) {
			t.Errorf("%s: a port beyond the field: %v", d.Name, err)
		}
	}
}

// TestParentIsNotAMember checks that the parent of a job is not a member, and that an entry for a parent alone does not
// make a job.
func TestParentIsNotAMember(t *testing.T) {
	d := iswitch.Describe()
	entries, err := d.Entries(program.Job{ID: 3, Parent: true, Above: 40, Members: []program.Member{{Worker: 7, Port: 2}}})
	if err != nil || len(entries) != 2 {
		t.Fatalf("%+v, %v", entries, err)
	}
	want := []program.Job{{ID: 3, Parent: true, Above: 40, Members: []program.Member{{Worker: 7, Port: 2}}}}
	if diff := cmp.Diff(want, d.Jobs(entries, nil)); diff != "" {
		t.Error(diff)
	}
	for i := range entries {
		if above := d.Tables[entries[i].Table].NamesParent(entries[i].Params); above != (entries[i].Params[0] == program.UplinkPort) {
			t.Errorf("%+v: above is %v", entries[i], above)
		} else if jobs := d.Jobs(entries[i:i+1], nil); above != (len(jobs) == 0) {
			t.Errorf("%+v alone says %+v", entries[i], jobs)
		}
	}
	p, err := d.New(program.Config{Slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	f := programtest.Follower{Program: p}
	for _, up := range []bool{true, false} { // with a parent the sum goes up; without one it goes down
		jobs := d.Jobs(entries, nil)
		jobs[0].Parent = up
		if err := f.Update(jobs); err != nil {
			t.Fatal(err)
		}
		out := &sent{}
		p.Receive(0, 2, &program.Packet{Kind: program.Data, Job: 3, Lanes: 1, Count: 1}, []uint32{0}, out)
		if want := map[bool]program.Dest{true: program.Up, false: program.Down}[up]; len(out.to) != 1 || out.to[0] != want {
			t.Errorf("parent %v: sums went to %v", up, out.to)
		}
	}
}

// sent records the destinations of packets.
type sent struct{ to []program.Dest }

func (s *sent) Emit(to program.Dest, _ *program.Packet, _ []uint32) { s.to = append(s.to, to) }

// TestJobsOfGroups checks that a job that lacks entries in a table does not exist yet, and that members that are in no
// table come from the job's group.
func TestJobsOfGroups(t *testing.T) {
	d := p4inc.Describe()
	entries, err := d.Entries(program.Job{ID: 3, Fan: 2, Base: 10, Slots: 5})
	if err != nil {
		t.Fatal(err)
	}
	group := func(job olaf.ClusterID) []program.Member {
		return []program.Member{{Worker: 9, Port: 2}, {Worker: olaf.WorkerID(job), Port: 1}}
	}
	want := []program.Job{{ID: 3, Fan: 2, Base: 10, Slots: 5, Members: []program.Member{{Worker: 3, Port: 1}, {Worker: 9, Port: 2}}}}
	if diff := cmp.Diff(want, d.Jobs(entries, group)); diff != "" {
		t.Error(diff)
	}
	for i := range entries {
		if jobs := d.Jobs(entries[i:i+1], group); len(jobs) != 0 {
			t.Errorf("half of it is %+v", jobs)
		}
	}
}

// TestFollower checks that a program follows its tables: a job that stays keeps its state, a job that changes or is
// removed loses it, and an impossible job is named and left out.
func TestFollower(t *testing.T) {
	sw, err := p4inc.New(program.Config{Slots: 16})
	if err != nil {
		t.Fatal(err)
	}
	members := func(n int) (m []program.Member) {
		for i := range n {
			m = append(m, program.Member{Worker: olaf.WorkerID(i), Port: program.Port(i)})
		}
		return m
	}
	one := program.Job{ID: 1, Base: 0, Slots: 8, Members: members(2)}
	two := program.Job{ID: 2, Base: 8, Slots: 8, Members: members(3)}
	f := programtest.Follower{Program: sw}
	follow := func(held int, jobs ...program.Job) {
		t.Helper()
		if err := f.Update(jobs); err != nil {
			t.Error(err)
		}
		if n := sw.CountOccupied(); n != held {
			t.Errorf("%d held, want %d", n, held)
		}
	}
	send := func(job olaf.ClusterID, index uint32) program.Class {
		return sw.Receive(0, 0, &program.Packet{Kind: program.Data, Job: job, Index: index, Trace: program.NewTrace(0, 0, 0)}, nil,
			nowhere{})
	}
	follow(0, one, two)
	if a, b := send(1, 0), send(2, 8); a != p4inc.Consumed || b != p4inc.Consumed {
		t.Errorf("classes %d, %d", a, b)
	}
	follow(2, one, two) // the same jobs again
	two.Members = members(2)
	follow(1, one, two)
	follow(1, one)
	if c := send(2, 8); c != p4inc.Forwarded {
		t.Errorf("a job that is gone: %d", c)
	}
	// Jobs may swap their segments in one update.
	moved := program.Job{ID: 1, Base: 8, Slots: 8, Members: members(2)}
	two.Base = 0
	follow(0, moved, two)
	three := program.Job{ID: 3, Base: 4, Slots: 8, Members: members(2)}
	if err := f.Update([]program.Job{moved, two, three}); !errors.Is(err, program.ErrConfig) {
		t.Errorf("overlapping segments: %v", err)
	}
	if c := send(3, 4); c != p4inc.Forwarded {
		t.Errorf("a job that was refused: %d", c)
	}
	follow(0, three) // now the table has room
	if c := send(3, 4); c != p4inc.Consumed {
		t.Errorf("a job that was refused before: %d", c)
	}
}

type nowhere struct{}

func (nowhere) Emit(program.Dest, *program.Packet, []uint32) {}
