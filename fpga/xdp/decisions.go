package xdp

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// DecisionKind is what the queue decided about.
type DecisionKind uint8

// Kinds of decisions, in the order of bpf/queue.h.
const (
	Arrival DecisionKind = iota
	Start                // a frame is locked and begins to leave
	Release              // its last bit has left
	Flush
)

// Decision is one entry of the decision log. Numbers are taken under the queue's lock, from 0 and without gaps, so that they are
// the order in which the queue decided; entries may be written in another one.
type Decision struct {
	Number    uint64
	AtNS      uint64 // on the kernel's monotonic clock, read before the lock was taken
	Kind      DecisionKind
	Class     engine.Class // of an arrival
	Slot      engine.Slot  // NoSlot for an arrival that was dropped
	Saturated uint32       // lanes
	// Update is the one that arrived, with the identity that the tables gave it; of the other kinds only cluster, count and lanes.
	Update olaf.Update
}
