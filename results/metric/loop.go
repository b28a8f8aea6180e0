package metric

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
)

// OfLoop declares the runs of hosts that wait for what the program of a switch sends back. program declares what the switch
// counts, the classes of its arrivals first, and endpoints what hosts count. Everything is a count, so that a kept run can be
// measured again: what is measured by the links and hosts of a run is counted in ps and in bits.
func OfLoop(system string, program *olaf.Ledger, classes int, endpoints *olaf.Ledger) *Declaration {
	arrivals := make([]string, classes)
	front := &olaf.Ledger{Counters: slices.Clone(program.Counters), Identities: slices.Clone(program.Identities)}
	for i := range front.Counters {
		c := &front.Counters[i]
		c.Register, c.Column, c.Sparse = fmt.Sprintf("aggregator.count_%d", i), "", true
		if i < classes {
			arrivals[i] = c.Name
		}
	}
	hosts := &olaf.Ledger{Counters: slices.Clone(endpoints.Counters), Identities: endpoints.Identities, Offered: []string{"packets_sent"}, Output: []string{"updates_applied"}}
	for i := range hosts.Counters {
		c := &hosts.Counters[i]
		c.Sparse = true
	}
	l := olaf.JoinLedgers(hosts, front, links)
	l.Identities = append(l.Identities, olaf.Identity{Left: []string{"frames_switched"}, Right: arrivals})
	d := &Declaration{System: system, Ledger: l, Metrics: slices.Clone(looped)}
	for i := range l.Counters {
		if c := &l.Counters[i]; !c.Aside {
			d.Metrics = append(d.Metrics, counted(c, false))
		}
	}
	return d
}

// links declares what is counted and measured of a loop beside its hosts and its switch.
var links = &olaf.Ledger{
	Counters: []olaf.Counter{
		{Name: "received", Title: "Rounds", Unit: "updates", Doc: "of the weights of a job, when the last of its workers had them; where workers do not wait for all and a server has the weights, when that had them"},
		{Name: "frames", Title: "Frames", Unit: "frames", Doc: "handed to links, in both directions"},
		{Name: "frames_arrived", Title: "Frames arrived", Unit: "frames", Aside: true, Doc: "at the switch, at workers and at servers"},
		{Name: "frames_lost", Title: "Frames lost", Unit: "frames", Sparse: true, Doc: "on links"},
		{Name: "frames_underway", Title: "Frames underway", Unit: "frames", Aside: true, Doc: "when the last host was done"},
		{Name: "frames_switched", Title: "Frames switched", Unit: "frames", Aside: true, Doc: "that reached the program: by the links, where the classes are the device's own registers"},
		{Name: "frames_marked", Title: "Frames marked", Unit: "frames", Sparse: true, Doc: "that met congestion"},
		{Name: "frames_served", Title: "Packets at servers", Unit: "packets", Sparse: true, Doc: "that reached servers: sums, and what the switch did not add"},
		{Name: "wire_bytes", Title: "Bytes", Unit: "B", Doc: "of frames handed to links, without what is beside a frame"},
		{Name: "vector_packets", Title: "Packets of vectors", Unit: "packets", Aside: true, Doc: "that the vectors of all rounds take, each once"},
		{Name: "slots_peak", Title: "Slots held, most", Unit: "slots", Doc: "at a time"},
		{Name: "slots_left", Title: "Slots left", Unit: "slots", Aside: true, Doc: "held when the last host was done"},
		{Name: "slots_built", Title: "Slots", Unit: "slots", Doc: "of the table"},
		{Name: "memory_bytes", Title: "Switch memory", Unit: "B", Doc: "of the table as built"},
		{Name: "held_slot_ns", Title: "Slots × time", Unit: "slot·ns", Aside: true, Doc: "slots that were held, over time"},
		{Name: "ceiling_bps", Title: "Goodput ceiling", Unit: "bit/s", Aside: true, Doc: "of values, where a worker's link carries nothing but full packets of them"},
		{Name: "goodput_bps", Title: "Goodput per worker", Unit: "bit/s", Aside: true, Doc: "of gradient values that came back as part of a sum, until a worker's last update; mean over workers"},
		{Name: "iteration_ps", Title: "Iteration", Unit: "ps", Aside: true, Doc: "from one update of a worker's weights to the next, mean over workers; 0 of a single update"},
		{Name: "aggregation_ps", Title: "Gradient aggregation", Unit: "ps", Aside: true, Doc: "from the last gradient of a round that is ready to the last worker that has the sum; mean over rounds"},
		{Name: "completion_ps", Title: "Completion of a job", Unit: "ps", Aside: true, Doc: "until its last worker was done, mean over jobs"},
		{Name: "stale_micro", Title: "Staleness", Unit: "updates/10⁶", Aside: true, Doc: "updates of the weights between reading them and applying the gradient, in millionths, mean over contributions"},
		{Name: "span_ps", Title: "Duration", Unit: "ps", Aside: true, Doc: "until the last host was done"},
	},
	Identities: []olaf.Identity{{Left: []string{"frames"}, Right: []string{"frames_arrived", "frames_lost", "frames_underway"}}},
}

// looped are the metrics of loops that are no plain counts, in the order of documents. A new one is a row here.
var looped = slices.Concat([]*Metric{
	{Name: "iteration_ns", Title: "Iteration", Unit: "ns", Column: "ITERATION", Why: because("needs two updates"),
		Doc: "from one update of a worker's weights to the next, mean over workers", Of: picoseconds("iteration_ps")},
	{Name: "aggregation_ns", Title: "Gradient aggregation", Unit: "ns", Why: because("no worker waited for the sum of all, or no round came to its end"),
		Doc: "from the last gradient of a round that is ready to the last worker that has the sum, mean over rounds", Of: picoseconds("aggregation_ps")},
	{Name: "completion_ns", Title: "Completion of a job", Unit: "ns", Why: because("no job came to its end"),
		Doc: "until its last worker was done, mean over jobs", Of: picoseconds("completion_ps")},
	{Name: "goodput_gbps", Title: "Goodput per worker", Unit: "Gbit/s", Column: "GBIT/S", Why: because("no update was done"),
		Doc: "gradient values that came back as part of a sum, until a worker's last update; mean over workers",
		Of:  func(m *Measured) Float { return Float(m.Counts.Of("goodput_bps")) / 1e9 }},
	{Name: "ceiling_gbps", Title: "Goodput ceiling", Unit: "Gbit/s", Column: "CEILING", Why: because("no link"),
		Doc: "the same where a worker's link carries nothing but full packets of values",
		Of:  func(m *Measured) Float { return Float(m.Counts.Of("ceiling_bps")) / 1e9 }},
	{Name: "staleness_updates", Title: "Staleness", Unit: "updates", Why: because("no update was done"),
		Doc: "updates of the weights between reading them and applying the gradient, mean over contributions; 0 where all wait for the sum of all", Of: staleness},
	{Name: "slots_held", Title: "Slots held", Unit: "slots", Column: "SLOTS HELD", Why: noSlots, Zeroed: true,
		Doc: "held_slot_ns / duration; missing of a switch without a table", Of: slotsHeld},
	{Name: "held_bytes", Title: "Memory held", Unit: "B", Column: "HELD, B", Why: noSlots,
		Doc: "slots held × what a slot takes", Of: func(m *Measured) Float { return slotsHeld(m) * share(m, "memory_bytes", "slots_built", 1) }},
	{Name: "collided_pct", Title: "Collided", Unit: "%", Column: "COLLIDED %", Why: because("slots are not shared"),
		Doc: "packets that found their aggregator taken and went to the server as they are, of the packets of all vectors",
		Of: func(m *Measured) Float {
			if m.Counts.Index("collided") < 0 {
				return Missing()
			}
			return 100 * share(m, "collided", "vector_packets", 1)
		}},
	{Name: "resent_pct", Title: "Sent again", Unit: "%", Column: "RESENT %", Why: because("nothing was sent"),
		Doc: "packets sent again, of the packets of all vectors", Of: func(m *Measured) Float { return 100 * share(m, "packets_resent", "vector_packets", 1) }},
}, Named("aom_cluster_ns", "aom_worker_ns", "peak_aom_ns", "jain", "duration_ns"))

// staleness is that of the contributions that were applied.
func staleness(m *Measured) Float {
	if m.Counts.Of("updates_applied") == 0 {
		return Missing()
	}
	return Float(m.Counts.Of("stale_micro")) / 1e6
}

// slotsHeld is the mean over time; missing where there are none to hold.
func slotsHeld(m *Measured) Float {
	if m.Counts.Of("slots_built") == 0 {
		return Missing()
	}
	return share(m, "held_slot_ns", "span_ps", 1000)
}

// noSlots says why no slots were held.
func noSlots(m *Measured) string {
	if m.Counts.Of("slots_built") == 0 {
		return "the switch has no table"
	}
	return "no time passed"
}

// picoseconds is a time that is counted, where there is one.
func picoseconds(counter string) func(*Measured) Float {
	return func(m *Measured) Float {
		if n := m.Counts.Of(counter); n > 0 {
			return Float(n) / 1000
		}
		return Missing()
	}
}

// share is by times one counter over another.
func share(m *Measured, counter, of string, by Float) Float {
	if n := m.Counts.Of(of); n > 0 {
		return by * Float(m.Counts.Of(counter)) / Float(n)
	}
	return Missing()
}
