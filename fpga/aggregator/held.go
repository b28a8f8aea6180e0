package aggregator

import "github.com/olafctl/olaf/fpga/regmap"

// Held integrates a program's occupied slots over time, in cycles of the device, for registers occupancy_integral
// and occupancy_cycles.
type Held struct {
	until uint64 // end of the integral
	begun bool   // an update came since the last clear, so time counts
}

// Clear restarts the integral at a cycle with the given number of occupied slots.
func (h *Held) Clear(now uint64, slots int) { *h = Held{now, slots > 0} }

// Update extends the integral to a cycle, before an update is presented; slots is the number occupied until then.
func (h *Held) Update(own *regmap.AggregatorCounters, now uint64, slots int) {
	if h.begun {
		own.OccupancyCycles += now - h.until
		own.OccupancyIntegral += uint64(slots) * (now - h.until)
	}
	*h = Held{now, true}
}

// Discard is Update before sums are discarded. Without sums the integral ends at the last update.
func (h *Held) Discard(own *regmap.AggregatorCounters, now uint64, slots int) {
	if slots > 0 {
		h.Update(own, now, slots)
	}
}
