package twin

import (
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TableLookup is the contents of the P4 tables, as VNP4-1 and VNP4-2 match them. It is read while a control plane writes,
// so it must be safe for that; an answer is kept until Version changes. One that is an aggregator.Admission has the tables of
// switch programs too.
type TableLookup interface {
	// Worker is the action set_worker of the source address, false where the table has no entry.
	Worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool)
	// Server says whether the address is a parameter server's.
	Server(addr netip.Addr) bool
	// Group is the workers to which the cluster's ACKs are multicast. The slice is only read, before the next call.
	Group(cluster olaf.ClusterID) (members []olaf.WorkerID, ok bool)
	// Version changes with every change of the contents. It is called for every frame.
	Version() uint64
}

// tables is VNP4-1's view: what the tables said about a flow is kept in the flow until the version moves.
type tables struct {
	lookup  TableLookup
	version uint64
	epoch   uint64 // counts the changes seen, from 1, so that a new flow's 0 is stale
}

func (v *tables) init(l TableLookup) {
	v.lookup, v.epoch = l, 1
	if l != nil {
		v.version = l.Version()
	}
}

// refresh looks whether the contents moved.
func (v *tables) refresh() (moved bool) {
	if v.lookup == nil {
		return false
	}
	now := v.lookup.Version()
	if now == v.version {
		return false
	}
	v.version = now
	v.epoch++
	return true
}

// route is where VNP4-1 sends the updates of a flow.
type route uint8

const (
	toBypass     route = iota // unknown source
	toQueue                   // set_worker
	beyondLimits              // set_worker with a cluster that this card was not built for
)

// flow is one sender: its entry in the generator's memory and what the tables say about it.
type flow struct {
	regmap.Flow
	epoch         uint64
	cluster       olaf.ClusterID
	worker        olaf.WorkerID
	route         route
	misidentified bool
	refused       bool // by the table of the program in front of the queue

	far   *flow   // what it is to the card at the other end of the cable; nil before its first frame there
	lanes []int32 // of a flow of another card: those of its frame that comes now; nil of one of this card's
}

// identify brings what the tables say about f up to date.
func (t *Twin) identify(f *flow) {
	f.epoch, f.route = t.tables.epoch, toBypass
	if t.tables.lookup == nil || !t.front.understands(f) {
		return
	}
	cluster, worker, ok := t.tables.lookup.Worker(netip.AddrFrom4(f.SourceIP))
	if !ok {
		return
	}
	if int(cluster) >= t.cfg.Clusters {
		f.route = beyondLimits
		return
	}
	f.route, f.cluster, f.worker = toQueue, cluster, worker
	f.misidentified = cluster != f.Cluster || worker != f.Worker
	f.refused = !t.admits(cluster, worker)
	t.counters.growTo(cluster)
}
