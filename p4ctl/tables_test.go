package p4ctl

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
)

var compareAddresses = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

const smallFile = `schema: olafctl.tables/v1
servers: [192.168.0.1]
workers:
  - {address: 10.0.0.1, cluster: 0, worker: 0}
  - {address: 10.0.0.2, cluster: 1, worker: 1}
  - {address: 10.0.0.3, cluster: 1, worker: 2}
multicast_port: 2
`

func small(t *testing.T) Tables {
	t.Helper()
	tables, err := ParseTables([]byte(smallFile))
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

func TestParseTables(t *testing.T) {
	want := Tables{
		Servers: []netip.Addr{netip.MustParseAddr("192.168.0.1")},
		Workers: []Worker{
			{netip.MustParseAddr("10.0.0.1"), 0, 0}, {netip.MustParseAddr("10.0.0.2"), 1, 1},
			{netip.MustParseAddr("10.0.0.3"), 1, 2}},
		Clusters: []Cluster{{0, 1}, {1, 2}},
		Groups:   []Group{{1, []Member{{2, 0}}}, {2, []Member{{2, 1}, {2, 2}}}},
	}
	if diff := cmp.Diff(want, small(t), compareAddresses); diff != "" {
		t.Error(diff)
	}
}

// TestParseTablesErrorsNameLines checks that every fault names line and field.
func TestParseTablesErrorsNameLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "the file is empty; start with schema: olafctl.tables/v1"},
		{"workers: []\n", "line 1: schema: is missing"},
		{"schema: other/v1\n", `line 1: schema: want olafctl.tables/v1, got "other/v1"`},
		{"schema: olafctl.tables/v1\nworker: []\n", "line 2: worker: unknown field"},
		{"schema: olafctl.tables/v1\nworkers:\n  - {address: 10.0.0.1, cluster: 70000, worker: 0}\n",
			`line 3: workers[0].cluster: want a number from 0 to 65535, got "70000"`},
		{"schema: olafctl.tables/v1\nworkers:\n  - {address: 10.0.0.1, clutser: 0, worker: 0}\n",
			"line 3: workers[0].clutser: unknown field"},
		{"schema: olafctl.tables/v1\nworkers:\n  - {address: 10.0.0.1, cluster: 0}\n",
			"line 3: workers[0].worker: is missing"},
		{"schema: olafctl.tables/v1\nworkers:\n  - {address: fe80::1, cluster: 0, worker: 0}\n",
			`line 3: workers[0].address: want an IPv4 address, got "fe80::1"`},
		{"schema: olafctl.tables/v1\nworkers: 3\n", `line 2: workers: want a list, got "3"`},
		{"schema: olafctl.tables/v1\nworkers:\n- {address: 10.0.0.1, cluster: 0, worker: 0}\n- {address: 10.0.0.1, " +
			"cluster: 0, worker: 1}\n",
			"line 4: workers[1].address: 10.0.0.1 is already workers[0]"},
		{"schema: olafctl.tables/v1\nworkers:\n- {address: 10.0.0.1, cluster: 0, worker: 0}\n- {address: 10.0.0.2, " +
			"cluster: 0, worker: 0}\n",
			"line 4: workers[1].worker: 10.0.0.1 and 10.0.0.2 are both worker 0 of cluster 0"},
		{"schema: olafctl.tables/v1\nclusters:\n- {cluster: 0, group: 4}\n",
			"line 3: clusters[0].group: group 4 is not listed under groups"},
		{"schema: olafctl.tables/v1\ngroups:\n- {id: 0, members: []}\n",
			"line 3: groups[0].id: group 0 does not exist; ids start at 1"},
		{"schema: [\n", "not valid YAML:"},
	} {
		_, err := ParseTables([]byte(c.text))
		if !errors.Is(err, ErrTables) || err == nil || err.Error() != c.want &&
			(c.want != "not valid YAML:" || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}

// FuzzParseTables checks that accepted text is printed in a form that reads back as the same tables.
func FuzzParseTables(f *testing.F) {
	f.Add([]byte(smallFile))
	f.Add([]byte("schema: olafctl.tables/v1\nworkers: &a\n- {address: 1.2.3.4, cluster: 0x10, worker: 1}\nservers: *a\n"))
	f.Add([]byte("schema: olafctl.tables/v1\ngroups: [{id: 4294967295, members: [{port: 1, instance: " +
		"65535}]}]\nclusters: ~\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tables, err := ParseTables(text)
		if err != nil {
			if !errors.Is(err, ErrTables) {
				t.Fatalf("%v does not match ErrTables", err)
			}
			return
		}
		again, err := ParseTables(tables.AppendYAML(nil))
		if err != nil || again.Hash() != tables.Hash() {
			t.Fatalf("%s reads back as %v (%v)", tables.AppendYAML(nil), again, err)
		}
	})
}

func TestRegrouping(t *testing.T) {
	start := small(t)
	a := netip.MustParseAddr
	moved, err := start.Move(0, a("10.0.0.2"))
	if err != nil {
		t.Fatal(err)
	}
	want := "~ group 1  members 2/0 -> members 2/0 2/1\n~ group 2  members 2/1 2/2 -> members 2/2\n" +
		"~ worker 10.0.0.2  cluster 1 worker 1 -> cluster 0 worker 1\n0 to add, 3 to change, 0 to delete\n"
	if diff := cmp.Diff(want, Diff(start, moved).String()); diff != "" {
		t.Error(diff)
	}
	added, err := moved.Add(2, Worker{a("10.0.0.9"), 7, 9})
	if err != nil {
		t.Fatal(err)
	}
	want = "+ group 8  members 2/9\n+ cluster 7  group 8\n+ worker 10.0.0.9  cluster 7 worker 9\n3 to add, 0 to " +
		"change, 0 to delete\n"
	if diff := cmp.Diff(want, Diff(moved, added).String()); diff != "" {
		t.Error(diff)
	}
	removed, err := added.RemoveCluster(7)
	if err != nil || removed.Hash() != moved.Hash() {
		t.Errorf("removing the new cluster does not lead back: %v, %v", removed, err)
	}
	if removed, err = start.Remove(a("10.0.0.3")); err != nil || len(removed.Workers) != 2 ||
		len(removed.Groups[1].Members) != 1 {
		t.Errorf("remove: %v, %v", removed, err)
	}
	if small(t).Hash() != start.Hash() {
		t.Error("the tables that were started from changed")
	}
	for what, err := range map[string]error{
		"unknown worker":  second(start.Move(0, a("10.9.9.9"))),
		"unknown cluster": second(start.RemoveCluster(99)),
		"same identity":   second(start.Add(1, Worker{a("10.0.0.8"), 0, 0})),
		"same address":    second(start.Add(1, Worker{a("10.0.0.1"), 5, 5})),
	} {
		if !errors.Is(err, ErrTables) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestPlanReachesDesiredTables replays plans on a model and checks that there are no duplicate inserts, no changes of
// missing objects and no cluster without its group at any step, and that the plan ends with the desired tables.
func TestPlanReachesDesiredTables(t *testing.T) {
	tables := rapid.Custom(func(r *rapid.T) Tables {
		var t Tables
		for _, i := range rapid.SliceOfNDistinct(rapid.Byte(), 0, 30, rapid.ID).Draw(r, "workers") {
			t.Workers = append(t.Workers, Worker{netip.AddrFrom4([4]byte{10, 0, 0, i}),
				olaf.ClusterID(rapid.IntRange(0, 5).Draw(r, "cluster")), olaf.WorkerID(i)})
		}
		t = t.WithGroups(rapid.Uint32Range(0, 2).Draw(r, "port"))
		for _, i := range rapid.SliceOfNDistinct(rapid.Byte(), 0, 3, rapid.ID).Draw(r, "servers") {
			t.Servers = append(t.Servers, netip.AddrFrom4([4]byte{10, 1, 0, i}))
		}
		return t
	})
	rapid.Check(t, func(r *rapid.T) {
		from, to := tables.Draw(r, "from"), tables.Draw(r, "to")
		have := make(map[identity]object)
		for _, o := range from.objects() {
			have[o.identity()] = o
		}
		for _, u := range Diff(from, to).toUpdates() {
			o, known, err := toObject(u.Entity, nil)
			if !known && err == nil { // the deletion of an entry has no action
				o = deleted(u)
			}
			_, exists := have[o.identity()]
			switch u.Type.String() {
			case "INSERT":
				if exists {
					r.Fatalf("%s is inserted twice", o.name())
				}
				have[o.identity()] = o
			case "MODIFY":
				if !exists {
					r.Fatalf("%s is modified and not there", o.name())
				}
				have[o.identity()] = o
			case "DELETE":
				if !exists {
					r.Fatalf("%s is deleted and not there", o.name())
				}
				delete(have, o.identity())
			}
			for _, c := range have {
				if _, ok := have[identity{kind: kindGroup, key: c.a}]; c.kind == kindCluster && !ok {
					r.Fatalf("cluster %d points to group %d, which is gone", c.key, c.a)
				}
			}
		}
		var end Tables
		for _, o := range have {
			end.add(o)
		}
		if end.Hash() != to.Hash() {
			r.Fatalf("the plan leads to %v, not %v", end, to)
		}
	})
}

func TestHashIgnoresOrder(t *testing.T) {
	tables := small(t)
	hash := tables.Hash()
	tables.Workers[0], tables.Workers[2] = tables.Workers[2], tables.Workers[0]
	tables.Groups[1].Members[0], tables.Groups[1].Members[1] = tables.Groups[1].Members[1], tables.Groups[1].Members[0]
	if tables.Hash() != hash {
		t.Error("order changes the hash")
	}
	tables.Workers[0].Cluster++
	if tables.Hash() == hash {
		t.Error("another cluster does not change the hash")
	}
}

func TestElectionID(t *testing.T) {
	for _, c := range []struct {
		a, b ElectionID
		want int
	}{
		{ElectionID{0, 5}, ElectionID{0, 5}, 0},
		{ElectionID{0, math.MaxUint64}, ElectionID{1, 0}, -1},
		{ElectionID{2, 0}, ElectionID{1, math.MaxUint64}, 1},
		{ElectionID{0, math.MaxUint64}, ElectionID{0, 1}, 1},
	} {
		if got := c.a.Compare(c.b); got != c.want {
			t.Errorf("%v compared with %v: %d, want %d", c.a, c.b, got, c.want)
		}
	}
	for id, next := range map[ElectionID]ElectionID{
		{0, 0}:                           {0, 1},
		{0, math.MaxUint64}:              {1, 0},
		{math.MaxUint64, math.MaxUint64}: {math.MaxUint64, math.MaxUint64},
	} {
		if got := id.Next(); got != next {
			t.Errorf("after %v comes %v, want %v", id, got, next)
		}
		if got, err := ParseElectionID(next.String()); err != nil || got != next {
			t.Errorf("%v reads back as %v, %v", next, got, err)
		}
	}
	for _, bad := range []string{"", ":", "1:", "-1", "1:2:3", "18446744073709551616"} {
		if id, err := ParseElectionID(bad); err == nil {
			t.Errorf("%q is read as %v", bad, id)
		}
	}
}

// TestErrorsMatch checks that an error keeps its kind, its gRPC status and its text.
func TestErrorsMatch(t *testing.T) {
	for code, kind := range map[codes.Code]error{
		codes.Unavailable: ErrUnreachable, codes.PermissionDenied: ErrNotPrimary, codes.FailedPrecondition: ErrNoPipeline} {
		err := rpcError("write tables", status.Error(code, "because"))
		if !errors.Is(err, kind) || Code(err) != code {
			t.Errorf("%v becomes %v", code, err)
		}
	}
	err := rpcError("write tables", status.Error(codes.Internal, "because"))
	if got, want := err.Error(), "write tables: Internal: because"; got != want || Code(err) != codes.Internal {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := writeError(status.Error(codes.Unknown, "odd"), nil, 0, false); err == nil ||
		errors.As(err, new(*BatchError)) {
		t.Errorf("a failure without details: %v", err)
	}
}

// deleted returns the object that a deletion names.
func deleted(u *v1.Update) object {
	te := u.GetEntity().GetTableEntry()
	for k, s := range shapes {
		if s.table == te.GetTableId() {
			key, _ := parseNumber(te.GetMatch()[0].GetExact().GetValue())
			return object{kind: k, key: key}
		}
	}
	return object{}
}
