package p4ctl_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

const admittedFile = `schema: olafctl.tables/v1
servers: []
workers:
  - {address: 10.0.0.1, cluster: 0, worker: 0}
  - {address: 10.0.0.2, cluster: 0, worker: 1}
clusters:
  - {cluster: 0, group: 1}
groups:
  - {id: 1, members: [{port: 1, instance: 0}, {port: 1, instance: 1}]}
programs:
  isw.members:
    - {job: 0, worker: 0, port: 4}
    - {job: 0, worker: 1, port: 5}
  p4inc.segments:
    - {job: 0, first: 16, size: 8}
`

func admitted(t *testing.T) p4ctl.Tables {
	t.Helper()
	tables, err := p4ctl.ParseTables([]byte(admittedFile), programs.AllPrograms()...)
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// TestFileOfPrograms checks that a file with entries of programs is read back unchanged and has another hash than the
// same file without them.
func TestFileOfPrograms(t *testing.T) {
	tables := admitted(t)
	if d := cmp.Diff(admittedFile, string(tables.AppendYAML(nil))); d != "" {
		t.Error(d)
	}
	var names []string
	for _, d := range tables.Programs() {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"iswitch", "p4inc"}) {
		t.Errorf("programs %v", names)
	}
	seen := map[string]string{}
	for name, change := range map[string]func(*p4ctl.Tables){
		"as it is": func(*p4ctl.Tables) {}, "without entries": func(t *p4ctl.Tables) { t.Entries = nil },
		"another port":  func(t *p4ctl.Tables) { t.Entries[0].Params = []uint32{6} },
		"another key":   func(t *p4ctl.Tables) { t.Entries[0].Key = []uint32{1, 0} },
		"another table": func(t *p4ctl.Tables) { t.Entries = t.Entries[1:] },
	} {
		changed := admitted(t)
		change(&changed)
		if same, ok := seen[changed.Hash()]; ok {
			t.Errorf("%s and %s have one hash", name, same)
		}
		seen[changed.Hash()] = name
	}
	for text, say := range map[string]string{
		"    - {job: 0, worker: 1, port: " +
			"5}\n    - {job: 0, worker: 1, port: 6}\n": "line 14: isw.members[2].job: isw.members job 0 worker 1 " +
			"appears twice",
		"    - {job: 0, worker: 8, port: 65535}\n    - {job: 1, " +
			"worker: 9, port: 65535}\n    - " +
			"{job: 0, worker: 9, port: 65535}\n": "line 15: isw.members[3].job: isw.members names two switches above job " +
			"0: 8 and 9",
		"    - {job: 0, " +
			"worker: 1, port: 65536}\n": "line 13: isw.members[1].port: want a number from 0 to 65535",
		"    - {job: 0, worker: 1}\n": "line 13: isw.members[1].port: is missing",
		"    - {job: 0, worker: " +
			"1, port: 5, weight: 3}\n": "line 13: isw.members[1].weight: unknown field",
		"  other.members: []\n": "line 13: programs.other.members: unknown field",
	} {
		_, err := p4ctl.ParseTables([]byte(strings.Replace(admittedFile, "    - {job: 0, worker: 1, port: 5}\n", text,
			1)), programs.AllPrograms()...)
		if !errors.Is(err, p4ctl.ErrTables) || !strings.Contains(err.Error(), say) {
			t.Errorf("%v, want %s", err, say)
		}
	}
	if _, err := p4ctl.ParseTables([]byte(admittedFile)); err == nil {
		t.Error("tables of programs that nobody knows were taken")
	}
}

// TestPlanOfPrograms checks that a plan describes entries of programs in words, deletions before insertions.
func TestPlanOfPrograms(t *testing.T) {
	before, after := admitted(t), admitted(t)
	after.Entries[0].Params = []uint32{program.UplinkPort}
	after.Entries[1].Key = []uint32{0, 9}
	want := "- isw.members job 0 worker 1  admit port 5\n~ isw.members job 0 worker 0  admit port 4 -> admit port " +
		"65535, the switch above\n+ isw.members job 0 worker 9  admit port 5\n1 to add, 1 to change, 1 to delete\n"
	got := p4ctl.Diff(before, after).String()
	lines := strings.SplitAfter(got, "\n")
	slices.Sort(lines)
	wanted := strings.SplitAfter(want, "\n")
	slices.Sort(wanted)
	if d := cmp.Diff(wanted, lines); d != "" || strings.Index(got, "- isw") > strings.Index(got, "+ isw") {
		t.Errorf("%s%s", got, d)
	}
}

// TestRegroupingOfMembers checks that regrouping a worker also moves its membership.
func TestRegroupingOfMembers(t *testing.T) {
	keys := func(tables p4ctl.Tables, err error) (keys [][]uint32) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range tables.Entries {
			keys = append(keys, slices.Concat(e.Key, e.Params))
		}
		return keys
	}
	start := admitted(t)
	one := netip.MustParseAddr("10.0.0.1")
	for name, c := range map[string]struct {
		got, want [][]uint32
	}{
		"move":           {keys(start.Move(3, one)), [][]uint32{{3, 0, 4}, {0, 1, 5}, {0, 16, 8}}},
		"remove":         {keys(start.Remove(one)), [][]uint32{{0, 1, 5}, {0, 16, 8}}},
		"remove cluster": {keys(start.RemoveCluster(0)), nil},
		"add": {keys(start.Add(6, p4ctl.Worker{Address: netip.MustParseAddr("10.0.0.3"), Cluster: 2, ID: 8})),
			[][]uint32{{0, 0, 4}, {0, 1, 5}, {0, 16, 8}, {2, 8, 6}}},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestControllerOfPrograms checks that a controller adds a program's tables to a device, where the program then reads
// them. A pipeline that lacks them gets them without losing its entries, and a rejected entry rolls back the whole
// batch.
func TestControllerOfPrograms(t *testing.T) {
	backend := new(agent.Embedded)
	a, err := agent.New(agent.Options{Backend: backend, Profile: p4.Twin(), Programs: programs.AllPrograms()})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Install(p4ctl.PipelineConfig(p4.Twin())); err != nil {
		t.Fatal(err)
	}
	l, err := agent.Listen(unixAddress(t), false)
	if err != nil {
		t.Fatal(err)
	}
	running := a.Serve(l, nil)
	t.Cleanup(func() { running.Close() })
	s, err := p4ctl.Dial(t.Context(), running.Target(), p4ctl.Options{Programs: programs.AllPrograms()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })

	tables := admitted(t)
	plain := tables
	plain.Entries = nil
	if _, err := s.Sync(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	var refused *p4ctl.BatchError
	if _, err := s.Sync(t.Context(), tables); !errors.As(err, &refused) || !strings.Contains(err.Error(),
		"insert isw.members job 0 worker 0") {
		t.Errorf("a pipeline without the tables: %v", err)
	}
	for i, want := range []bool{true, false} {
		if added, err := s.AddPrograms(t.Context(), tables.Programs()...); err != nil || added != want {
			t.Errorf("time %d: added %v, %v", i, added, err)
		}
	}
	if plan, err := s.Sync(t.Context(), tables); err != nil || plan.Len() != 3 {
		t.Fatalf("%v, %v", plan, err)
	}
	if got, err := s.Read(t.Context()); err != nil || got.Hash() != tables.Hash() {
		t.Errorf("read back: %v", err)
	}
	isw := iswitch.Describe()
	jobs, _ := backend.Tables().Jobs(&isw)
	want := []program.Job{{ID: 0, Members: []program.Member{{Worker: 0, Port: 4}, {Worker: 1, Port: 5}}}}
	if d := cmp.Diff(want, jobs); d != "" {
		t.Error(d)
	}
	// A batch with one fault.
	version := backend.Tables().Version()
	twice := tables
	twice.Entries = slices.Concat(tables.Entries[1:], tables.Entries[2:3])
	twice.Entries[2].Key = []uint32{5}
	plan := p4ctl.Diff(tables, twice)
	elsewhere := tables
	elsewhere.Entries = tables.Entries[1:]
	if _, err := s.Sync(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ApplyWhole(t.Context(), plan); !errors.As(err, &refused) {
		t.Errorf("deleted twice: %v", err)
	}
	if now := backend.Tables().Version(); now != version+1 {
		t.Errorf("%d batches came through, want the one before", now-version)
	}
}

// TestEntriesOf checks the entries for jobs, which follow from the program's description.
func TestEntriesOf(t *testing.T) {
	d := p4inc.Describe()
	entries, err := p4ctl.EntriesOf(&d, program.Job{ID: 2, Fan: 3, Base: 8, Slots: 4})
	if err != nil || len(entries) != 2 || entries[0].Table.Name != "p4inc.jobs" || !slices.Equal(entries[1].Params,
		[]uint32{8, 4}) {
		t.Errorf("%+v, %v", entries, err)
	}
	isw := iswitch.Describe()
	if _, err := p4ctl.EntriesOf(&isw, program.Job{ID: olaf.ClusterID(1),
		Members: []program.Member{{Port: program.Uplink}}}); !errors.Is(err, program.ErrConfig) {
		t.Errorf("%v", err)
	}
}
