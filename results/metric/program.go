package metric

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
)

// OfProgram declares the runs of a system whose switches have a program in front of their queue. The program declares what it
// counts, the classes of its arrivals first; flow and sums are the queue's. What is lost is told in updates, whether they
// left by themselves or inside of a sum.
func OfProgram(system string, program *olaf.Ledger, classes int, flow, sums *olaf.Ledger) *Declaration {
	arrivals := make([]string, classes)
	front := &olaf.Ledger{Counters: slices.Clone(program.Counters), Identities: slices.Clone(program.Identities)}
	for i := range front.Counters {
		c := &front.Counters[i]
		c.Register, c.Sparse = fmt.Sprintf("aggregator.count_%d", i), true
		if i < classes {
			arrivals[i] = c.Name
		}
	}
	sending, queue, inside := sendingTo(arrivals...), behind(flow), insideOf(sums)
	queue.Identities = append(queue.Identities, olaf.Identity{Left: []string{"in"}, Right: program.Output})
	l := olaf.JoinLedgers(sending, astray, front, queue, captured, inside)
	l.Output = []string{"count_delivered"}
	l.Parts = slices.Concat(astray.Parts, program.Parts, []string{"count_dropped", "count_discarded", "count_flushed", "count_queued"})
	l.Inside = slices.Concat(program.Inside, []string{"count_queued"})
	d := &Declaration{System: system, Ledger: l}
	return d.measuring(sending, captured, inside, front, astray)
}

// behind is what a queue counts of the sums that a program sends: kept with every run, and no statistic of it.
func behind(flow *olaf.Ledger) *olaf.Ledger {
	queue := &olaf.Ledger{Counters: slices.Clone(flow.Counters), Identities: slices.Clone(flow.Identities)}
	for i := range queue.Counters {
		queue.Counters[i].Aside = true
	}
	return queue
}

// insideOf is what is inside of these sums: all that the program sent has left, waits, or was dropped.
func insideOf(sums *olaf.Ledger) *olaf.Ledger {
	inside := &olaf.Ledger{Identities: []olaf.Identity{{
		Left:  []string{"vectors_out"},
		Right: []string{"count_delivered", "count_queued", "count_flushed", "count_discarded", "count_dropped"},
		Void:  "count_saturations",
	}}}
	for _, c := range sums.Counters {
		if c.Sparse {
			continue // what an earlier hop merged: vectors_out tells of it
		}
		c.Aside = c.Aside && c.Name != "count_delivered"
		inside.Counters = append(inside.Counters, c)
	}
	inside.Counters = append(inside.Counters, olaf.Counter{
		Name: "count_dropped", Title: "Updates dropped, queue full", Unit: "updates", Doc: "updates inside the sums that the queue dropped",
		Register: "aggregator.dropped_vectors", Column: "FULL",
	})
	return inside
}
