package p4ctl

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// ErrTables is matched by all errors about desired tables.
var ErrTables = olaf.NewError(olaf.Usage, "bad tables")

// Worker is an entry in vnp4_1.workers. It maps an IPv4 address to the identity of a worker.
type Worker struct {
	Address netip.Addr
	Cluster olaf.ClusterID
	ID      olaf.WorkerID
}

// Cluster is an entry in vnp4_2.cluster_groups. It maps a cluster to the multicast group for its ACKs.
type Cluster struct {
	ID    olaf.ClusterID
	Group uint32 // id of a Group
}

// Member is a member of a multicast group, which receives one copy of each packet.
type Member struct {
	Port     uint32
	Instance uint16 // the worker's id
}

// Group is a multicast group. The order of its members has no meaning.
type Group struct {
	ID      uint32 // from 1
	Members []Member
}

// Entry is an entry in a table of a switch program. Its values are in the order of the table's fields.
type Entry struct {
	Table       p4.Table
	Key, Params []uint32
}

// EntriesOf returns the table entries of a switch program for the given jobs. The error matches program.ErrConfig.
func EntriesOf(d *program.Description, jobs ...program.Job) ([]Entry, error) {
	tables := p4.TablesOf([]program.Description{*d})
	entries, err := d.Entries(jobs...)
	list := make([]Entry, len(entries))
	for i, e := range entries {
		list[i] = Entry{tables[e.Table], e.Key, e.Params}
	}
	return list, err
}

// Tables contains the actual or desired contents of a device's tables. The order within a list has no meaning.
type Tables struct {
	Workers  []Worker
	Servers  []netip.Addr // IPv4 addresses of parameter servers
	Clusters []Cluster
	Groups   []Group
	Entries  []Entry // entries in tables of switch programs, if the pipeline has them
}

// Programs returns the programs whose tables have entries, sorted by code.
func (t Tables) Programs() []program.Description {
	var programs []program.Description
	for i := range t.Entries {
		d := t.Entries[i].Table.Program
		if !slices.ContainsFunc(programs, func(p program.Description) bool { return p.Code == d.Code }) {
			programs = append(programs, *d)
		}
	}
	slices.SortFunc(programs, func(a, b program.Description) int { return cmp.Compare(a.Code, b.Code) })
	return programs
}

// WithGroups returns t with one multicast group for each cluster. The group contains all workers of the cluster behind
// port. WithGroups replaces the clusters and groups in t. The ID of a group is the cluster ID plus one, because there
// is no group 0.
func (t Tables) WithGroups(port uint32) Tables {
	members := make(map[olaf.ClusterID][]Member)
	for _, w := range t.Workers {
		members[w.Cluster] = append(members[w.Cluster], Member{Port: port, Instance: uint16(w.ID)})
	}
	t.Clusters, t.Groups = nil, nil
	for c, m := range members {
		id := uint32(c) + 1
		t.Clusters = append(t.Clusters, Cluster{ID: c, Group: id})
		t.Groups = append(t.Groups, Group{ID: id, Members: m})
	}
	return t.Canonical()
}

// Canonical returns a copy of t in which all lists are sorted by key.
func (t Tables) Canonical() Tables {
	t.Workers = slices.Clone(t.Workers)
	slices.SortFunc(t.Workers, func(a, b Worker) int { return a.Address.Compare(b.Address) })
	t.Servers = slices.Clone(t.Servers)
	slices.SortFunc(t.Servers, netip.Addr.Compare)
	t.Clusters = slices.Clone(t.Clusters)
	slices.SortFunc(t.Clusters, func(a, b Cluster) int { return cmp.Compare(a.ID, b.ID) })
	t.Groups = slices.Clone(t.Groups)
	slices.SortFunc(t.Groups, func(a, b Group) int { return cmp.Compare(a.ID, b.ID) })
	for i := range t.Groups {
		t.Groups[i].Members = sortMembers(t.Groups[i].Members)
	}
	t.Entries = slices.Clone(t.Entries)
	slices.SortFunc(t.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Table.ID, b.Table.ID),
			slices.Compare(a.Key, b.Key))
	})
	return t
}

func sortMembers(m []Member) []Member {
	m = slices.Clone(m)
	slices.SortFunc(m, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Instance, b.Instance))
	})
	return m
}

// Hash returns a SHA-256 digest of the tables. It does not depend on the order of the lists.
func (t Tables) Hash() string {
	sum := sha256.New()
	var scratch []byte
	for _, o := range t.objects() {
		scratch = append(scratch[:0], byte(o.kind))
		for _, n := range []uint32{o.key, o.a, o.b, uint32(len(o.members))} {
			scratch = binary.BigEndian.AppendUint32(scratch, n)
		}
		for _, m := range o.members {
			scratch = binary.BigEndian.AppendUint32(scratch, m.Port)
			scratch = binary.BigEndian.AppendUint16(scratch, m.Instance)
		}
		if o.kind == kindEntry {
			scratch = binary.BigEndian.AppendUint32(scratch, o.table.ID)
			for _, v := range o.params {
				scratch = binary.BigEndian.AppendUint32(scratch, v)
			}
		}
		sum.Write(scratch)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Fault describes a fault in an element of desired tables.
type Fault struct {
	List  string // workers, servers, clusters, groups, or the name of a switch program's table
	Index int    // index in that list, from 0
	Field string
	Text  string
}

// Error returns the fault with its path.
func (f *Fault) Error() string {
	return fmt.Sprintf("%s[%d].%s: %s", f.List, f.Index, f.Field, f.Text)
}

func (f *Fault) Unwrap() error { return ErrTables }

// Validate rejects tables that no device can store. It rejects addresses other than IPv4, duplicates, one identity with
// two addresses, and a cluster without its group. The error is the first *Fault and matches ErrTables.
func (t Tables) Validate() error {
	addresses := make(map[netip.Addr]string, len(t.Workers)+len(t.Servers))
	address := func(list string, i int, a netip.Addr) error {
		a = a.Unmap()
		here := fmt.Sprintf("%s[%d]", list, i)
		switch {
		case !a.Is4():
			return &Fault{list, i, "address", fmt.Sprintf("%q is not an IPv4 address", a)}
		case a.IsUnspecified() || a.IsMulticast():
			return &Fault{list, i, "address", fmt.Sprintf("%s can't be a source", a)}
		case addresses[a] != "":
			return &Fault{list, i, "address", fmt.Sprintf("%s is already %s", a, addresses[a])}
		}
		addresses[a] = here
		return nil
	}
	for i, a := range t.Servers {
		if err := address("servers", i, a); err != nil {
			return err
		}
	}
	identities := make(map[Worker]netip.Addr, len(t.Workers))
	for i, w := range t.Workers {
		if err := address("workers", i, w.Address); err != nil {
			return err
		}
		identity := Worker{Cluster: w.Cluster, ID: w.ID}
		if other, ok := identities[identity]; ok {
			return &Fault{"workers", i, "worker", fmt.Sprintf("%s and %s are both worker %d of cluster %d", other,
				w.Address, w.ID, w.Cluster)}
		}
		identities[identity] = w.Address
	}
	return t.validateGroups()
}

func (t Tables) validateGroups() error {
	groups := make(map[uint32]bool, len(t.Groups))
	for i, g := range t.Groups {
		switch {
		case g.ID == 0:
			return &Fault{"groups", i, "id", "group 0 does not exist; ids start at 1"}
		case groups[g.ID]:
			return &Fault{"groups", i, "id", fmt.Sprintf("group %d appears twice", g.ID)}
		}
		groups[g.ID] = true
		members := make(map[Member]bool, len(g.Members))
		for _, m := range g.Members {
			if members[m] {
				return &Fault{"groups", i, "members", fmt.Sprintf("port %d, instance %d appears twice", m.Port,
					m.Instance)}
			}
			members[m] = true
		}
	}
	clusters := make(map[olaf.ClusterID]bool, len(t.Clusters))
	for i, c := range t.Clusters {
		switch {
		case clusters[c.ID]:
			return &Fault{"clusters", i, "cluster", fmt.Sprintf("cluster %d appears twice", c.ID)}
		case !groups[c.Group]:
			return &Fault{"clusters", i, "group", fmt.Sprintf("group %d is not listed under groups", c.Group)}
		}
		clusters[c.ID] = true
	}
	return t.validateEntries()
}

// validateEntries checks the entries of switch programs. The Index in a Fault counts the entries of the same table.
func (t Tables) validateEntries() error {
	seen := make(map[identity]bool, len(t.Entries))
	above := make(map[identity]olaf.WorkerID) // by table and job
	count := map[uint32]int{}
	for i := range t.Entries {
		e := &t.Entries[i]
		o := e.toObject()
		at := count[e.Table.ID]
		count[e.Table.ID]++
		if seen[o.identity()] {
			return &Fault{e.Table.Name, at, e.Table.Key[0].Name, o.name() + " appears twice"}
		}
		seen[o.identity()] = true
		if !e.Table.NamesParent(e.Params) {
			continue
		}
		j, _ := e.Table.ReadEntry(e.Key, e.Params)
		job := identity{table: e.Table.ID, key: uint32(j.ID)}
		if other, second := above[job]; second {
			return &Fault{e.Table.Name, at, e.Table.Key[0].Name, fmt.Sprintf("%s names two switches above job %d: %d and %d",
				e.Table.Name, j.ID, other, j.Above)}
		}
		above[job] = j.Above
	}
	return nil
}

func (e *Entry) toObject() object {
	return object{kind: kindEntry, table: &e.Table, key: e.Table.Number(e.Key), params: e.Params}
}

// kind is the kind of an object. Objects are written in the order of their kinds.
type kind uint8

const (
	kindGroup kind = iota
	kindCluster
	kindServer
	kindWorker
	kindEntry
)

// object is a table entry or a multicast group in a form that can be compared.
type object struct {
	kind    kind
	key     uint32 // address, cluster id or group id, or p4.Table.Number
	a, b    uint32 // parameters of the action
	members []Member
	table   *p4.Table // used with params for kindEntry
	params  []uint32
}

// identity is the key of an object. Two objects with the same identity are the same object.
type identity struct {
	kind       kind
	table, key uint32
}

func (o object) identity() identity {
	if o.table == nil {
		return identity{kind: o.kind, key: o.key}
	}
	return identity{o.kind, o.table.ID, o.key}
}

func (o object) equal(p object) bool {
	return o.identity() == p.identity() && o.a == p.a && o.b == p.b && slices.Equal(o.members, p.members) &&
		slices.Equal(o.params, p.params)
}

// objects returns all objects, sorted by kind and key.
func (t Tables) objects() []object {
	all := make([]object, 0, len(t.Workers)+len(t.Servers)+len(t.Clusters)+len(t.Groups)+len(t.Entries))
	for _, g := range t.Groups {
		all = append(all, object{kind: kindGroup, key: g.ID, members: sortMembers(g.Members)})
	}
	for _, c := range t.Clusters {
		all = append(all, object{kind: kindCluster, key: uint32(c.ID), a: c.Group})
	}
	for _, s := range t.Servers {
		all = append(all, object{kind: kindServer, key: addressKey(s)})
	}
	for _, w := range t.Workers {
		all = append(all, object{kind: kindWorker, key: addressKey(w.Address), a: uint32(w.Cluster), b: uint32(w.ID)})
	}
	for i := range t.Entries {
		all = append(all, t.Entries[i].toObject())
	}
	slices.SortFunc(all, func(a, b object) int {
		i, j := a.identity(), b.identity()
		return cmp.Or(cmp.Compare(i.kind, j.kind), cmp.Compare(i.table, j.table), cmp.Compare(i.key, j.key))
	})
	return all
}

func addressKey(a netip.Addr) uint32 {
	if a = a.Unmap(); !a.Is4() {
		return 0
	}
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func keyAddress(key uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], key)
	return netip.AddrFrom4(b)
}

// add appends an object to its list.
func (t *Tables) add(o object) {
	switch o.kind {
	case kindGroup:
		t.Groups = append(t.Groups, Group{ID: o.key, Members: o.members})
	case kindCluster:
		t.Clusters = append(t.Clusters, Cluster{ID: olaf.ClusterID(o.key), Group: o.a})
	case kindServer:
		t.Servers = append(t.Servers, keyAddress(o.key))
	case kindWorker:
		t.Workers = append(t.Workers, Worker{Address: keyAddress(o.key), Cluster: olaf.ClusterID(o.a),
			ID: olaf.WorkerID(o.b)})
	case kindEntry:
		t.Entries = append(t.Entries, Entry{*o.table, o.table.Fields(o.key), o.params})
	}
}
