package twin

import (
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TableLookup looks up senders and groups in the P4 tables of VNP4-1 and VNP4-2. It must be safe for use while a
// control plane writes the tables. Answers are cached until Version changes. An implementation of aggregator.Admission
// in addition provides the tables of switch programs.
type TableLookup interface {
	// Worker returns the parameters of the action set_worker for the source address. ok is false if the table has no
	// entry.
	Worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool)
	// Server reports whether the address belongs to a parameter server.
	Server(addr netip.Addr) bool
	// Group returns the workers to which the cluster's ACKs are multicast. The caller must not change the slice, which
	// is valid until the next call.
	Group(cluster olaf.ClusterID) (members []olaf.WorkerID, ok bool)
	// Version changes with every change of the contents. It is called for every frame.
	Version() uint64
}

// tables caches lookups in the tables of VNP4-1. The result for each flow is stored in the flow until the tables'
// version changes.
type tables struct {
	lookup  TableLookup
	version uint64
	epoch   uint64 // number of changes seen, starting at 1, so that the 0 of a new flow is out of date
}

func (v *tables) init(l TableLookup) {
	v.lookup, v.epoch = l, 1
	if l != nil {
		v.version = l.Version()
	}
}

// refresh reports whether the tables have changed since the previous call.
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

// route is the path of a flow's updates after VNP4-1.
type route uint8

const (
	toBypass     route = iota // the source is unknown
	toQueue                   // the entry's action is set_worker
	beyondLimits              // the action is set_worker, but the cluster is beyond the build's limit
)

// flow is a sender, with its entry in the generator's memory and the result of its table lookup.
type flow struct {
	regmap.Flow
	epoch         uint64
	cluster       olaf.ClusterID
	worker        olaf.WorkerID
	route         route
	misidentified bool
	refused       bool // by the table of the program in front of the queue

	far   *flow   // the worker's flow at the card at the other end of the cable; nil before its first frame arrives there
	lanes []int32 // for a flow of another card: lanes of its arriving frame; nil for this card's flows
}

// identifyFlow updates the cached table lookup of f if the tables have changed.
func (t *Twin) identifyFlow(f *flow) {
	f.epoch, f.route = t.tables.epoch, toBypass
	if t.tables.lookup == nil || !t.front.knowsFormat(f) {
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
	f.refused = !t.admitsWorker(cluster, worker)
	t.counters.growTo(cluster)
}
