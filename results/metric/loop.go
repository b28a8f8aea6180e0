package metric

import (
	"slices"

	"github.com/olafctl/olaf"
)

// OfLoop returns the declaration of the counters and metrics of runs in which hosts wait for answers from a switch
// program. program declares the switch's counters, with the classes of its arrivals first. endpoints declares the
// hosts' counters. Times in picoseconds and traffic in bits are counters as well, so that all metrics of a stored run
// can be computed again.
func OfLoop(system string, program *olaf.Ledger, classes int, endpoints *olaf.Ledger) *Declaration {
	front, arrivals := frontOf(program, classes)
	for i := range front.Counters {
		front.Counters[i].Column = ""
	}
	hosts := &olaf.Ledger{Counters: slices.Clone(endpoints.Counters), Identities: endpoints.Identities,
		Offered: []string{"packets_sent"}, Output: []string{"updates_applied"}}
	for i := range hosts.Counters {
		c := &hosts.Counters[i]
		c.Sparse = true
	}
	l := olaf.JoinLedgers(hosts, front, links)
	l.Identities = append(l.Identities, olaf.Identity{Left: []string{"frames_switched"}, Right: arrivals})
	d := &Declaration{System: system, Ledger: l, Metrics: slices.Clone(looped)}
	for i := range l.Counters {
		if c := &l.Counters[i]; !c.Aside {
			d.Metrics = append(d.Metrics, counterMetric(c, false))
		}
	}
	return d
}

// links declares the counters of a closed loop that belong neither to its hosts nor to its switch.
var links = &olaf.Ledger{
	Counters: []olaf.Counter{
		{Name: "received", Title: "Rounds", Unit: "updates",
			Doc: "of the weights of a job, counted when the last of its workers has them; if workers do not wait " +
				"for all and a server has the weights, when the server has them"},
		hostCounter(olaf.Counter{Name: "frames"}),
		{Name: "frames_arrived", Title: "Frames arrived", Unit: "frames", Aside: true,
			Doc: "at the switch, at workers and at servers"},
		hostCounter(olaf.Counter{Name: "frames_lost", Sparse: true}),
		{Name: "frames_underway", Title: "Frames underway", Unit: "frames", Aside: true, Doc: "when the last " +
			"host had finished"},
		{Name: "frames_switched", Title: "Frames switched", Unit: "frames", Aside: true,
			Doc: "that reached the program: by the links, where the classes are the device's own registers"},
		hostCounter(olaf.Counter{Name: "frames_marked", Sparse: true}),
		{Name: "frames_served", Title: "Packets at servers", Unit: "packets", Sparse: true,
			Doc: "that reached servers: sums, and what the switch did not add"},
		hostCounter(olaf.Counter{Name: "wire_bytes"}),
		{Name: "vector_packets", Title: "Packets of vectors", Unit: "packets", Aside: true,
			Doc: "that the vectors of all rounds take, each once"},
		{Name: "slots_peak", Title: "Slots held, most", Unit: "slots", Doc: "at a time"},
		{Name: "slots_left", Title: "Slots left", Unit: "slots", Aside: true, Doc: "in use when the last host " +
			"had finished"},
		{Name: "slots_built", Title: "Slots", Unit: "slots", Doc: "of the table"},
		hostCounter(olaf.Counter{Name: "memory_bytes"}),
		{Name: "held_slot_ns", Title: "Slots × time", Unit: "slot·ns", Aside: true, Doc: "slots in use, over time"},
		{Name: "ceiling_bps", Title: "Goodput ceiling", Unit: "bit/s", Aside: true,
			Doc: "of values, if a worker's link carries only full packets of them"},
		hostCounter(olaf.Counter{Name: "goodput_bps", Aside: true}),
		{Name: "iteration_ps", Title: "Iteration", Unit: "ps", Aside: true,
			Doc: "time between two updates of the weights, mean over the hosts that have them; 0 for a single " +
				"update"},
		{Name: "gradient_ps", Title: "Time per gradient", Unit: "ps", Aside: true,
			Doc: "the same per gradient in an update; 0 for a single update"},
		{Name: "aggregation_ps", Title: "Gradient aggregation", Unit: "ps", Aside: true,
			Doc: "time from when a round's last gradient is ready until the last worker has the sum; mean over " +
				"rounds"},
		{Name: "completion_ps", Title: "Completion of a job", Unit: "ps", Aside: true,
			Doc: "until its last worker had finished, mean over jobs"},
		{Name: "stale_micro", Title: "Staleness", Unit: "updates/10⁶", Aside: true,
			Doc: "updates of the weights between reading them and " +
				"applying the gradient, in millionths, mean over contributions"},
		{Name: "span_ps", Title: "Duration", Unit: "ps", Aside: true, Doc: "until the last host had finished"},
	},
	Identities: []olaf.Identity{{Left: []string{"frames"}, Right: []string{"frames_arrived", "frames_lost",
		"frames_underway"}}},
}

// looped lists the metrics of closed loops that are not plain counts, in the order of documents. Add new metrics here.
var looped = slices.Concat([]*Metric{
	hostMetric(Metric{Name: "iteration_ns", Column: "ITERATION", MissingReason: fixedReason("needs two updates"),
		Of: counterNS("iteration_ps")}),
	hostMetric(Metric{Name: "gradient_ns", Column: "PER GRADIENT", MissingReason: fixedReason("needs two updates"),
		Of: counterNS("gradient_ps")}),
	hostMetric(Metric{Name: "aggregation_ns",
		MissingReason: fixedReason("no worker waited for the sum of all, or no round finished"),
		Of:            counterNS("aggregation_ps")}),
	{Name: "completion_ns", Title: "Completion of a job", Unit: "ns", MissingReason: fixedReason("no job finished"),
		Doc: "until its last worker had finished, mean over jobs", Of: counterNS("completion_ps")},
	{Name: "goodput_gbps", Title: "Goodput per worker", Unit: "Gbit/s", Column: "GBIT/S",
		MissingReason: fixedReason("no update was done"),
		Doc:           OfHosts("goodput_bps").Doc,
		Of:            func(m *Measured) Float { return Float(m.Counts.Of("goodput_bps")) / 1e9 }},
	{Name: "ceiling_gbps", Title: "Goodput ceiling", Unit: "Gbit/s", Column: "CEILING", MissingReason: fixedReason("no link"),
		Doc: "the same if a worker's link carries only full packets of values",
		Of:  func(m *Measured) Float { return Float(m.Counts.Of("ceiling_bps")) / 1e9 }},
	hostMetric(Metric{Name: "staleness_updates", MissingReason: fixedReason("no update was done"), Of: meanStaleness}),
	hostMetric(Metric{Name: "slots_held", Column: "SLOTS HELD", MissingReason: noSlots, Zeroed: true, Of: slotsHeld}),
	hostMetric(Metric{Name: "held_bytes", Column: "HELD, B", MissingReason: noSlots,
		Of: func(m *Measured) Float { return slotsHeld(m) * counterRatio(m, "memory_bytes", "slots_built", 1) }}),
	{Name: "collided_pct", Title: "Collided", Unit: "%", Column: "COLLIDED %", MissingReason: fixedReason("slots are not shared"),
		Doc: "packets that found their aggregator taken and went to the server unchanged, relative to the " +
			"packets of all vectors",
		Of: func(m *Measured) Float {
			if m.Counts.Index("collided") < 0 {
				return Missing()
			}
			return 100 * counterRatio(m, "collided", "vector_packets", 1)
		}},
	{Name: "resent_pct", Title: "Sent again", Unit: "%", Column: "RESENT %", MissingReason: fixedReason("nothing was sent"),
		Doc: "resent packets, relative to the packets of all vectors",
		Of:  func(m *Measured) Float { return 100 * counterRatio(m, "packets_resent", "vector_packets", 1) }},
}, ByName("aom_cluster_ns", "aom_worker_ns", "peak_aom_ns", "jain", "duration_ns"))

// meanStaleness returns the mean staleness of the contributions that were applied.
func meanStaleness(m *Measured) Float {
	if m.Counts.Of("updates_applied") == 0 {
		return Missing()
	}
	return Float(m.Counts.Of("stale_micro")) / 1e6
}

// slotsHeld returns the mean number of used slots over time. It is missing if there is no table.
func slotsHeld(m *Measured) Float {
	if m.Counts.Of("slots_built") == 0 {
		return Missing()
	}
	return counterRatio(m, "held_slot_ns", "span_ps", 1000)
}

// noSlots returns the reason why the number of used slots is missing.
func noSlots(m *Measured) string {
	if m.Counts.Of("slots_built") == 0 {
		return "the switch has no table"
	}
	return "no time passed"
}

// counterNS returns a formula for a counted time, in nanoseconds. The time is missing if the count is 0.
func counterNS(counter string) func(*Measured) Float {
	return func(m *Measured) Float {
		if n := m.Counts.Of(counter); n > 0 {
			return Float(n) / 1000
		}
		return Missing()
	}
}

// counterRatio returns by times the value of counter, divided by the value of the counter named of.
func counterRatio(m *Measured, counter, of string, by Float) Float {
	if n := m.Counts.Of(of); n > 0 {
		return by * Float(m.Counts.Of(counter)) / Float(n)
	}
	return Missing()
}
