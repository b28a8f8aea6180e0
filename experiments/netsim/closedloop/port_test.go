package closedloop

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// leaving contains the departure times of frames, by number.
type leaving map[uint32]olaf.Time

func (l leaving) Deliver(d *engine.Departure) { l[d.Frame.Update.Seq] = d.At }

// TestWireEqualsPort checks that a wire computes at once what a port with a queue finds out over time: which frames
// find no room, and when the others leave. The port has the slots of the wire's line and one for the frame being sent.
// At the chosen rates every byte takes whole ticks, because a port carries fractions over and a wire, whose frames may
// be far apart, does not.
func TestWireEqualsPort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 4).Draw(t, "slots")
		overhead := rapid.SampledFrom([]olaf.Size{0, 24}).Draw(t, "overhead")
		rate := rapid.SampledFrom([]olaf.Rate{olaf.Gbps, 10 * olaf.Gbps, 40 * olaf.Gbps}).Draw(t, "rate")
		clock := engine.PicosecondClock(rate, overhead)
		left := leaving{}
		port, err := engine.NewPort("fifo", engine.Config{Slots: slots + 1, Clusters: 1}, engine.Output{}, left)
		if err != nil {
			t.Fatal(err)
		}
		port.SetClock(clock)
		w := NewWire(clock, 0)
		w.Line = NewLine(slots)

		said := leaving{}
		at, dropped := int64(0), uint64(0)
		for n := range uint32(rapid.IntRange(1, 60).Draw(t, "frames")) {
			u := olaf.Update{Seq: n, Count: 1, Lanes: rapid.SampledFrom([]uint16{0, 1, 48}).Draw(t, "lanes")}
			on := clock.Ticks(u.Size())
			at += rapid.SampledFrom([]int64{0, 0, 1, on / 2, on, on + 1, 10 * on}).Draw(t, "gap")
			arrives, _, fate := w.Pass(at, 0, u.Size())
			o := port.Offer(olaf.Time(at), &u, nil)
			if full := o.Slot == engine.NoSlot; full != (fate == Full) {
				t.Fatalf("frame %d at %d: the port has no room is %v, the wire's is %v", n, at, full, fate == Full)
			}
			if fate == Full {
				dropped++
				continue
			}
			said[n] = olaf.Time(arrives)
		}
		port.Drain()
		for n, want := range said {
			if got := left[n]; got != want {
				t.Fatalf("frame %d left the port at %v, the wire at %v", n, got, want)
			}
		}
		if len(left) != len(said) || port.Discipline().Stats().Class[engine.DroppedFull] != dropped || w.Line.Dropped != dropped {
			t.Fatalf("%d frames left the port, %d the wire; %d were dropped", len(left), len(said), dropped)
		}
	})
}
