package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/aggregator"
)

// unit models the processing time of a program's hardware. Updates wait here before they are passed to the program. It
// is not used if Config.Unit is nil.
type unit struct {
	inlet   *aggregator.Inlet
	waiting []waitingUpdate // ordered by due; the first entry is at index first
	first   int
	next    int64 // device cycle of the next update, never if there is none
}

// waitingUpdate is an update that waits for the program's hardware.
type waitingUpdate struct {
	due    int64 // device cycle
	flow   *flow
	update olaf.Update
	lanes  []int32
}

// reset removes all waiting updates.
func (u *unit) reset(c *Config) {
	*u = unit{waiting: u.waiting[:0], next: never}
	if c.Unit != nil {
		u.inlet = aggregator.NewInlet(*c.Unit)
	}
}

func (u *unit) empty() bool { return u.countWaiting() == 0 }

// countWaiting returns the number of waiting updates. Because they have no class yet, they count as lost before the
// engine until they are passed on.
func (u *unit) countWaiting() int { return len(u.waiting) - u.first }

// planNext computes the cycle in which the next update is due.
func (u *unit) planNext() {
	if u.empty() {
		u.waiting, u.first, u.next = u.waiting[:0], 0, never
		return
	}
	u.next = u.waiting[u.first].due
}

// holdUpdate queues the arriving update until the unit has processed it. If there is no room, the update is lost.
func (t *Twin) holdUpdate(f *flow, lanes []int32) fate {
	u := &t.unit
	at, ok := u.inlet.Pass(cycleTime(t.now), t.queue.arriving.Size())
	if !ok {
		t.counters.own.LostBeforeEngine++
		return gone
	}
	due := cycleBy(at)
	if len(u.waiting) == cap(u.waiting) && 2*u.first >= len(u.waiting) { // updates that have passed occupy half of the room
		u.waiting, u.first = u.waiting[:copy(u.waiting, u.waiting[u.first:])], 0
	}
	u.waiting = append(u.waiting, waitingUpdate{due, f, t.queue.arriving, lanes})
	u.planNext()
	return stored
}

// releaseHeld passes the update that is due to the program.
func (t *Twin) releaseHeld() {
	h := t.unit.waiting[t.unit.first]
	t.unit.first++
	t.unit.planNext()
	if !t.queue.enabled || t.queue.frozen || t.front.Aggregator == nil || !t.front.hasSegment(h.flow) {
		t.counters.own.LostBeforeEngine++
		return
	}
	t.queue.arriving = h.update
	t.presentUpdate(h.flow, h.lanes)
}

// discardHeld discards all waiting updates and counts them as lost.
func (t *Twin) discardHeld() {
	t.counters.own.LostBeforeEngine += uint64(t.unit.countWaiting())
	t.unit.first = len(t.unit.waiting)
	t.unit.planNext()
}
