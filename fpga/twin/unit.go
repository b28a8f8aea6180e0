package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/aggregator"
)

// unit is the time that a program's hardware takes, in front of it: updates that have not been through wait here. Without
// Config.Unit it rests.
type unit struct {
	inlet   *aggregator.Inlet
	waiting []held // in order of due, from first on
	first   int
	next    int64 // device cycle of the next one, never when there is none
}

// held is one update on its way to the program.
type held struct {
	due    int64 // device cycle
	flow   *flow
	update olaf.Update
	lanes  []int32
}

// reset forgets what is inside.
func (u *unit) reset(c *Config) {
	*u = unit{waiting: u.waiting[:0], next: never}
	if c.Unit != nil {
		u.inlet = aggregator.NewInlet(*c.Unit)
	}
}

func (u *unit) empty() bool { return u.inside() == 0 }

// inside is how many updates wait. As they are in no class yet, they count as lost in front of the engine until they are through.
func (u *unit) inside() int { return len(u.waiting) - u.first }

// plan finds out when something is due.
func (u *unit) plan() {
	if u.empty() {
		u.waiting, u.first, u.next = u.waiting[:0], 0, never
		return
	}
	u.next = u.waiting[u.first].due
}

// hold lets the update at hand wait until the unit is through with it. One that finds no room is lost.
func (t *Twin) hold(f *flow, lanes []int32) fate {
	u := &t.unit
	at, ok := u.inlet.Pass(cycleTime(t.now), t.queue.arriving.Size())
	if !ok {
		t.counters.own.LostBeforeEngine++
		return gone
	}
	due := cycleBy(at)
	if len(u.waiting) == cap(u.waiting) && 2*u.first >= len(u.waiting) { // half of the room is of those that are through
		u.waiting, u.first = u.waiting[:copy(u.waiting, u.waiting[u.first:])], 0
	}
	u.waiting = append(u.waiting, held{due, f, t.queue.arriving, lanes})
	u.plan()
	return stored
}

// release brings the program what is due.
func (t *Twin) release() {
	h := t.unit.waiting[t.unit.first]
	t.unit.first++
	t.unit.plan()
	if !t.queue.enabled || t.queue.frozen || t.front.Aggregator == nil || !t.front.takes(h.flow) {
		t.counters.own.LostBeforeEngine++
		return
	}
	t.queue.arriving = h.update
	t.present(h.flow, h.lanes)
}

// discardHeld loses what waits.
func (t *Twin) discardHeld() {
	t.counters.own.LostBeforeEngine += uint64(t.unit.inside())
	t.unit.first = len(t.unit.waiting)
	t.unit.plan()
}
