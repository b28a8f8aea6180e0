package metric

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
)

// OfProgram returns the declaration of the counters and metrics of a system whose switches have a program before their
// queue. program declares the program's counters, with the classes of its arrivals first. flow and sums declare the
// queue's counters. Losses are counted in updates, regardless of whether they were lost alone or in a sum.
func OfProgram(system string, program *olaf.Ledger, classes int, flow, sums *olaf.Ledger) *Declaration {
	front, arrivals := frontOf(program, classes)
	sending, queue, inside, table := sendingTo(arrivals...), queueBehind(flow), insideOf(sums), tableHeld
	queue.Identities = append(queue.Identities, olaf.Identity{Left: []string{"in"}, Right: program.Output})
	l := olaf.JoinLedgers(sending, astray, front, queue, captured, inside, table)
	l.Output = []string{"count_delivered"}
	l.Parts = slices.Concat(astray.Parts, program.Parts, []string{"count_dropped", "count_discarded",
		"count_flushed", "count_queued"})
	l.Inside = slices.Concat(program.Inside, []string{"count_queued"})
	d := &Declaration{System: system, Ledger: l}
	d.withMetrics(sending, captured, inside, front, astray, table)
	d.Metrics = append(d.Metrics, summed...)
	d.Metrics = append(d.Metrics, tableMetrics...)
	return d
}

// frontOf returns a program's counters with their registers, and the names of the classes of its arrivals.
func frontOf(program *olaf.Ledger, classes int) (front *olaf.Ledger, arrivals []string) {
	arrivals = make([]string, classes)
	front = &olaf.Ledger{Counters: slices.Clone(program.Counters), Identities: slices.Clone(program.Identities)}
	for i := range front.Counters {
		c := &front.Counters[i]
		c.Register, c.Sparse = fmt.Sprintf("aggregator.count_%d", i), true
		if i < classes {
			arrivals[i] = c.Name
		}
	}
	return front, arrivals
}

// OldestStamp is the name of a metric. If it is declared, ages are also computed from the oldest and the mean
// timestamps of a sum.
const OldestStamp = "aom_oldest_ns"

// summed lists the metrics of frames that are sums. The age of a sum depends on which of its contributions' timestamps
// is used.
var summed = []*Metric{
	{Name: "aom_mean_ns", Title: "AoM by the mean stamp", Unit: "ns", Age: true, MissingReason: noStampsReason,
		Doc: "like `aom_cluster_ns`, but a sum is as old as its contributions on average, to 1 ps",
		Of:  func(m *Measured) Float { return m.ofWorkers(m.MeanStamps.Mean()) }},
	{Name: OldestStamp, Title: "AoM by the oldest stamp", Unit: "ns", Age: true, MissingReason: noStampsReason,
		Doc: "like `aom_cluster_ns`, but a sum is as old as its oldest contribution",
		Of:  func(m *Measured) Float { return m.ofWorkers(m.OldestStamps.Mean()) }},
}

// overCycles is the name of the counter of cycles over which used slots were counted.
const overCycles = "held_cycles"

// tableHeld declares the counters of the table in the switch program before the queue.
var tableHeld = &olaf.Ledger{Counters: []olaf.Counter{
	{Name: "slots_peak", Title: "Slots held, most", Unit: "slots", Sparse: true,
		Register: "aggregator.peak_occupied", Doc: "at a time"},
	{Name: "slots_built", Title: "Slots", Unit: "slots", Sparse: true, Doc: "of the table"},
	hostCounter(olaf.Counter{Name: "memory_bytes", Sparse: true}),
	{Name: "held_slot_cycles", Title: "Slots × cycles", Unit: "slot cycles", Aside: true,
		Register: "aggregator.occupancy_integral", Doc: "slots in use, over time, up to the last update"},
	{Name: overCycles, Title: "Cycles of that", Unit: "cycles", Aside: true,
		Register: "aggregator.occupancy_cycles",
		Doc: "over which `held_slot_cycles` were counted, from the first update to the last; 0 if the card's map " +
			"is older than 1.4"},
}}

// tableMetrics lists the metrics of the table in the switch program before the queue.
var tableMetrics = []*Metric{
	hostMetric(Metric{Name: "slots_held", Over: overCycles, MissingReason: noCycles, Of: slotsInFront}),
	hostMetric(Metric{Name: "held_bytes", Over: overCycles, MissingReason: noCycles,
		Of: func(m *Measured) Float { return slotsInFront(m) * counterRatio(m, "memory_bytes", "slots_built", 1) }}),
}

// slotsInFront returns the mean number of used slots over the time that the card counted. A card with register map 1.3
// does not report this time. In this case, the time from the first to the last delivery is used. The value is missing
// if the card does not count slots.
func slotsInFront(m *Measured) Float {
	held, cycles := m.Counts.Of("held_slot_cycles"), m.Counts.Of(overCycles)
	if cycles > 0 {
		return Float(held) / Float(cycles)
	}
	if held == 0 && m.Counts.Of("slots_peak") > 0 || !(m.Duration > 0) {
		return Missing()
	}
	return Float(held) * Float(olaf.Cycle) / Float(olaf.Nanosecond) / m.Duration
}

// noCycles returns the reason why the time over which used slots were counted is unknown.
func noCycles(m *Measured) string {
	if m.Duration > 0 {
		return "the card does not count it, because its register aggregator.occupancy_integral follows map 1.3"
	}
	return needsTwo
}

// noStampsReason returns the reason why there is no age for timestamps other than the newest.
func noStampsReason(m *Measured) string {
	switch {
	case m.Nameless:
		return "not observable, because a frame does not carry whose updates it contains"
	case m.Torn.Known():
		return "an update of several frames is as old as its oldest segment, where the newest stamp of each " +
			"segment counts"
	}
	return needsTwo
}

// queueBehind returns a ledger with the counters of the queue after a program, whose frames are sums. These counters
// are stored with every run but have no statistics.
func queueBehind(flow *olaf.Ledger) *olaf.Ledger {
	queue := &olaf.Ledger{Counters: slices.Clone(flow.Counters), Identities: slices.Clone(flow.Identities)}
	for i := range queue.Counters {
		queue.Counters[i].Aside = true
	}
	return queue
}

// insideOf returns a ledger with the counters of the updates in a program's sums. Every update that the program sent
// has left, is waiting, or was dropped.
func insideOf(sums *olaf.Ledger) *olaf.Ledger {
	inside := &olaf.Ledger{Identities: []olaf.Identity{{
		Left:  []string{"vectors_out"},
		Right: []string{"count_delivered", "count_queued", "count_flushed", "count_discarded", "count_dropped"},
		Void:  "count_saturations",
	}}}
	for _, c := range sums.Counters {
		if c.Sparse {
			continue // merged by an earlier hop; vectors_out counts these
		}
		c.Aside = c.Aside && c.Name != "count_delivered"
		inside.Counters = append(inside.Counters, c)
	}
	inside.Counters = append(inside.Counters, olaf.Counter{
		Name: "count_dropped", Title: "Updates dropped, queue full", Unit: "updates",
		Doc:      "updates inside the sums that the queue dropped",
		Register: "aggregator.dropped_vectors", Column: "FULL",
	})
	return inside
}
