package p4ctl

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/internal/test/golden"
)

const wholeFile = `schema: olafctl.tables/v1
servers:
  - 10.0.0.9
workers:
  - {address: 10.0.0.1, cluster: 0, worker: 0}
  - {address: 10.0.0.2, cluster: 1, worker: 1}
clusters:
  - {cluster: 0, group: 1}
  - {cluster: 1, group: 2}
groups:
  - {id: 1, members: [{port: 1, instance: 0}, {port: 1, instance: 1}]}
  - {id: 2, members: []}
programs:
  isw.members:
    - {job: 0, worker: 0, port: 4}
    - {job: 0, worker: 1, port: 5}
  p4inc.segments:
    - {job: 0, first: 16, size: 8}
multicast_port: 7
`

// TestParseErrorsAtEveryWord replaces every word in a file, drops and repeats every line, and checks the errors against
// a golden file.
func TestParseErrorsAtEveryWord(t *testing.T) {
	var text bytes.Buffer
	whole, err := ParseTables([]byte(wholeFile), programs.AllPrograms()...)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what, file string) {
		tables, err := ParseTables([]byte(file), programs.AllPrograms()...)
		switch {
		case err != nil && !errors.Is(err, ErrTables):
			t.Errorf("%s: %v does not match ErrTables", what, err)
		case err != nil:
			fmt.Fprintf(&text, "%s: %v\n", what, err)
		default:
			fmt.Fprintf(&text, "%s: taken, %d workers, %d servers, %d clusters, %d groups, %d entries; as before %t\n", what,
				len(tables.Workers), len(tables.Servers), len(tables.Clusters), len(tables.Groups), len(tables.Entries),
				tables.Hash() == whole.Hash())
			if again, err := ParseTables(tables.AppendYAML(nil), programs.AllPrograms()...); err != nil ||
				again.Hash() != tables.Hash() {
				t.Errorf("%s: does not read back: %v", what, err)
			}
		}
	}
	try("the whole", wholeFile)
	for _, at := range regexp.MustCompile(`[A-Za-z0-9_./]+`).FindAllStringIndex(wholeFile, -1) {
		word, line := wholeFile[at[0]:at[1]], 1+strings.Count(wholeFile[:at[0]], "\n")
		for _, other := range []string{"x", "1", "-1", "65535", "65536", "4294967295", "4294967296", "[]", "{a: 1}",
			"null", "0.0.0.0", "224.0.0.1", "10.0.0.9", "::1"} {
			try(fmt.Sprintf("line %d, %s for %s", line, other, word), wholeFile[:at[0]]+other+wholeFile[at[1]:])
		}
	}
	lines := strings.SplitAfter(wholeFile, "\n")
	for i, line := range lines[:len(lines)-1] {
		before, after := strings.Join(lines[:i], ""), strings.Join(lines[i+1:], "")
		try(fmt.Sprintf("without line %d", i+1), before+after)
		try(fmt.Sprintf("line %d twice", i+1), before+line+line+after)
		try(fmt.Sprintf("up to line %d", i+1), before+line)
	}
	for _, odd := range []string{"", " ", "~", "7", "[]", "{}", "schema", "schema: {}",
		"{schema: olafctl.tables/v1, }", "{schema: olafctl.tables/v1, schema}",
		"schema: olafctl.tables/v1\ngroups: []\n", "\t"} {
		try(fmt.Sprintf("%q", odd), odd)
	}
	golden.Equal(t, "files.txt", text.Bytes())
}

// TestRegroupEveryWorkerAndCluster checks adding, moving and removing every worker and cluster, present or not, in
// tables whose clusters have a group, share one or have none.
func TestRegroupEveryWorkerAndCluster(t *testing.T) {
	const file = `schema: olafctl.tables/v1
workers:
  - {address: 10.0.0.1, cluster: 0, worker: 0}
  - {address: 10.0.0.2, cluster: 0, worker: 1}
  - {address: 10.0.0.3, cluster: 1, worker: 2}
  - {address: 10.0.0.4, cluster: 2, worker: 3}
  - {address: 10.0.0.5, cluster: 3, worker: 4}
clusters: [{cluster: 0, group: 4}, {cluster: 1, group: 4}, {cluster: 2, group: 3}]
groups:
  - {id: 4, members: [{port: 9, instance: 0}, {port: 9, instance: 2}]}
  - {id: 3, members: [{port: 8, instance: 3}]}
  - {id: 5, members: []}
programs:
  isw.members: [{job: 0, worker: 0, port: 4}, {job: 1, worker: 2, port: 5}, {job: 9, worker: 2, port: 5}]
  p4inc.segments: [{job: 0, first: 16, size: 8}, {job: 3, first: 0, size: 8}]
`
	start, err := ParseTables([]byte(file), programs.AllPrograms()...)
	if err != nil {
		t.Fatal(err)
	}
	before := start.Hash()
	var text bytes.Buffer
	say := func(what string, got Tables, err error) {
		fmt.Fprintf(&text, "%s: %v\n", what, err)
		if err == nil {
			text.WriteString(Diff(start, got).String())
		} else if !errors.Is(err, ErrTables) {
			t.Errorf("%s: %v does not match ErrTables", what, err)
		}
		if start.Hash() != before {
			t.Fatalf("%s changed the tables that it was asked of", what)
		}
	}
	for i := range byte(7) {
		a := netip.AddrFrom4([4]byte{10, 0, 0, i})
		got, err := start.Remove(a)
		say(fmt.Sprint("remove ", a), got, err)
		for _, to := range []olaf.ClusterID{0, 2, 3, 7} {
			got, err = start.Move(to, a)
			say(fmt.Sprint("move ", a, " to ", to), got, err)
		}
	}
	got, err := start.Move(1, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::ffff:10.0.0.4"))
	say("move two", got, err)
	got, err = start.Remove(netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.3"))
	say("remove two", got, err)
	for c := range olaf.ClusterID(6) {
		got, err := start.RemoveCluster(c)
		say(fmt.Sprint("remove cluster ", c), got, err)
		got, err = start.Add(65536, Worker{netip.MustParseAddr("10.0.0.7"), c, 2})
		say(fmt.Sprint("add worker 2 to ", c, " behind a far port"), got, err)
		got, err = start.Add(6, Worker{netip.MustParseAddr("10.0.0.7"), c, 7}, Worker{netip.MustParseAddr("10.0.0.8"),
			c + 1, 8})
		say(fmt.Sprint("add two to ", c, " and the next"), got, err)
	}
	say("nothing", start, nil)
	golden.Equal(t, "regrouped.txt", text.Bytes())
}

// TestFaultsOfTables checks the errors for tables that cannot be written as a file.
func TestFaultsOfTables(t *testing.T) {
	four := netip.MustParseAddr("10.0.0.1")
	for want, tables := range map[string]Tables{
		`servers[0].address: "invalid IP" is not an IPv4 address`: {Servers: []netip.Addr{{}}},
		`workers[0].address: "fe80::1" is not an IPv4 address`:    {Workers: []Worker{{Address: netip.MustParseAddr("fe80::1")}}},
		"servers[1].address: 10.0.0.1 is already servers[0]": {Servers: []netip.Addr{four,
			netip.MustParseAddr("::ffff:10.0.0.1")}},
		"workers[0].address: 10.0.0.1 is already servers[0]": {Servers: []netip.Addr{four},
			Workers: []Worker{{Address: four}}},
		"groups[1].id: group 3 appears twice": {Groups: []Group{{ID: 3}, {ID: 3}}},
		"groups[0].members: port 1, instance 2 appears twice": {Groups: []Group{{ID: 3,
			Members: []Member{{1, 2}, {2, 2}, {1, 2}}}}},
		"clusters[1].cluster: cluster 5 appears twice": {Groups: []Group{{ID: 3}},
			Clusters: []Cluster{{5, 3}, {5, 3}}},
		"clusters[0].group: group 3 is not listed under groups": {Clusters: []Cluster{{5, 3}}},
		"servers[0].address: " +
			"0.0.0.0 can't be a source": {Servers: []netip.Addr{netip.IPv4Unspecified()}},
		"workers[1].worker: 10.0.0.1 and 10.0.0.2 are both worker 0 of cluster 0": {Workers: []Worker{{Address: four},
			{Address: four.Next()}}},
	} {
		if err := tables.Validate(); err == nil || err.Error() != want || !errors.Is(err, ErrTables) {
			t.Errorf("%v, want %s", err, want)
		}
		if len(tables.Hash()) != 64 {
			t.Errorf("%s: a hash of %q", want, tables.Hash())
		}
		// Regrouping such tables fails too.
		worker := Worker{Address: netip.MustParseAddr("10.0.0.77"), Cluster: 77, ID: 77}
		tables.Workers = append(tables.Workers, worker)
		for what, change := range map[string]func() (Tables, error){
			"Add": func() (Tables, error) {
				return tables.Add(1, Worker{Address: worker.Address.Next(), Cluster: 77, ID: 78})
			},
			"Move":          func() (Tables, error) { return tables.Move(78, worker.Address) },
			"Remove":        func() (Tables, error) { return tables.Remove(worker.Address) },
			"RemoveCluster": func() (Tables, error) { return tables.RemoveCluster(77) },
		} {
			if _, err := change(); !errors.Is(err, ErrTables) {
				t.Errorf("%s: %s: %v", want, what, err)
			}
		}
	}
	same := Tables{Groups: []Group{{ID: 3, Members: []Member{{1, 2}, {2, 2}, {1, 3}}}, {ID: 4, Members: []Member{{1, 2}}}}}
	if err := same.Validate(); err != nil {
		t.Error(err)
	}
	if none := (Plan{}); none.String() != "no changes\n" || !none.Empty() || none.Len() != 0 {
		t.Errorf("%q", none)
	}
	if err := (&fileError{Field: "a", Text: "b"}).Error(); err != "a: b" {
		t.Error(err)
	}
}

// TestTableOrderDoesNotMatter checks that shuffling the lists in tables changes neither text nor hash.
func TestTableOrderDoesNotMatter(t *testing.T) {
	whole, err := ParseTables([]byte(wholeFile), programs.AllPrograms()...)
	if err != nil {
		t.Fatal(err)
	}
	whole.Servers = append(whole.Servers, netip.MustParseAddr("10.0.0.8"), netip.MustParseAddr("10.0.0.10"))
	text, hash := string(whole.AppendYAML(nil)), whole.Hash()
	if alone := (Tables{Entries: whole.Entries}); alone.Hash() == hash || alone.Validate() != nil {
		t.Errorf("entries alone: %s, %v", alone.Hash(), alone.Validate())
	}
	rapid.Check(t, func(t *rapid.T) {
		other := whole
		other.Workers = rapid.Permutation(whole.Workers).Draw(t, "workers")
		other.Servers = rapid.Permutation(whole.Servers).Draw(t, "servers")
		other.Clusters = rapid.Permutation(whole.Clusters).Draw(t, "clusters")
		other.Groups = rapid.Permutation(whole.Groups).Draw(t, "groups")
		for i := range other.Groups {
			other.Groups[i].Members = rapid.Permutation(other.Groups[i].Members).Draw(t, "members")
		}
		other.Entries = rapid.Permutation(whole.Entries).Draw(t, "entries")
		if got := string(other.AppendYAML(nil)); got != text || other.Hash() != hash || !Diff(whole, other).Empty() {
			t.Fatalf("%s\nbecomes\n%s", text, got)
		}
	})
}

// TestKindsOfErrors checks which exit code each error leads to.
func TestKindsOfErrors(t *testing.T) {
	for err, want := range map[error]olaf.Kind{
		ErrUnreachable: olaf.Device, ErrElectionInUse: olaf.Device, ErrNotPrimary: olaf.Device, ErrPreempted: olaf.Device,
		ErrTables: olaf.Usage, ErrTooMany: olaf.Usage,
		&Fault{}: olaf.Usage, &fileError{}: olaf.Usage,
	} {
		if kind, declared := olaf.KindOf(err); kind != want || !declared {
			t.Errorf("%v is of kind %v, %t, want %v", err, kind, declared, want)
		}
	}
}
