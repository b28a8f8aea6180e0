package agent

import (
	"encoding/binary"
	"net/netip"
	"slices"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// Entry is a table entry in the agent's own form. It contains the exact key, in which several fields are packed as in
// p4.Table.Number, and the parameters of the action in the order of their IDs. An Entry is immutable.
type Entry struct {
	Table  uint32
	Key    uint32
	Action uint32
	Params [program.MaxParams]uint32
	// Metadata is opaque to the agent and is read back unchanged.
	Metadata           []byte
	ControllerMetadata uint64
}

// Member is a replica in a multicast group.
type Member struct {
	Port     uint32 // port of the switch shell
	Instance uint32 // the worker's id
}

// Group is a multicast group. It is immutable.
type Group struct {
	ID       uint32
	Members  []Member // members in the controller's order
	Metadata []byte
	// legacy marks members that were written with the deprecated egress_port field, so that they are read back as
	// written.
	legacy []bool
}

// Op is the kind of a change.
type Op = v1.Update_Type

// Change is an accepted update of an entry or a group. For a DELETE, it contains the removed object.
type Change struct {
	Op    Op
	Entry *Entry
	Group *Group
}

// State contains everything that controllers have written for one pipeline at one point in time. It is immutable: a
// data path reads it without a lock while batches are applied, and it shows each batch either completely or not at all.
// The zero State and nil are empty.
type State struct {
	version  uint64
	workers  trie[*Entry]
	servers  trie[*Entry]
	clusters trie[*Entry]
	groups   trie[*Group]
	users    trie[int] // group id → number of cluster entries that point to it
	replicas int       // number of replicas in all groups together
	added    []added   // entries in tables of switch programs
}

// added contains the entries in a table of a switch program.
type added struct {
	p4.Table
	entries trie[*Entry]
}

// empty returns the initial state of a pipeline with this schema.
func (s *schema) empty() *State { return new(State).under(s) }

// under returns a copy of the state with the program tables of another schema. Tables that exist in both keep their
// entries.
func (s *State) under(of *schema) *State {
	next := *s
	next.added = make([]added, len(of.added))
	for i, t := range of.added {
		next.added[i].Table = t
		if has := s.table(t.ID); has != nil {
			next.added[i].entries = *has
		}
	}
	return &next
}

// next returns a copy of the state that a batch can change.
func (s *State) next() *State {
	next := *s
	next.added = slices.Clone(s.added)
	return &next
}

// Version returns the number of batches that changed the device's tables. For one agent, equal versions mean equal
// tables.
func (s *State) Version() uint64 {
	if s == nil {
		return 0
	}
	return s.version
}

// Worker returns the cluster and the worker that vnp4_1.workers assigns to an address, and false if there is no entry.
// Packets without an entry bypass the engine.
func (s *State) Worker(src netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool) {
	if s == nil || !src.Unmap().Is4() {
		return 0, 0, false
	}
	e, ok := s.workers.get(addressKey(src))
	if !ok {
		return 0, 0, false
	}
	return olaf.ClusterID(e.Params[0]), olaf.WorkerID(e.Params[1]), true
}

// Server reports whether the table vnp4_1.servers contains the address.
func (s *State) Server(addr netip.Addr) bool {
	if s == nil || !addr.Unmap().Is4() {
		return false
	}
	_, ok := s.servers.get(addressKey(addr))
	return ok
}

// Group returns the members of the multicast group for a cluster's ACKs, according to vnp4_2.cluster_groups. Callers
// must not change them. It returns false if there is no entry, in which case ACKs are unicast.
func (s *State) Group(c olaf.ClusterID) ([]Member, bool) {
	if s == nil {
		return nil, false
	}
	e, ok := s.clusters.get(uint32(c))
	if !ok {
		return nil, false
	}
	g, ok := s.groups.get(e.Params[0])
	if !ok {
		return nil, false
	}
	return g.Members, true
}

// Count returns the number of workers, servers, cluster entries and multicast groups.
func (s *State) Count() (workers, servers, clusters, groups int) {
	if s == nil {
		return 0, 0, 0, 0
	}
	return s.workers.size, s.servers.size, s.clusters.size, s.groups.size
}

// Changes calls visit with an insertion for each object until visit returns false. The insertions can be applied in
// this order to build the same state.
func (s *State) Changes(visit func(Change) bool) {
	if s == nil {
		return
	}
	entry := func(_ uint32, e *Entry) bool { return visit(Change{Op: v1.Update_INSERT, Entry: e}) }
	goOn := true
	s.groups.all(func(_ uint32, g *Group) bool {
		goOn = visit(Change{Op: v1.Update_INSERT, Group: g})
		return goOn
	})
	tables := []trie[*Entry]{s.clusters, s.servers, s.workers}
	for i := range s.added {
		tables = append(tables, s.added[i].entries)
	}
	for _, t := range tables {
		if !goOn {
			return
		}
		t.all(func(key uint32, e *Entry) bool {
			goOn = entry(key, e)
			return goOn
		})
	}
}

// table returns the trie for a table ID, or nil if there is none.
func (s *State) table(id uint32) *trie[*Entry] {
	switch id {
	case p4.TableWorkers:
		return &s.workers
	case p4.TableServers:
		return &s.servers
	case p4.TableClusterGroups:
		return &s.clusters
	}
	for i := range s.added {
		if s.added[i].ID == id {
			return &s.added[i].entries
		}
	}
	return nil
}

// apply applies a checked change.
func (s *State) apply(e *edit, c Change) {
	if c.Group != nil {
		s.applyGroup(e, c)
		return
	}
	t := s.table(c.Entry.Table)
	if c.Entry.Table == p4.TableClusterGroups {
		if old, ok := t.get(c.Entry.Key); ok {
			s.addUsers(e, old.Params[0], -1)
		}
		if c.Op != v1.Update_DELETE {
			s.addUsers(e, c.Entry.Params[0], 1)
		}
	}
	if c.Op == v1.Update_DELETE {
		t.remove(e, c.Entry.Key)
		return
	}
	t.put(e, c.Entry.Key, c.Entry)
}

func (s *State) applyGroup(e *edit, c Change) {
	if old, ok := s.groups.get(c.Group.ID); ok {
		s.replicas -= len(old.Members)
	}
	if c.Op == v1.Update_DELETE {
		s.groups.remove(e, c.Group.ID)
		return
	}
	s.replicas += len(c.Group.Members)
	s.groups.put(e, c.Group.ID, c.Group)
}

func (s *State) addUsers(e *edit, group uint32, by int) {
	n, _ := s.users.get(group)
	if n += by; n > 0 {
		s.users.put(e, group, n)
	} else {
		s.users.remove(e, group)
	}
}

// addressKey returns an IPv4 address as the number that tables use as their key.
func addressKey(a netip.Addr) uint32 {
	b := a.Unmap().As4()
	return binary.BigEndian.Uint32(b[:])
}
