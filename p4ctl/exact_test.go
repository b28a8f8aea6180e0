package p4ctl

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/olafctl/olaf/p4ctl/p4"
)

func TestCompareElectionIDs(t *testing.T) {
	ids := []ElectionID{{0, 0}, {0, 1}, {0, math.MaxUint64}, {1, 0}, {1, 1}, {math.MaxUint64, 0},
		{math.MaxUint64, math.MaxUint64}}
	for i, a := range ids {
		for k, b := range ids {
			want := 0
			if i < k {
				want = -1
			} else if i > k {
				want = 1
			}
			if got := a.Compare(b); got != want {
				t.Errorf("%v and %v: %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestStatesHaveNames(t *testing.T) {
	for s, want := range map[State]string{Disconnected: "disconnected", Connecting: "connecting", Backup: "backup",
		Primary: "primary", Closed: "closed", Closed + 1: "unknown"} {
		if s.String() != want {
			t.Errorf("state %d is %q", s, s)
		}
	}
}

func TestDefaults(t *testing.T) {
	want := Options{DeviceID: 1, ElectionID: ElectionID{1, 1}, BackoffMin: 500 * time.Millisecond,
		BackoffMax: 30 * time.Second, BatchSize: 100}
	if d := cmp.Diff(want, Options{}.withDefaults()); d != "" {
		t.Error(d)
	}
	given := Options{DeviceID: 2, ElectionID: ElectionID{0, 3}, BackoffMin: 40 * time.Second, BatchSize: 99}
	want = given
	want.BackoffMax = 40 * time.Second
	if d := cmp.Diff(want, given.withDefaults()); d != "" {
		t.Error(d)
	}
	for size, want := range map[int]int{-1: 100, 0: 100, 1: 1, 100: 100, 101: 100} {
		if got := (Options{BatchSize: size}).withDefaults().BatchSize; got != want {
			t.Errorf("batches of %d become %d", size, got)
		}
	}
}

// TestErrorsInWords checks the messages for rejected batches.
func TestErrorsInWords(t *testing.T) {
	one := &UpdateError{Index: 4, Code: codes.NotFound, Message: "no such group"}
	vendor := &UpdateError{Index: 5, Code: codes.Internal, Message: "full", Space: "amd", Vendor: 7}
	for _, c := range []struct {
		err  error
		want string
	}{
		{one, "update 4: NotFound: no such group"},
		{vendor, "update 5: Internal: full [amd 7]"},
		{&BatchError{Updates: 3, Failed: []*UpdateError{one}}, "1 of 3 updates rejected: update 4: NotFound: no such group"},
		{&BatchError{Updates: 3, Failed: []*UpdateError{one, vendor}},
			"2 of 3 updates rejected: update 4: NotFound: no such group (and 1 more)"},
		{&BatchError{Updates: 3, Failed: []*UpdateError{one, vendor, one}, Rolled: true},
			"batch of 3 was rolled back: update 4: NotFound: no such group (and 2 more)"},
		{&BatchError{Updates: 3}, "0 of 3 updates rejected: no details were sent"},
	} {
		if c.err.Error() != c.want {
			t.Errorf("got  %s\nwant %s", c.err, c.want)
		}
	}
}

// refusal returns the response to a batch with one code per update.
func refusal(t *testing.T, list ...codes.Code) error {
	t.Helper()
	st := status.New(codes.Unknown, "batch")
	var details []protoadapt.MessageV1
	for _, c := range list {
		details = append(details, protoadapt.MessageV1Of(&v1.Error{CanonicalCode: int32(c), Message: "m"}))
	}
	st, err := st.WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return st.Err()
}

// TestDetailsWithoutMatchingUpdate checks details without a matching update.
func TestDetailsWithoutMatchingUpdate(t *testing.T) {
	updates := []*v1.Update{object{kind: kindServer, key: 1}.toUpdate(v1.Update_INSERT), object{kind: kindServer,
		key: 2}.toUpdate(v1.Update_INSERT)}
	var got *BatchError
	if err := writeError(refusal(t, codes.OK, codes.NotFound, codes.Internal), updates, 10, false); !errors.As(err, &got) {
		t.Fatal(err)
	}
	if len(got.Failed) != 2 || got.Failed[0].Index != 11 || got.Failed[0].Update != updates[1] ||
		got.Failed[1].Index != 12 || got.Failed[1].Update != nil {
		t.Errorf("%+v", got.Failed)
	}
}

// TestUnimplementedIsDistinguished checks that a server without a feature is distinguished from one that failed.
func TestUnimplementedIsDistinguished(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{refusal(t, codes.OK, codes.Unimplemented), true}, {refusal(t, codes.OK), true},
		{refusal(t, codes.Unimplemented, codes.NotFound), false},
		{refusal(t), false}, {status.Error(codes.Unimplemented, "x"), false}, {errors.New("x"), false},
	} {
		if got := onlyUnimplemented(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
	broken, err := status.New(codes.Internal,
		"x").WithDetails(protoadapt.MessageV1Of(&v1.Error{CanonicalCode: int32(codes.Unimplemented)}))
	if err != nil || onlyUnimplemented(broken.Err()) {
		t.Errorf("another failure passes: %v", err)
	}
	strange, err := status.New(codes.Unknown, "x").WithDetails(protoadapt.MessageV1Of(&v1.Uint128{}))
	if err != nil || onlyUnimplemented(strange.Err()) {
		t.Errorf("a detail of another kind passes: %v", err)
	}
}

// TestNumbers checks byte strings of every length.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]uint32{"": 0, "\x00": 0, "\x01": 1, "\x00\x00\x00\x00\x00\x02": 2,
		"\x01\x02\x03\x04": 0x01020304, "\x00\xff\xff\xff\xff": math.MaxUint32, "\x01\x00": 256} {
		if got, err := parseNumber([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
		if back, err := parseNumber(p4.CanonicalBytes(want)); err != nil || back != want {
			t.Errorf("%d comes back as %d, %v", want, back, err)
		}
	}
	for _, text := range []string{"\x01\x00\x00\x00\x00", "\x00\x01\x02\x03\x04\x05"} {
		if n, err := parseNumber([]byte(text)); err == nil || n != 0 {
			t.Errorf("%q was taken as %d", text, n)
		}
	}
}

func group(id uint32, replicas ...*v1.Replica) *v1.Entity {
	return groupEntity(&v1.MulticastGroupEntry{MulticastGroupId: id, Replicas: replicas})
}

// TestForeignEntities checks that unknown entities from other servers are skipped and that malformed ones are errors.
func TestForeignEntities(t *testing.T) {
	entry := func(change func(*v1.TableEntry)) *v1.Entity {
		u := object{kind: kindWorker, key: 7, a: 1, b: 2}.toUpdate(v1.Update_INSERT)
		change(u.Entity.GetTableEntry())
		return u.Entity
	}
	for name, c := range map[string]struct {
		entity *v1.Entity
		ok     bool
		fails  string
	}{
		"worker":         {entry(func(*v1.TableEntry) {}), true, ""},
		"default entry":  {entry(func(e *v1.TableEntry) { e.IsDefaultAction = true }), false, ""},
		"another action": {entry(func(e *v1.TableEntry) { e.Action.GetAction().ActionId++ }), false, ""},
		"another table":  {entry(func(e *v1.TableEntry) { e.TableId++ }), false, ""},
		"two keys":       {entry(func(e *v1.TableEntry) { e.Match = append(e.Match, e.Match[0]) }), false, "2 match fields"},
		"wide key": {entry(func(e *v1.TableEntry) { e.Match[0].GetExact().Value = []byte{1, 0, 0, 0, 0} }),
			false, "longer than 32 bits"},
		"wide parameter": {entry(func(e *v1.TableEntry) {
			e.Action.GetAction().Params[1].Value = []byte{1, 0, 0, 0,
				0}
		}), false, "longer than 32 bits"},
		"nothing":       {&v1.Entity{}, false, ""},
		"counter":       {&v1.Entity{Entity: &v1.Entity_CounterEntry{CounterEntry: &v1.CounterEntry{}}}, false, ""},
		"clone session": {&v1.Entity{Entity: &v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &v1.PacketReplicationEngineEntry{}}}, false, ""},
		"group": {group(3, &v1.Replica{Instance: 65535, PortKind: &v1.Replica_Port{Port: []byte{0, 1}}}),
			true, ""},
		"instance too big": {group(3, &v1.Replica{Instance: 65536, PortKind: &v1.Replica_Port{Port: []byte{1}}}),
			false, "instance 65536"},
		"port too wide": {group(3, &v1.Replica{PortKind: &v1.Replica_Port{Port: []byte{1, 0, 0, 0, 0}}}), false,
			"longer than 32 bits"},
	} {
		_, ok, err := toObject(c.entity, nil)
		if ok != c.ok || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}

// TestChangesLeaveTheOriginal checks that adding, moving and removing workers leaves the original tables unchanged.
func TestChangesLeaveTheOriginal(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.3")
	original := Tables{Workers: append(make([]Worker, 0, 8), Worker{a, 0, 1}, Worker{b, 0, 0}),
		Clusters: append(make([]Cluster, 0, 8), Cluster{0, 1}),
		Groups: append(make([]Group, 0, 8), Group{ID: 1, Members: append(make([]Member, 0, 8), Member{1, 0},
			Member{1, 1})})}
	copied := Tables{Workers: append([]Worker(nil), original.Workers...), Clusters: append([]Cluster(nil),
		original.Clusters...),
		Groups: []Group{{ID: 1, Members: append([]Member(nil), original.Groups[0].Members...)}}}
	same := func(what string) {
		t.Helper()
		if d := cmp.Diff(copied, original, cmpopts.EquateComparable(netip.Addr{})); d != "" {
			t.Errorf("%s changed the original: %s", what, d)
		}
	}
	added, err := original.Add(2, Worker{c, 0, 2})
	if err != nil || len(added.Workers) != 3 || len(added.Groups[0].Members) != 3 {
		t.Errorf("%+v, %v", added, err)
	}
	same("Add")
	if moved, err := original.Move(1, a); err != nil || len(moved.Groups) != 2 {
		t.Errorf("%+v, %v", moved, err)
	}
	same("Move")
	removed, err := original.Remove(a)
	if err != nil || len(removed.Workers) != 1 || removed.Workers[0].Address != b || len(removed.Groups[0].Members) != 1 {
		t.Errorf("%+v, %v", removed, err)
	}
	same("Remove")
	for what, change := range map[string]func() (Tables, error){
		"Remove": func() (Tables, error) { return original.Remove(b, c) },
		"Move":   func() (Tables, error) { return original.Move(4, c) },
	} {
		if got, err := change(); !errors.Is(err, ErrTables) || len(got.Workers) != 0 {
			t.Errorf("%s of a stranger: %+v, %v", what, got, err)
		}
	}
	if got, err := original.Remove(b); err != nil || got.Workers[0].Address != a {
		t.Errorf("the first worker: %+v, %v", got, err)
	}
}

// TestPlanInWords checks the lines of a plan that adds, changes and deletes one object of each kind.
func TestPlanInWords(t *testing.T) {
	now, err := ParseTables([]byte(
		"schema: olafctl.tables/v1\nservers: [10.0.0.9]\nworkers:\n  - {address: 10.0.0.1, cluster: 0, worker: 0}\n  - " +
			"{address: 10.0.0.2, cluster: 0, worker: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	then, err := ParseTables(
		[]byte("schema: olafctl.tables/v1\nservers: [10.0.0.8]\nworkers:\n  - {address: 10.0.0.1, cluster: 0, worker: 5}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := Diff(now, then).String()
	var marks []string
	for line := range strings.Lines(got) {
		marks = append(marks, strings.TrimSpace(line[:2]))
		if strings.TrimRight(line, " \n")+"\n" != line {
			t.Errorf("%q ends in blanks", line)
		}
	}
	for _, want := range []string{"- ", "+ ", "~ ", " -> ", "10.0.0.9", "10.0.0.8", "10.0.0.2"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if len(marks) != 6 || !strings.HasSuffix(got, "1 to add, 2 to change, 2 to delete\n") {
		t.Errorf("%d lines:\n%s", len(marks), got)
	}
}

// TestTableFilesTakeAliases checks that a list is read through its alias and an empty list as null, and that a member
// needs all its fields.
func TestTableFilesTakeAliases(t *testing.T) {
	const head = "schema: olafctl.tables/v1\nservers: null\nworkers: [{address: 10.0.0.1, cluster: 0, worker: " +
		"0}]\nclusters: [{cluster: 0, group: 1}, {cluster: 1, group: 2}]\n"
	got, err := ParseTables([]byte(head +
		"groups:\n  - {id: 1, members: &all [{port: 1, instance: 0}]}\n  - {id: 2, members: *all}\n"))
	if err != nil || len(got.Servers) != 0 || len(got.Groups) != 2 || len(got.Groups[1].Members) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for member, missing := range map[string]string{"{port: 1}": "instance", "{instance: 0}": "port", "{}": "port"} {
		if _, err := ParseTables([]byte(head + "groups: [{id: 1, members: [" + member + "]}, {id: 2}]\n")); err == nil ||
			!strings.Contains(err.Error(), missing+": is missing") {
			t.Errorf("a member %s: %v", member, err)
		}
	}
}

// TestConnectRejectsMalformedTarget checks the error for a malformed target.
func TestConnectRejectsMalformedTarget(t *testing.T) {
	if conn, err := Connect("unix:\x00%", nil); err == nil || conn != nil {
		t.Errorf("%v, %v", conn, err)
	}
	if s, err := Dial(t.Context(), "unix:\x00%", Options{}); err == nil || s != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// TestPortsAsNumbers checks group members with the port field of earlier P4Runtime versions.
func TestPortsAsNumbers(t *testing.T) {
	//lint:ignore SA1019 it is deprecated and still what others write
	o, ok, err := toObject(group(3, &v1.Replica{Instance: 9, PortKind: &v1.Replica_EgressPort{EgressPort: 1 << 20}}), nil)
	if err != nil || !ok || len(o.members) != 1 || o.members[0] != (Member{Port: 1 << 20, Instance: 9}) {
		t.Errorf("%+v, %t, %v", o, ok, err)
	}
}

// TestPausesVaryByAFifth checks that the shortest and the longest of many pauses differ from the nominal pause by a
// fifth.
func TestPausesVaryByAFifth(t *testing.T) {
	least, most := time.Hour, time.Duration(0)
	for range 10000 {
		p := jitter(time.Second)
		least, most = min(least, p), max(most, p)
	}
	if least < 800*time.Millisecond || least > 810*time.Millisecond || most > 1200*time.Millisecond ||
		most < 1190*time.Millisecond {
		t.Errorf("pauses from %v to %v", least, most)
	}
	for p := range time.Duration(10) {
		if got := jitter(p); got < 0 || got > 2*p {
			t.Errorf("%v becomes %v", p, got)
		}
	}
}

// TestReadersLeaveAtOnce checks that a session without an election closes without waiting.
func TestReadersLeaveAtOnce(t *testing.T) {
	s, err := Dial(t.Context(), "unix:/nowhere", Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.left:
	default:
		t.Error("it would wait for an answer")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
