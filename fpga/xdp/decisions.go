package xdp

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// DecisionKind is the kind of event that the queue decided on.
type DecisionKind uint8

// Kinds of decisions, in the order of bpf/queue.h.
const (
	Arrival DecisionKind = iota
	Start                // a frame is locked and starts to leave
	Release              // its last bit has left
	Flush
)

// Decision is one entry of the decision log. Numbers are assigned under the queue's lock, from 0 and without gaps,
// and give the order of decisions. Entries may be logged out of order.
type Decision struct {
	Number    uint64
	AtNS      uint64 // on the kernel's monotonic clock, read before locking
	Kind      DecisionKind
	Class     engine.Class // of an arrival
	Slot      engine.Slot  // NoSlot for an arrival that was dropped
	Saturated uint32       // number of lanes
	// Update is the arriving update with the identity from the tables. For other kinds only cluster, count and
	// lanes are set.
	Update olaf.Update
}
