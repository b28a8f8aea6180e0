package xdp

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// DecisionKind is the kind of event that is recorded in the decision log.
type DecisionKind uint8

// Kinds of decisions, in the order of bpf/queue.h.
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
