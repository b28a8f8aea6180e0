package dataplane

import (
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// Mode selects the kernel hook to which XDP programs are attached.
type Mode string

// Native is the hook in the driver. Generic is a later hook that every interface has.
const (
	Native  Mode = "native"
	Generic Mode = "generic"
)

// Sender is an entry in the table that identifies workers. It maps a source address to a cluster and a worker id, like
// the action set_worker.
type Sender struct {
	Address netip.Addr // IPv4
	Cluster olaf.ClusterID
	Worker  olaf.WorkerID
}

// Build contains the parameters of a queue that are fixed when it is loaded.
type Build struct {
	Slots      int // capacity in frames, including the frame on the wire
	Clusters   int // cluster ids run from 0 to Clusters-1
	Lanes      int // gradient lanes stored per slot
	FrameLanes int // maximum number per frame; longer frames are malformed
	Senders    int // capacity of the senders' table
	// LogBytes is the size of the decision log, a power of two and a multiple of the page size; 0 disables it.
	LogBytes int
}

// Settings contains the parameters of a queue that may be changed between runs, while the queue is empty and stopped.
type Settings struct {
	Depth           int // number of slots in use
	FreeSlotOnStart bool
	RewardFilter    bool
	RewardThreshold int32 // Q24.8
}

// Exchange is the answer of the queue's programs to the output. It reports what was done, the frame concerned, and the
// state of the queue at that instant.
type Exchange struct {
	Released bool
	Started  bool // Slot, Update and AppendedNS describe the frame that starts
	Slot     int  // -1 if there is none
	Update   olaf.Update
	// AppendedNS is the time at which the slot was filled, AtNS the time of the exchange. Both are on the kernel's
	// monotonic clock.
	AppendedNS, AtNS uint64
	Waiting          int
	Leaving          int // slot of the frame on the wire; -1 if there is none
	Active           int // clusters with an update in the queue
	Peak             int // peak number of slots in use since the last clear
	Bank             uint32
	Updates          uint64 // sum of the counts of the queued frames
	OccupancyNS      uint64 // time integral of the number of queued frames
	Number           uint64 // number of the next decision
}

// ClusterCounts contains the counts of one cluster since the last clear or reset.
type ClusterCounts struct {
	Class            [engine.Classes]uint64
	DeliveredFrames  uint64
	DeliveredUpdates uint64
	LastDepartureNS  uint64 // on the kernel's monotonic clock; 0 if there was none
}

// DecisionKind is the kind of event that is recorded in the decision log.
type DecisionKind uint8

// Kinds of decisions, in the order of fpga/xdp/bpf/queue.h.
const (
	Arrival DecisionKind = iota
	Start                // a frame was locked and starts to leave
	Release              // the frame's last bit has left
	Flush
)

// Decision is an entry in the decision log. Its number is assigned under the queue's lock. Numbers start at 0, have no
// gaps, and define the order of the decisions. Entries may be logged out of order.
type Decision struct {
	Number    uint64
	AtNS      uint64 // on the kernel's monotonic clock, read before taking the lock
	Kind      DecisionKind
	Class     engine.Class // class of an arrival
	Slot      engine.Slot  // NoSlot for a dropped arrival
	Saturated uint32       // number of saturated lanes
	// Update is the arriving update, with the identity from the tables. For other kinds of decisions, only cluster,
	// count and lanes are set.
	Update olaf.Update
}
