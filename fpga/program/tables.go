package program

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
)

// Meaning is the property of a job that a table field sets. Tables are connected to programs only by meanings, so code
// that handles tables does not depend on the program.
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

// Field describes a field in a table's key, or a parameter of its action.
type Field struct {
	Name  string
	Bits  int
	Means Meaning
}

// Table describes a table whose entries configure the jobs of a program. A controller writes exact-match entries. The
// key contains the job, and also the worker if there is an entry per member. All key fields together have at most 32
// bits, and an action has at most MaxParams parameters.
type Table struct {
	Name    string // control.table
	Doc     string
	Key     []Field
	Action  string // action of an entry
	Does    string // description of the action
	Params  []Field
	Miss    string // action without an entry
	Without string // description of that action, for the case without an entry
	// Shared is set if a size of 0 means that all slots are shared. Otherwise a size of 0 means all slots from the
	// first on.
	Shared bool
	// Rises is set if an entry with port UplinkPort identifies the parent switch, to which the job's sums go, instead
	// of a member.
	Rises bool
}

// UplinkPort is the value of Uplink in the 16-bit port field of an entry.
const UplinkPort = 1<<16 - 1

// NamesParent reports whether an entry with these parameters identifies the parent switch instead of a member.
func (t *Table) NamesParent(params []uint32) bool {
	at := slices.IndexFunc(t.Params, func(f Field) bool { return f.Means == ChildPort })
	return t.Rises && at >= 0 && params[at] == UplinkPort
}

// Remark returns a note that explains an entry with these parameters, or "" if its numbers need no explanation.
func (t *Table) Remark(params []uint32) string {
	if t.NamesParent(params) {
		return "the switch above"
	}
	return ""
}

// WithParent returns a copy of the table whose entries can also identify the parent switch.
func (t Table) WithParent() Table {
	t.Rises = true
	return t
}

// JobKey returns the key fields of a table with one entry per job.
func JobKey() []Field { return []Field{{Name: "job", Bits: 16, Means: JobID}} }

// PartParams returns the parameters of an action that assigns a range of slots to a job.
func PartParams() []Field {
	return []Field{{Name: "first", Bits: 32, Means: FirstSlot}, {Name: "size", Bits: 32, Means: SlotCount}}
}

// Range is a range of slots, from First to End-1.
type Range struct{ First, End uint64 }

// endless is the End of a range that extends to the end of the table. It is larger than any slot in a 32-bit field.
const endless = 1 << 33

// String returns the range as it is printed in errors, such as "slots 0 to 9".
func (r Range) String() string {
	if r.End == endless {
		return fmt.Sprintf("slots from %d on", r.First)
	}
	return fmt.Sprintf("slots %d to %d", r.First, r.End-1)
}

// HasPartitions reports whether entries of the table assign separate slots to jobs.
func (t *Table) HasPartitions() bool {
	return slices.ContainsFunc(t.Params, func(f Field) bool { return f.Means == SlotCount })
}

// Partition returns the slots that an entry with these parameters assigns to its job. The range is empty if the job
// shares all slots.
func (t *Table) Partition(params []uint32) Range {
	var j Job
	readFields(t.Params, params, &j, new(Member))
	r := Range{uint64(j.Base), uint64(j.Base) + uint64(j.Slots)}
	if j.Slots == 0 && !t.Shared {
		r.End = endless
	}
	return r
}

// MembersTable returns a table that admits workers to jobs. control is the name of the P4 control that contains it.
func MembersTable(control string) Table {
	return Table{
		Name: control + ".members", Doc: "Who may contribute to a job, and the port of the switch behind which that is.",
		Key:    append(JobKey(), Field{Name: "worker", Bits: 16, Means: WorkerID}),
		Action: "admit", Does: "The worker is a member of the job.",
		Params: []Field{{Name: "port", Bits: 16, Means: ChildPort}},
		Miss:   "refuse", Without: "Nobody admitted the worker: what it sends is dropped and counted.",
	}
}

// MaxParams is the maximum number of parameters in an action.
const MaxParams = 4

// ByMember reports whether the table has an entry for each member, instead of one for each job.
func (t *Table) ByMember() bool {
	return slices.ContainsFunc(t.Key, func(f Field) bool { return f.Means == WorkerID })
}

// KeyOf returns the key of the table entry for a worker in a job.
func (t *Table) KeyOf(job olaf.ClusterID, worker olaf.WorkerID) []uint32 {
	key := make([]uint32, len(t.Key))
	for i, f := range t.Key {
		key[i] = uint32(f.value(&Job{ID: job}, &Member{Worker: worker}))
	}
	return key
}

// Entry is an entry in a program's table, with values in the order of the table's fields.
type Entry struct {
	Table  int // index in the description's tables
	Key    []uint32
	Params []uint32
}

// AdmitsMembers reports whether the program's tables restrict which workers may contribute.
func (d *Description) AdmitsMembers() bool {
	return slices.ContainsFunc(d.Tables, func(t Table) bool { return t.ByMember() })
}

// Entries returns the table entries that configure the given jobs. The error matches ErrConfig if a value does not fit
// its field.
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
				e, err := d.Tables[t].makeEntry(&jobs[i], &of[m])
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

func (t *Table) makeEntry(j *Job, m *Member) (e Entry, err error) {
	if e.Key, err = t.fillValues(t.Key, j, m); err == nil {
		e.Params, err = t.fillValues(t.Params, j, m)
	}
	return e, err
}

func (t *Table) fillValues(fields []Field, j *Job, m *Member) ([]uint32, error) {
	values := make([]uint32, len(fields))
	for i, f := range fields {
		v := f.value(j, m)
		if v < 0 || v>>f.Bits != 0 {
			return nil, fmt.Errorf("%w: %s of job %d is %d, and %s has %d bits for it", ErrConfig, f.Name, j.ID, v,
				t.Name, f.Bits)
		}
		values[i] = uint32(v)
	}
	return values, nil
}

// value returns the value of the field for a job and one of its members.
func (f *Field) value(j *Job, m *Member) int64 {
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

// setValue sets the property that the field describes in j or m to v. It is the inverse of value.
func (f *Field) setValue(j *Job, m *Member, v uint32) {
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

// Jobs returns the jobs that the entries configure, sorted by id and with members sorted by port. A job exists if each
// table with one entry per job has an entry for it. If no table lists the members, they are returned by group, which
// may be nil.
func (d *Description) Jobs(entries []Entry, group func(job olaf.ClusterID) []Member) []Job {
	found := map[olaf.ClusterID]*Job{}
	whole := map[olaf.ClusterID]int{}
	for i := range entries {
		t := &d.Tables[entries[i].Table]
		said, m := t.ReadEntry(entries[i].Key, entries[i].Params)
		j := found[said.ID]
		if j == nil {
			j = &Job{ID: said.ID}
			found[said.ID] = j
		}
		readFields(t.Params, entries[i].Params, j, &m)
		switch {
		case t.NamesParent(entries[i].Params):
			j.Parent, j.Above = said.Parent, said.Above
		case t.ByMember():
			j.Members = append(j.Members, m)
		default:
			whole[j.ID]++
		}
	}
	return d.completeJobs(found, whole, group)
}

// ReadEntry decodes a table entry into a job and one of its members. If the entry identifies the parent switch, the
// member has no meaning.
func (t *Table) ReadEntry(key, params []uint32) (j Job, m Member) {
	readFields(t.Key, key, &j, &m)
	readFields(t.Params, params, &j, &m)
	if t.NamesParent(params) {
		j.Parent, j.Above = true, m.Worker
	}
	return j, m
}

func readFields(fields []Field, values []uint32, j *Job, m *Member) {
	for i := range fields {
		fields[i].setValue(j, m, values[i])
	}
}

// completeJobs returns the jobs that have all required entries, sorted by id and with members sorted by port.
func (d *Description) completeJobs(found map[olaf.ClusterID]*Job, whole map[olaf.ClusterID]int,
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
		if j.Parent && want == 0 && len(j.Members) == 0 { // only the parent is known
			continue
		}
		if !d.AdmitsMembers() && group != nil {
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
