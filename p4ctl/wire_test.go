package p4ctl

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// everyObject returns one object of each kind and one for each program table, with the largest values in its fields, by
// name.
func everyObject(known []p4.Table) map[string]object {
	all := map[string]object{
		"group 7": {kind: kindGroup, key: 7, members: []Member{{Port: 1, Instance: 2},
			{Port: 1 << 31, Instance: 65535}}},
		"group 4294967295":     {kind: kindGroup, key: 1<<32 - 1},
		"cluster 65535":        {kind: kindCluster, key: 65535, a: 9},
		"server 10.0.0.9":      {kind: kindServer, key: addressKey(netip.MustParseAddr("10.0.0.9"))},
		"worker 255.255.255.1": {kind: kindWorker, key: addressKey(netip.MustParseAddr("255.255.255.1")), a: 256, b: 65535},
	}
	for i := range known {
		t := &known[i]
		key, params := make([]uint32, len(t.Key)), make([]uint32, len(t.Params))
		for k, f := range t.Key {
			key[k] = uint32(1<<f.Bits - 1)
		}
		for k, f := range t.Params {
			params[k] = uint32(1<<f.Bits - 1)
		}
		all[t.Name+" "+joinNumbers(t.Key, key)] = object{kind: kindEntry, table: t, key: t.Number(key), params: params}
	}
	return all
}

// TestEveryObjectReadsBack checks that every object is read back as it was written, also with numeric ports, and that
// each update uses the object's name.
func TestEveryObjectReadsBack(t *testing.T) {
	known := p4.TablesOf(programs.AllPrograms())
	if len(known) < 4 {
		t.Fatalf("%d tables of programs", len(known))
	}
	for name, o := range everyObject(known) {
		for op, verb := range map[v1.Update_Type]string{v1.Update_INSERT: "insert ", v1.Update_MODIFY: "modify ",
			v1.Update_DELETE: "delete "} {
			u := o.toUpdate(op)
			if got := describeUpdate(u, known); got != verb+name {
				t.Errorf("%q, want %q", got, verb+name)
			}
			if op == v1.Update_DELETE {
				if e := u.Entity.GetTableEntry(); e.GetAction() != nil ||
					len(u.Entity.GetPacketReplicationEngineEntry().GetMulticastGroupEntry().GetReplicas()) > 0 {
					t.Errorf("%s is deleted with what it was set to: %v", name, u)
				}
				continue
			}
			got, ok, err := toObject(u.Entity, known)
			if err != nil || !ok {
				t.Errorf("%s: %v, %v", name, ok, err)
			}
			if got.identity() != o.identity() || got.a != o.a || got.b != o.b || !slices.Equal(got.members, o.members) ||
				!slices.Equal(got.params, o.params) || got.name() != name {
				t.Errorf("%s: %+v, want %+v", name, got, o)
			}
		}
		if o.kind == kindEntry {
			if _, ok, err := toObject(o.toUpdate(v1.Update_INSERT).Entity, nil); ok || err != nil {
				t.Errorf("%s of no known program: %v, %v", name, ok, err)
			}
		}
	}
	if got := describeUpdate(&v1.Update{Type: v1.Update_INSERT}, known); got != "insert" {
		t.Errorf("nothing is %q", got)
	}
	if got := describeUpdate(&v1.Update{Type: v1.Update_INSERT,
		Entity: &v1.Entity{Entity: &v1.Entity_TableEntry{TableEntry: &v1.TableEntry{TableId: 5}}}},
		known); got != "insert entry of table 0x00000005" {
		t.Errorf("a strange table is %q", got)
	}
}

// TestForeignEntriesOfPrograms checks that malformed entries of programs are errors that name table and field, and that
// entries with other actions are skipped.
func TestForeignEntriesOfPrograms(t *testing.T) {
	known := p4.TablesOf(programs.AllPrograms())
	for i := range known {
		table := &known[i]
		narrow := -1 // a parameter with fewer than 32 bits
		for k, f := range table.Params {
			if f.Bits < 32 {
				narrow = k
			}
		}
		for name, c := range map[string]struct {
			change func(*v1.TableEntry)
			ok     bool
			fails  string
			called string // name in an update whose key is broken
		}{
			"as it is":       {func(*v1.TableEntry) {}, true, "", ""},
			"default":        {func(e *v1.TableEntry) { e.IsDefaultAction = true }, false, "", ""},
			"another action": {func(e *v1.TableEntry) { e.Action.GetAction().ActionId++ }, false, "", ""},
			"no key":         {func(e *v1.TableEntry) { e.Match = nil }, false, "match fields and", ""},
			"no parameter": {func(e *v1.TableEntry) { e.Action.GetAction().Params = nil }, len(table.Params) == 0,
				"match fields and", ""},
			"field 0": {func(e *v1.TableEntry) { e.Match[0].FieldId = 0 }, false, "field 0 does not exist",
				"entry of " + table.Name},
			"a field more": {func(e *v1.TableEntry) { e.Match[0].FieldId = uint32(len(table.Key)) + 1 }, false,
				"does not exist", "entry of " + table.Name},
			"wide key": {func(e *v1.TableEntry) { e.Match[0].GetExact().Value = []byte{1, 0, 0} }, false,
				"job is 65536, which does not fit into 16 bits", "entry of " + table.Name},
			"widest key": {func(e *v1.TableEntry) { e.Match[0].GetExact().Value = []byte{1, 0, 0, 0, 0} }, false,
				"longer than 32 bits", "entry of " + table.Name},
			"wide parameter": {func(e *v1.TableEntry) {
				if narrow >= 0 {
					e.Action.GetAction().Params[narrow].Value = p4.CanonicalBytes(1 << table.Params[narrow].Bits)
				}
			}, narrow < 0, "bits", ""},
			"a parameter more": {func(e *v1.TableEntry) {
				if p := e.Action.GetAction().Params; len(p) > 0 {
					p[0].ParamId = uint32(len(p)) + 1
				}
			}, len(table.Params) == 0, "does not exist", ""},
		} {
			key := make([]uint32, len(table.Key))
			u := object{kind: kindEntry, table: table, key: table.Number(key), params: make([]uint32,
				len(table.Params))}.toUpdate(v1.Update_MODIFY)
			c.change(u.Entity.GetTableEntry())
			_, ok, err := toObject(u.Entity, known)
			if fails := c.fails != "" && !c.ok; ok != c.ok || (err != nil) != fails || fails &&
				(!strings.Contains(err.Error(), c.fails) || !strings.Contains(err.Error(), table.Name)) {
				t.Errorf("%s, %s: %v, %v", table.Name, name, ok, err)
			}
			called := c.called
			if called == "" {
				called = table.Name + " " + joinNumbers(table.Key, key)
			}
			if got := describeUpdate(u, known); got != "modify "+called {
				t.Errorf("%s, %s: %q, want %q", table.Name, name, got, called)
			}
		}
	}
}

// TestOrderOfAPlan checks that a plan frees space before it uses it. Deletions of workers and entries precede
// insertions. Objects that they refer to are added before them and deleted after them.
func TestOrderOfAPlan(t *testing.T) {
	parse := func(text string) Tables {
		t.Helper()
		tables, err := ParseTables([]byte("schema: olafctl.tables/v1\n"+text), programs.AllPrograms()...)
		if err != nil {
			t.Fatal(err)
		}
		return tables
	}
	one := parse("servers: [10.0.0.9]\nworkers: [{address: 10.0.0.1, cluster: 0, worker: 0}]\nclusters: [{cluster: 0, " +
		"group: 1}]\ngroups: [{id: 1, members: [{port: 1, instance: 0}]}]\nprograms: {isw.members: [{job: 0, worker: " +
		"0, port: 4}]}\n")
	two := parse("servers: [10.0.0.8]\nworkers: [{address: 10.0.0.2, cluster: 3, worker: 2}]\nclusters: [{cluster: 3, " +
		"group: 4}]\ngroups: [{id: 4, members: [{port: 1, instance: 2}]}]\nprograms: {isw.members: [{job: 3, worker: " +
		"2, port: 4}]}\n")
	rank := func(c change) int {
		late := c.after.kind
		if c.op == v1.Update_DELETE {
			late = c.before.kind
		}
		switch {
		case c.op == v1.Update_INSERT && late < kindWorker:
			return 0
		case c.op == v1.Update_DELETE && late >= kindWorker:
			return 1
		case c.op == v1.Update_INSERT:
			return 2
		}
		return 3
	}
	for name, p := range map[string]Plan{"one to two": Diff(one, two), "two to one": Diff(two, one)} {
		seen := map[int]int{}
		for i, c := range p.changes {
			seen[rank(c)]++
			if i > 0 && rank(c) < rank(p.changes[i-1]) {
				t.Errorf("%s: %s\ncomes too late", name, p)
			}
		}
		if d := cmp.Diff(map[int]int{0: 3, 1: 2, 2: 2, 3: 3}, seen); d != "" {
			t.Errorf("%s: %s\n%s", name, d, p)
		}
	}
}
