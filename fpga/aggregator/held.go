package aggregator

import "github.com/olafctl/olaf/fpga/regmap"

// SlotIntegral integrates the number of occupied slots over time, in cycles of the device. The results are read from
// the registers occupancy_integral and occupancy_cycles.
type SlotIntegral struct {
	end   uint64 // end of the integral
	begun bool   // an update came since the last clear, so time is counted
}

// Clear restarts the integral at cycle now, with the given number of occupied slots.
func (h *SlotIntegral) Clear(now uint64, slots int) { *h = SlotIntegral{now, slots > 0} }

// Update extends the integral to cycle now and adds the result to own. It must be called before an update is passed to
// the program; slots is the number of slots occupied until then.
func (h *SlotIntegral) Update(own *regmap.AggregatorCounters, now uint64, slots int) {
	if h.begun {
		own.OccupancyCycles += now - h.end
		own.OccupancyIntegral += uint64(slots) * (now - h.end)
	}
	*h = SlotIntegral{now, true}
}

// Discard extends the integral to cycle now, as Update does, before partial sums are discarded. If there are none, it
// does nothing, so that the integral ends at the last update.
func (h *SlotIntegral) Discard(own *regmap.AggregatorCounters, now uint64, slots int) {
	if slots > 0 {
		h.Update(own, now, slots)
	}
}
