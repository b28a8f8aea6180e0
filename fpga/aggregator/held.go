package aggregator

import "github.com/olafctl/olaf/fpga/regmap"

// Held counts what a program holds over time, for registers occupancy_integral and occupancy_cycles, on the clock of a device in cycles.
type Held struct {
	until uint64 // what is counted
	begun bool   // since the last clear, so that time counts
}

// Clear begins anew at a cycle, with so many slots that are held.
func (h *Held) Clear(now uint64, slots int) { *h = Held{now, slots > 0} }

// Update counts up to a cycle before an update is presented; so many slots were held until then.
func (h *Held) Update(own *regmap.AggregatorCounters, now uint64, slots int) {
	if h.begun {
		own.OccupancyCycles += now - h.until
		own.OccupancyIntegral += uint64(slots) * (now - h.until)
	}
	*h = Held{now, true}
}

// Discard is Update before sums are thrown away. Where there are none, what was counted ends with the latest update.
func (h *Held) Discard(own *regmap.AggregatorCounters, now uint64, slots int) {
	if slots > 0 {
		h.Update(own, now, slots)
	}
}
