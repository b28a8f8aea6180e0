package agent

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/fpga/program/switchml"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// programBench is an agent with the tables of all programs, called without a connection.
type programBench struct {
	*testing.T
	*Agent
	backend *Embedded
}

func newTold(t *testing.T, journal string) *programBench {
	t.Helper()
	b := &programBench{T: t, backend: new(Embedded)}
	var err error
	if b.Agent, err = New(Options{Backend: b.backend, Profile: p4.Lab(), Programs: programs.AllPrograms(),
		Journal: journal}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// pipelineOf returns a pipeline with the tables of some programs.
func pipelineOf(of ...program.Description) *v1.ForwardingPipelineConfig {
	return &v1.ForwardingPipelineConfig{P4Info: p4.Lab().Info(of...), P4DeviceConfig: p4.Lab().DeviceConfig(of...)}
}

func (b *programBench) set(action v1.SetForwardingPipelineConfigRequest_Action, of ...program.Description) error {
	b.Helper()
	b.writes.Lock()
	defer b.writes.Unlock()
	return b.setPipeline(&v1.SetForwardingPipelineConfigRequest{DeviceId: p4.DeviceID, Action: action,
		Config: pipelineOf(of...)})
}

// put writes one batch as the only controller.
func (b *programBench) put(updates string) error {
	b.Helper()
	b.writes.Lock()
	defer b.writes.Unlock()
	p := b.current.Load()
	state, changes, faults, err := p.writeBatch(b.backend, nil, text(b, new(v1.WriteRequest), updates))
	if err == nil && len(changes) > 0 {
		err = b.publish(p, state, changes)
	}
	if err != nil {
		return err
	}
	return batchStatus("updates", faults)
}

func (b *programBench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// TestUplinkEntryNamesTheParentSwitch checks that an entry with the uplink's port names the switch above a job, which
// contributes nothing and is found among the jobs.
func TestUplinkEntryNamesTheParentSwitch(t *testing.T) {
	b := newTold(t, "")
	isw := iswitch.Describe()
	b.must(b.set(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, isw))
	b.must(b.put(member("INSERT", `\x01`, `\x02`, `\x05`) + member("INSERT", `\x01`, `\x28`, `\xff\xff`)))
	jobs, _ := b.backend.Tables().Jobs(&isw)
	if d := cmp.Diff([]program.Job{{ID: 1, Parent: true, Above: 40,
		Members: []program.Member{{Worker: 2, Port: 5}}}}, jobs); d != "" {
		t.Error(d)
	}
	if b.backend.Tables().Admits(&isw, 1, 40) || !b.backend.Tables().Admits(&isw, 1, 2) {
		t.Error("the switch above contributes, or the worker does not")
	}
	b.must(b.put(member("DELETE", `\x01`, `\x28`, `\xff\xff`)))
	if jobs, _ := b.backend.Tables().Jobs(&isw); len(jobs) != 1 || jobs[0].Parent {
		t.Errorf("without it: %+v", jobs)
	}
}

// member returns an update that admits worker w to job j behind port p, in isw.members.
func member(kind, j, w, p string) string {
	return `updates { type: ` + kind + ` entity { table_entry { table_id: 0x02000101
		match { field_id: 2 exact { value: "` + w + `" } } match { field_id: 1 exact { value: "` + j + `" } }
		action { action { action_id: 0x01000101 params { param_id: 1 value: "` + p + `" } } } } } } `
}

// TestEntriesOfPrograms checks that an entry with several key fields is found with its fields in any order, is read
// back field by field, and has the meaning that the program's description defines.
func TestEntriesOfPrograms(t *testing.T) {
	b := newTold(t, "")
	isw := iswitch.Describe()
	if _, has := b.backend.Tables().Jobs(&isw); has || !b.backend.Tables().Admits(&isw, 1, 2) {
		t.Error("without a pipeline controllers have a say")
	}
	b.must(b.set(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, isw))
	b.must(b.put(member("INSERT", `\x00\x01`, `\x02`, `\x05`) + member("INSERT", `\x01`, `\x03`, `\x04`) +
		member("INSERT", `\x02`, `\x01`, `\x00`)))
	jobs, has := b.backend.Tables().Jobs(&isw)
	want := []program.Job{{ID: 1, Members: []program.Member{{Worker: 3, Port: 4}, {Worker: 2, Port: 5}}},
		{ID: 2, Members: []program.Member{{Worker: 1}}}}
	if d := cmp.Diff(want, jobs); !has || d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		job    olaf.ClusterID
		worker olaf.WorkerID
		want   bool
	}{{1, 2, true}, {2, 1, true}, {1, 1, false}, {2, 2, false}, {0, 0, false}} {
		if got := b.backend.Tables().Admits(&isw, c.job, c.worker); got != c.want {
			t.Errorf("worker %d of job %d: %v", c.worker, c.job, got)
		}
	}
	for _, c := range []struct {
		batch, say string
		code       codes.Code
	}{
		{member("INSERT", `\x01`, `\x02`, `\x09`), `"isw.members" has an entry for job 1, worker 2`, codes.AlreadyExists},
		{member("DELETE", `\x02`, `\x02`, `\x09`), "has no entry for job 2, worker 2", codes.NotFound},
		{member("INSERT", `\x01\x00\x00`, `\x02`, `\x09`), "does not fit into 16 bits", codes.InvalidArgument},
		{`updates { type: INSERT entity { table_entry { table_id: 0x02000101 match { field_id: 1 exact { value: "\x01" } } } } }`, `"worker" of "isw.members" is missing`, codes.InvalidArgument},
		{`updates { type: INSERT entity { table_entry { table_id: 0x02000401 match { field_id: 1 exact { value: "\x01" } } } } }`, "unknown table", codes.InvalidArgument},
	} {
		err := b.put(c.batch)
		details := status.Convert(err).Details()
		if len(details) != 1 || codes.Code(details[0].(*v1.Error).GetCanonicalCode()) != c.code ||
			!strings.Contains(err.Error(), c.say) {
			t.Errorf("%v, want %v: %s", err, c.code, c.say)
		}
	}
	before := b.backend.Tables()
	if err := b.put("atomicity: ROLLBACK_ON_ERROR " + member("MODIFY", `\x01`, `\x02`, `\x06`) +
		member("INSERT", `\x01`, `\x02`, `\x06`)); err == nil {
		t.Error("a batch with a fault went through")
	}
	if b.backend.Tables() != before {
		t.Error("a batch that was rolled back left something behind")
	}
	b.must(b.put(member("MODIFY", `\x01`, `\x02`, `\x06`)))
	if old, _ := before.Jobs(&isw); old[0].Members[1].Port != 5 {
		t.Error("a batch changed a state that somebody reads")
	}
	var read []string
	p := b.current.Load()
	b.must(p.readEntity(nil, text(t, new(v1.Entity),
		"table_entry { table_id: 0x02000101 match { field_id: 1 exact { value: '\\001' } } match { field_id: 2 exact { "+
			"value: '\\002' } } }"), func(e *v1.Entity) error {
		for _, m := range e.GetTableEntry().Match {
			read = append(read, string(m.GetExact().Value))
		}
		read = append(read, string(e.GetTableEntry().Action.GetAction().Params[0].Value))
		return nil
	}))
	if d := cmp.Diff([]string{"\x01", "\x02", "\x06"}, read); d != "" {
		t.Error(d)
	}
}

// pool returns an update that gives job j slots in a table of a program with that code, described by first and size.
func pool(kind, code, j, first, size string) string {
	return `updates { type: ` + kind + ` entity { table_entry { table_id: 0x0200` + code + ` match { field_id: 1 exact { value: "` + j + `" } }
		action { action { action_id: 0x0100` + code + ` params { param_id: 1 value: "` + first + `" } params { param_id: 2 value: "` + size + `" }` +
		map[bool]string{true: ` params { param_id: 3 value: "\x00" } params { param_id: 4 value: "\x00" }`}[code == "0301"] + ` } } } } } `
}

// TestOverlappingSlots checks that two jobs never share a slot: the entry that would cause it is rejected with both
// names, and a batch is judged by its result.
func TestOverlappingSlots(t *testing.T) {
	b, sml, hashed := newTold(t, ""), switchml.Describe(), atp.Describe()
	b.must(b.set(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, sml, hashed))
	const rollback, insert, modify = "atomicity: ROLLBACK_ON_ERROR ", "INSERT", "MODIFY"
	one, two := func(kind, first, size string) string { return pool(kind, "0201", `\x01`, first, size) },
		func(kind, first, size string) string { return pool(kind, "0201", `\x02`, first, size) }
	b.must(b.put(one(insert, `\x00`, `\x40`)))
	for _, c := range []struct{ name, batch, say string }{
		{"insert", two(insert, `\x20`, `\x40`),
			"\"sml.jobs\" gives two jobs the same slots: job 1 has slots 0 to 63 and job 2 slots 32 to 95"},
		{"to the end of the pool", two(insert, `\x3f`, `\x00`), "job 2 slots from 63 on"},
		{"within", two(insert, `\x01`, `\x01`), "job 1 has slots 0 to 63 and job 2 slots 1 to 1"},
		{"modify", rollback + two(insert, `\x40`, `\x20`) + one(modify, `\x00`, `\x41`),
			"job 1 has slots 0 to 64 and job 2 slots 64 to 95"},
		{"both at once", rollback + two(insert, `\x40`, `\x20`) + pool(insert, "0201", `\x03`, `\x5f`, `\x01`),
			"job 2 has slots 64 to 95 and job 3 slots 95 to 95"},
	} {
		before := b.backend.Tables()
		err := b.put(c.batch)
		if details := status.Convert(err).Details(); err == nil || !strings.Contains(err.Error(), c.say) ||
			len(details) == 0 {
			t.Errorf("%s: %v, want %q", c.name, err, c.say)
		}
		if after, _ := b.backend.Tables().Jobs(&sml); len(after) != 1 || strings.HasPrefix(c.batch, rollback) &&
			b.backend.Tables() != before {
			t.Errorf("%s: %+v is left", c.name, after)
		}
	}
	// In a batch that continues on error, clashing updates are undone and the others stay.
	if err := b.put(two(insert, `\x40`, `\x20`) + one(modify, `\x00`, `\x50`)); err == nil {
		t.Error("a clash went through")
	}
	// Neighbours may be adjacent, jobs may swap places in one batch, and a deletion frees its slots.
	b.must(b.put(rollback + one(modify, `\x40`, `\x20`) + two(modify, `\x00`, `\x40`)))
	b.must(b.put(rollback + one("DELETE", `\x00`, `\x00`) + two(modify, `\x10`, `\x00`)))
	jobs, _ := b.backend.Tables().Jobs(&sml)
	if d := cmp.Diff([]program.Job{{ID: 2, Base: 16}}, jobs); d != "" {
		t.Error(d)
	}
	// A size of 0 shares all of ATP's aggregators, next to jobs with their own.
	b.must(b.put(pool(insert, "0301", `\x01`, `\x00`, `\x00`) + pool(insert, "0301", `\x02`, `\x00`, `\x00`) +
		pool(insert, "0301", `\x03`, `\x05`, `\x05`)))
	if err := b.put(pool(insert, "0301", `\x04`, `\x00`, `\x06`)); err == nil || !strings.Contains(err.Error(),
		`"atp.jobs" gives two jobs the same slots: job 4 has slots 0 to 5 and job 3 slots 5 to 9`) {
		t.Errorf("%v", err)
	}
}

// TestTwoSwitchesAbove checks that a job has only one switch above it: an entry that names a second one is rejected,
// but one batch can replace it.
func TestTwoSwitchesAbove(t *testing.T) {
	b, isw := newTold(t, ""), iswitch.Describe()
	b.must(b.set(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, isw))
	const rollback, up = "atomicity: ROLLBACK_ON_ERROR ", `\xff\xff`
	b.must(b.put(member("INSERT", `\x01`, `\x02`, `\x05`) + member("INSERT", `\x01`, `\x07`, up)))
	for name, batch := range map[string]string{
		"a second":   member("INSERT", `\x01`, `\x09`, up),
		"a member":   member("MODIFY", `\x01`, `\x02`, up),
		"taken back": rollback + member("INSERT", `\x03`, `\x01`, `\x00`) + member("INSERT", `\x01`, `\x09`, up),
		"among its likes": member("INSERT", `\x01`, `\x03`, `\xff\xfe`) + member("INSERT", `\x01`, `\x09`, up) +
			member("DELETE", `\x01`, `\x03`, `\x00`),
	} {
		err := b.put(batch)
		if details := status.Convert(err).Details(); len(details) == 0 || !strings.Contains(err.Error(),
			`"isw.members" names two switches above job 1: `) {
			t.Errorf("%s: %v", name, err)
		}
		want := []program.Job{{ID: 1, Parent: true, Above: 7, Members: []program.Member{{Worker: 2, Port: 5}}}}
		if jobs, _ := b.backend.Tables().Jobs(&isw); cmp.Diff(want, jobs) != "" {
			t.Errorf("%s: %+v is left", name, jobs)
		}
	}
	b.must(b.put(rollback + member("INSERT", `\x01`, `\x09`, up) + member("DELETE", `\x01`, `\x07`, up) +
		member("INSERT", `\x02`, `\x07`, up)))
	if jobs, _ := b.backend.Tables().Jobs(&isw); len(jobs) != 1 || jobs[0].Above != 9 {
		t.Errorf("another switch above: %+v", jobs)
	}
}

// TestFailedUndoResetsDevice checks that a device that fails to undo an overlap is reset to the state without it and
// agrees with the agent.
func TestFailedUndoResetsDevice(t *testing.T) {
	c := newCard()
	config := pipelineOf(switchml.Describe())
	p, err := verify(c, build{Profile: p4.Lab(), programs: programs.AllPrograms()}, config)
	if err == nil {
		err = p.commit(c, 1, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	batch := pool("INSERT", "0201", `\x01`, `\x00`, `\x40`) + pool("INSERT", "0201", `\x02`, `\x20`, `\x40`) +
		pool("INSERT", "0201", `\x03`, `\x60`, `\x20`)
	c.fail = func(change Change) error {
		if change.Op == v1.Update_DELETE {
			return errors.New("the device says no")
		}
		return nil
	}
	state, changes, faults, err := p.writeBatch(c, nil, text(t, new(v1.WriteRequest), batch))
	if err != nil || len(changes) != 2 || faults[1] == nil || c.commits != 2 {
		t.Errorf("%d changes, %v, %d commits, %v", len(changes), faults, c.commits, err)
	}
	if !c.holds(state) || c.size() != 2 {
		t.Errorf("the device holds %v", c.entries)
	}
}

// TestJobsOfClusters checks that a table of jobs gets its members from the clusters' multicast groups, all in one
// batch.
func TestJobsOfClusters(t *testing.T) {
	b, of := newTold(t, ""), p4inc.Describe()
	b.must(b.set(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, of))
	b.must(b.put(`atomicity: ROLLBACK_ON_ERROR
		updates { type: INSERT entity { packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 8
			replicas { instance: 4 port: "\x01" } replicas { instance: 2 port: "\x02" } } } } }
		updates { type: INSERT entity { table_entry { table_id: 0x02000011 match { field_id: 1 exact { value: "\x07" } }
			action { action { action_id: 0x01000011 params { param_id: 1 value: "\x08" } } } } } }
		updates { type: INSERT entity { table_entry { table_id: 0x02000401 match { field_id: 1 exact { value: "\x07" } }
			action { action { action_id: 0x01000401 params { param_id: 1 value: "\x02" } } } } } }
		updates { type: INSERT entity { table_entry { table_id: 0x02000402 match { field_id: 1 exact { value: "\x07" } }
			action { action { action_id: 0x01000403 params { param_id: 1 value: "\x40" } params { param_id: 2 value: "\x20" } } } } } }`))
	jobs, _ := b.backend.Tables().Jobs(&of)
	want := []program.Job{{ID: 7, Fan: 2, Base: 64, Slots: 32, Members: []program.Member{{Worker: 4, Port: 1},
		{Worker: 2, Port: 2}}}}
	if d := cmp.Diff(want, jobs); d != "" {
		t.Error(d)
	}
}

// TestPipelinesOfPrograms checks that pipelines with and without program tables can replace each other.
// RECONCILE_AND_COMMIT keeps entries as long as their table exists, and a pipeline that would lose entries is rejected.
func TestPipelinesOfPrograms(t *testing.T) {
	b, isw, inc := newTold(t, ""), iswitch.Describe(), p4inc.Describe()
	const reconcile = v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT
	b.must(b.set(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT))
	b.must(b.set(reconcile, isw))
	b.must(b.put(member("INSERT", `\x01`, `\x02`, `\x05`)))
	b.must(b.set(reconcile, isw, inc))
	if jobs, _ := b.backend.Tables().Jobs(&isw); len(jobs) != 1 {
		t.Errorf("%d jobs are left", len(jobs))
	}
	if err := b.set(reconcile, inc); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(),
		`"isw.members" has 1 entries`) {
		t.Errorf("%v", err)
	}
	if err := b.set(reconcile); err == nil {
		t.Error("a pipeline without the table took its entry")
	}
	b.must(b.put(member("DELETE", `\x01`, `\x02`, `\x05`)))
	b.must(b.set(reconcile))
	if err := b.put(member("INSERT", `\x01`, `\x02`, `\x05`)); err == nil {
		t.Error("the table is still there")
	}
	// A device without this program, and tables that are not the program's.
	if err := newTold(t, "").set(reconcile, program.Description{Name: "other", Code: 40,
		Tables: isw.Tables}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("unknown tables: %v", err)
	}
	isw.Tables = []program.Table{isw.Tables[0]}
	isw.Tables[0].Params = nil
	if err := b.set(reconcile, isw); err == nil || !strings.Contains(err.Error(), "action isw.admit differs") {
		t.Errorf("%v", err)
	}
}

// TestJournalOfPrograms checks that a restarted agent has its pipeline and entries again.
func TestJournalOfPrograms(t *testing.T) {
	path, isw := filepath.Join(t.TempDir(), "journal"), iswitch.Describe()
	b := newTold(t, path)
	b.must(b.set(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, isw))
	b.must(b.put(member("INSERT", `\x01`, `\x02`, `\x05`)))
	b.must(b.put(member("INSERT", `\x01`, `\x03`, `\x06`)))
	want, _ := b.backend.Tables().Jobs(&isw)
	for range 2 { // the second time from a rewritten file
		b.must(b.Close())
		b = newTold(t, path)
		if got, has := b.backend.Tables().Jobs(&isw); !has || cmp.Diff(want, got) != "" {
			t.Errorf("after a restart %+v", got)
		}
	}
}
