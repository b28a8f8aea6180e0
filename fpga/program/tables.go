package program

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/olafctl/olaf"
)

// Meaning is what a field of a program's tables says about a job. Whoever keeps tables and whoever runs a program go by it, so
// that neither asks whose tables these are.
type Meaning uint8

const (
	JobID     Meaning = iota // Job.ID
	WorkerID                 // Member.Worker
	ChildPort                // Member.Port
	FirstSlot                // Job.Base
	SlotCount                // Job.Slots
	FanIn                    // Job.Fan
	HasParent                // Job.Parent
	TreeLevel                // Job.Level
)

// Field is a field of a table's key, or a parameter of its action.
type Field struct {
	Name  string
	Bits  int
	Means Meaning
}

// Table is what a controller tells a switch about the jobs of a program, in exact-match entries. All key fields together have
// at most 32 bits, and an action has at most MaxParams parameters. The key has the job, and the worker as well where an entry
// is one member's.
type Table struct {
	Name    string // control.table
	Doc     string
	Key     []Field
	Action  string // of an entry
	Does    string // what the action does
	Params  []Field
	Miss    string // what is done without an entry
	Without string // what that does
	// Shared says that a size of 0 shares all slots; otherwise it is all slots from the first on.
	Shared bool
	// Rises says that an entry whose port is UplinkPort is no member's: it names the switch above, to which the job's sums go.
	Rises bool
}

// UplinkPort is how entries write Uplink, in the 16 bits of a port.
const UplinkPort = 1<<16 - 1

// Above says whether an entry with some parameters names the switch above.
func (t *Table) Above(params []uint32) bool {
	at := slices.IndexFunc(t.Params, func(f Field) bool { return f.Means == ChildPort })
	return t.Rises && at >= 0 && params[at] == UplinkPort
}

// Remark is what an entry with some parameters is where its numbers don't show it, in words; empty where they do.
func (t *Table) Remark(params []uint32) string {
	if t.Above(params) {
		return "the switch above"
	}
	return ""
}

// Rising is the table where it also says who is above.
func (t Table) Rising() Table {
	t.Rises = true
	return t
}

// JobKey is the key of a table with an entry a job.
func JobKey() []Field { return []Field{{Name: "job", Bits: 16, Means: JobID}} }

// PartParams give a job its part of a table of slots.
func PartParams() []Field {
	return []Field{{Name: "first", Bits: 32, Means: FirstSlot}, {Name: "size", Bits: 32, Means: SlotCount}}
}

// Range is slots First to End-1.
type Range struct{ First, End uint64 }

// endless is behind every slot that a field of 32 bits can name.
const endless = 1 << 33

// String is how errors name the slots.
func (r Range) String() string {
	if r.End == endless {
		return fmt.Sprintf("slots from %d on", r.First)
	}
	return fmt.Sprintf("slots %d to %d", r.First, r.End-1)
}

// Parts says that entries give jobs slots of their own.
func (t *Table) Parts() bool {
	return slices.ContainsFunc(t.Params, func(f Field) bool { return f.Means == SlotCount })
}

// Part is the slots that an entry with some parameters gives its job alone; an empty one of a job that shares all.
func (t *Table) Part(params []uint32) Range {
	var j Job
	read(t.Params, params, &j, new(Member))
	r := Range{uint64(j.Base), uint64(j.Base) + uint64(j.Slots)}
	if j.Slots == 0 && !t.Shared {
		r.End = endless
	}
	return r
}

// MembersTable is the one that admits workers to jobs, in a control of that name.
func MembersTable(control string) Table {
	return Table{
		Name: control + ".members", Doc: "Who may contribute to a job, and the port of the switch behind which that is.",
		Key:    append(JobKey(), Field{Name: "worker", Bits: 16, Means: WorkerID}),
		Action: "admit", Does: "The worker is a member of the job.",
		Params: []Field{{Name: "port", Bits: 16, Means: ChildPort}},
		Miss:   "refuse", Without: "Nobody admitted the worker: what it sends is dropped and counted.",
	}
}

// MaxParams bounds the parameters of an action.
const MaxParams = 4

// ByMember says that an entry is one member's, not a whole job's.
func (t *Table) ByMember() bool {
	return slices.ContainsFunc(t.Key, func(f Field) bool { return f.Means == WorkerID })
}

// KeyOf is the key of the entry that concerns a worker's part in a job.
func (t *Table) KeyOf(job olaf.ClusterID, worker olaf.WorkerID) []uint32 {
	key := make([]uint32, len(t.Key))
	for i, f := range t.Key {
		key[i] = uint32(f.of(&Job{ID: job}, &Member{Worker: worker}))
	}
	return key
}

// Entry is an entry of a program's table: numbers in the order of the table's fields.
type Entry struct {
	Table  int // among the tables of the description
	Key    []uint32
	Params []uint32
}

// Admits says whether the tables have a say in who contributes.
func (d *Description) Admits() bool {
	return slices.ContainsFunc(d.Tables, func(t Table) bool { return t.ByMember() })
}

// Entries are what controllers write for some jobs. A number that a field is too narrow for is an error that matches ErrConfig.
func (d *Description) Entries(jobs ...Job) (entries []Entry, err error) {
	for i := range jobs {
		for t := range d.Tables {
			of := jobs[i].Members
			switch {
			case !d.Tables[t].ByMember():
				of = make([]Member, 1)
			case d.Tables[t].Rises && jobs[i].Parent:
				of = append(slices.Clone(of), Member{Worker: jobs[i].Above, Port: UplinkPort})
			}
			for m := range of {
				e, err := d.Tables[t].entry(&jobs[i], &of[m])
				if err != nil {
					return nil, err
				}
				e.Table = t
				entries = append(entries, e)
			}
		}
	}
	return entries, nil
}

func (t *Table) entry(j *Job, m *Member) (e Entry, err error) {
	if e.Key, err = t.fill(t.Key, j, m); err == nil {
		e.Params, err = t.fill(t.Params, j, m)
	}
	return e, err
}

func (t *Table) fill(fields []Field, j *Job, m *Member) ([]uint32, error) {
	values := make([]uint32, len(fields))
	for i, f := range fields {
		v := f.of(j, m)
		if v < 0 || v>>f.Bits != 0 {
			return nil, fmt.Errorf("%w: %s of job %d is %d, and %s has %d bits for it", ErrConfig, f.Name, j.ID, v,
				t.Name, f.Bits)
		}
		values[i] = uint32(v)
	}
	return values, nil
}

// of is what a field says about a job and one of its members.
func (f *Field) of(j *Job, m *Member) int64 {
	switch f.Means {
	case JobID:
		return int64(j.ID)
	case WorkerID:
		return int64(m.Worker)
	case ChildPort:
		return int64(m.Port)
	case FirstSlot:
		return int64(j.Base)
	case SlotCount:
		return int64(j.Slots)
	case FanIn:
		return int64(j.Fan)
	case TreeLevel:
		return int64(j.Level)
	}
	if j.Parent {
		return 1
	}
	return 0
}

// set is the reverse of of.
func (f *Field) set(j *Job, m *Member, v uint32) {
	switch f.Means {
	case JobID:
		j.ID = olaf.ClusterID(v)
	case WorkerID:
		m.Worker = olaf.WorkerID(v)
	case ChildPort:
		m.Port = Port(v)
	case FirstSlot:
		j.Base = int(v)
	case SlotCount:
		j.Slots = int(v)
	case FanIn:
		j.Fan = int(v)
	case TreeLevel:
		j.Level = int(v)
	case HasParent:
		j.Parent = v != 0
	}
}

// Jobs are what some entries say, by id, members in the order of their ports. A job is there when each table that has one entry
// a job has its; group adds the members of jobs where no table does, and may be nil.
func (d *Description) Jobs(entries []Entry, group func(job olaf.ClusterID) []Member) []Job {
	found := map[olaf.ClusterID]*Job{}
	whole := map[olaf.ClusterID]int{}
	for i := range entries {
		t := &d.Tables[entries[i].Table]
		said, m := t.Read(entries[i].Key, entries[i].Params)
		j := found[said.ID]
		if j == nil {
			j = &Job{ID: said.ID}
			found[said.ID] = j
		}
		read(t.Params, entries[i].Params, j, &m)
		switch {
		case t.Above(entries[i].Params):
			j.Parent, j.Above = said.Parent, said.Above
		case t.ByMember():
			j.Members = append(j.Members, m)
		default:
			whole[j.ID]++
		}
	}
	return d.complete(found, whole, group)
}

// Read is what one entry says, of a job and of one of its members. Of an entry that names the switch above the member is nobody.
func (t *Table) Read(key, params []uint32) (j Job, m Member) {
	read(t.Key, key, &j, &m)
	read(t.Params, params, &j, &m)
	if t.Above(params) {
		j.Parent, j.Above = true, m.Worker
	}
	return j, m
}

func read(fields []Field, values []uint32, j *Job, m *Member) {
	for i := range fields {
		fields[i].set(j, m, values[i])
	}
}

// complete leaves out jobs of which a table says nothing yet, and sorts the others.
func (d *Description) complete(found map[olaf.ClusterID]*Job, whole map[olaf.ClusterID]int,
	group func(olaf.ClusterID) []Member) (jobs []Job) {
	want := 0
	for i := range d.Tables {
		if !d.Tables[i].ByMember() {
			want++
		}
	}
	for id, j := range found {
		if whole[id] < want {
			continue
		}
		if j.Parent && want == 0 && len(j.Members) == 0 { // only who is above is known
			continue
		}
		if !d.Admits() && group != nil {
			j.Members = slices.Clone(group(id))
		}
		slices.SortFunc(j.Members, func(a,
			b Member) int {
			return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Worker, b.Worker))
		})
		jobs = append(jobs, *j)
	}
	slices.SortFunc(jobs, func(a, b Job) int { return cmp.Compare(a.ID, b.ID) })
	return jobs
}

// Follower keeps a program's jobs what tables say.
type Follower struct {
	Program Program
	jobs    map[olaf.ClusterID]Job
}

// Follow ends jobs that are gone or changed and admits those that are new or changed; a job that stays the same keeps what it
// holds. What the program refuses is left out and named; the errors match ErrConfig.
func (f *Follower) Follow(jobs []Job) error {
	next := make(map[olaf.ClusterID]Job, len(jobs))
	for i := range jobs {
		next[jobs[i].ID] = jobs[i]
	}
	for _, id := range sortedIDs(f.jobs) {
		if j, stays := next[id]; !stays || !j.same(f.jobs[id]) {
			f.Program.Remove(id)
			delete(f.jobs, id)
		}
	}
	if f.jobs == nil {
		f.jobs = make(map[olaf.ClusterID]Job, len(jobs))
	}
	var refused []error
	for i := range jobs {
		if _, known := f.jobs[jobs[i].ID]; known {
			continue
		}
		if err := f.Program.Configure(jobs[i]); err != nil {
			refused = append(refused, err)
			continue
		}
		f.jobs[jobs[i].ID] = jobs[i]
	}
	return errors.Join(refused...)
}

func (j *Job) same(k Job) bool {
	return slices.Equal(j.Members, k.Members) && j.Fan == k.Fan && j.Base == k.Base && j.Slots == k.Slots &&
		j.Parent == k.Parent && j.Level == k.Level && j.In == k.In && j.Out == k.Out
}

func sortedIDs(jobs map[olaf.ClusterID]Job) []olaf.ClusterID { return slices.Sorted(maps.Keys(jobs)) }
