package p4ctl

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Add returns the tables with additional workers. It adds the workers to the multicast groups of their clusters behind
// port. A cluster without a group gets one. Like Move and Remove, Add does not change t, and its errors match
// ErrTables.
func (t Tables) Add(port uint32, workers ...Worker) (Tables, error) {
	t = t.Canonical()
	for _, w := range workers {
		t.Workers = append(t.Workers, w)
		t.joinGroup(w.Cluster, Member{Port: port, Instance: uint16(w.ID)})
		t.admit(program.Job{ID: w.Cluster, Members: []program.Member{{Worker: w.ID, Port: program.Port(port)}}})
	}
	return t, t.Validate()
}

// admit adds a new worker to the membership tables of all switch programs.
func (t *Tables) admit(j program.Job) {
	known := map[uint32]bool{}
	for _, e := range t.Entries {
		if of := &e.Table; of.ByMember() && !known[of.ID] {
			known[of.ID] = true
			if added, err := of.Program.Entries(j); err == nil { // a port that does not fit the field cannot be a member
				for _, a := range added {
					if a.Table == of.Place {
						t.Entries = append(t.Entries, Entry{e.Table, a.Key, a.Params})
					}
				}
			}
		}
	}
}

// Move returns tables in which the workers at addresses belong to the cluster to. It moves the workers from their old
// multicast groups to the new one. A worker keeps its ID and port, and its entries in switch programs are changed
// accordingly.
func (t Tables) Move(to olaf.ClusterID, addresses ...netip.Addr) (Tables, error) {
	t = t.Canonical()
	for _, a := range addresses {
		at, err := t.findWorker(a)
		if err != nil {
			return Tables{}, err
		}
		w := &t.Workers[at]
		member, found := t.leaveGroup(w.Cluster, uint16(w.ID))
		for i := range t.Entries {
			if e := &t.Entries[i]; e.belongsTo(w) {
				e.Key = e.Table.KeyOf(to, w.ID)
			}
		}
		w.Cluster = to
		if found {
			t.joinGroup(to, member)
		}
	}
	return t, t.Validate()
}

// Remove returns the tables without the workers at addresses. It does not remove their clusters.
func (t Tables) Remove(addresses ...netip.Addr) (Tables, error) {
	t = t.Canonical()
	for _, a := range addresses {
		at, err := t.findWorker(a)
		if err != nil {
			return Tables{}, err
		}
		w := t.Workers[at]
		t.leaveGroup(w.Cluster, uint16(w.ID))
		t.Entries = slices.DeleteFunc(t.Entries, func(e Entry) bool { return e.belongsTo(&w) })
		t.Workers = slices.Delete(t.Workers, at, at+1)
	}
	return t, t.Validate()
}

// RemoveCluster returns the tables without a cluster and its workers. It also removes the cluster's group, unless
// another cluster uses the group.
func (t Tables) RemoveCluster(c olaf.ClusterID) (Tables, error) {
	t = t.Canonical()
	workers, clusters := len(t.Workers), len(t.Clusters)
	t.Workers = slices.DeleteFunc(t.Workers, func(w Worker) bool { return w.Cluster == c })
	t.Entries = slices.DeleteFunc(t.Entries, func(e Entry) bool { return e.jobID() == c })
	group := t.groupOf(c)
	t.Clusters = slices.DeleteFunc(t.Clusters, func(e Cluster) bool { return e.ID == c })
	if len(t.Workers) == workers && len(t.Clusters) == clusters {
		return Tables{}, fmt.Errorf("%w: cluster %d has neither workers nor a group", ErrTables, c)
	}
	if group != nil && !slices.ContainsFunc(t.Clusters, func(e Cluster) bool { return e.Group == group.ID }) {
		id := group.ID
		t.Groups = slices.DeleteFunc(t.Groups, func(g Group) bool { return g.ID == id })
	}
	return t, t.Validate()
}

// belongsTo reports whether the entry is about worker w in the worker's cluster.
func (e *Entry) belongsTo(w *Worker) bool {
	return e.Table.ByMember() && slices.Equal(e.Key, e.Table.KeyOf(w.Cluster, w.ID))
}

// jobID returns the job that the entry is about.
func (e *Entry) jobID() olaf.ClusterID {
	j, _ := e.Table.ReadEntry(e.Key, e.Params)
	return j.ID
}

func (t *Tables) findWorker(a netip.Addr) (int, error) {
	at := slices.IndexFunc(t.Workers, func(w Worker) bool { return w.Address == a.Unmap() })
	if at < 0 {
		return 0, fmt.Errorf("%w: no worker has address %s", ErrTables, a)
	}
	return at, nil
}

// groupOf returns the multicast group of a cluster, or nil if there is none.
func (t *Tables) groupOf(c olaf.ClusterID) *Group {
	at := slices.IndexFunc(t.Clusters, func(e Cluster) bool { return e.ID == c })
	if at < 0 {
		return nil
	}
	return t.groupByID(t.Clusters[at].Group)
}

func (t *Tables) groupByID(id uint32) *Group {
	at := slices.IndexFunc(t.Groups, func(g Group) bool { return g.ID == id })
	if at < 0 {
		return nil
	}
	return &t.Groups[at]
}

func (t *Tables) leaveGroup(c olaf.ClusterID, instance uint16) (m Member, found bool) {
	g := t.groupOf(c)
	if g == nil {
		return m, false
	}
	at := slices.IndexFunc(g.Members, func(m Member) bool { return m.Instance == instance })
	if at < 0 {
		return m, false
	}
	m = g.Members[at]
	g.Members = slices.Delete(g.Members, at, at+1)
	return m, true
}

func (t *Tables) joinGroup(c olaf.ClusterID, m Member) {
	g := t.groupOf(c)
	if g == nil {
		id := uint32(c) + 1
		for t.groupByID(id) != nil {
			id++
		}
		t.Clusters = append(t.Clusters, Cluster{ID: c, Group: id})
		t.Groups = append(t.Groups, Group{ID: id})
		g = &t.Groups[len(t.Groups)-1]
	}
	g.Members = sortMembers(append(g.Members, m))
}
