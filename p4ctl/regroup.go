package p4ctl

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/olafctl/olaf"
)

// Add puts workers into the tables and into the multicast groups of their clusters, behind a port. A cluster without a
// group gets one. Like Move and Remove it leaves t as it is; errors match ErrTables.
func (t Tables) Add(port uint32, workers ...Worker) (Tables, error) {
	t = t.Canonical()
	for _, w := range workers {
		t.Workers = append(t.Workers, w)
		t.joinGroup(w.Cluster, Member{Port: port, Instance: uint16(w.ID)})
	}
	return t, t.Validate()
}

// Move gives workers, named by address, another cluster, and moves them between the multicast groups of both. A worker
// keeps its id and its port.
func (t Tables) Move(to olaf.ClusterID, addresses ...netip.Addr) (Tables, error) {
	t = t.Canonical()
	for _, a := range addresses {
		at, err := t.find(a)
		if err != nil {
			return Tables{}, err
		}
		w := &t.Workers[at]
		if w.Cluster == to {
			continue
		}
		member, found := t.leaveGroup(w.Cluster, uint16(w.ID))
		w.Cluster = to
		if found {
			t.joinGroup(to, member)
		}
	}
	return t, t.Validate()
}

// Remove takes workers, named by address, out of the tables and groups. Their clusters stay.
func (t Tables) Remove(addresses ...netip.Addr) (Tables, error) {
	t = t.Canonical()
	for _, a := range addresses {
		at, err := t.find(a)
		if err != nil {
			return Tables{}, err
		}
		t.leaveGroup(t.Workers[at].Cluster, uint16(t.Workers[at].ID))
		t.Workers = slices.Delete(t.Workers, at, at+1)
	}
	return t, t.Validate()
}

// RemoveCluster takes a cluster with all its workers out, and its group unless another cluster uses it too.
func (t Tables) RemoveCluster(c olaf.ClusterID) (Tables, error) {
	t = t.Canonical()
	workers, clusters := len(t.Workers), len(t.Clusters)
	t.Workers = slices.DeleteFunc(t.Workers, func(w Worker) bool { return w.Cluster == c })
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

func (t *Tables) find(a netip.Addr) (int, error) {
	at := slices.IndexFunc(t.Workers, func(w Worker) bool { return w.Address == a.Unmap() })
	if at < 0 {
		return 0, fmt.Errorf("%w: no worker has address %s", ErrTables, a)
	}
	return at, nil
}

// groupOf finds the multicast group of a cluster; nil without one.
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
	g.Members = sortedMembers(append(g.Members, m))
}
