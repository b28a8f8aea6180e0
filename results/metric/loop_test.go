package metric_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/metric"
)

// loop returns the declaration for hosts around a switch that counts some classes of arrivals and other events.
func loop(others ...string) *metric.Declaration {
	program := &olaf.Ledger{
		Counters: []olaf.Counter{{Name: "added", Title: "Added", Unit: "packets", Column: "ADDED"},
			{Name: "late", Title: "Late", Unit: "packets"}},
		Identities: []olaf.Identity{{Left: []string{"added"}, Right: []string{"sums"}}},
	}
	for _, name := range append([]string{"sums"}, others...) {
		program.Counters = append(program.Counters, olaf.Counter{Name: name, Title: name, Unit: "packets",
			Aside: name == "sums"})
	}
	return metric.OfLoop("adder loop", program, 2, &olaf.Ledger{
		Counters: []olaf.Counter{{Name: "packets_sent", Title: "Sent", Unit: "packets"}, {Name: "packets_resent",
			Title: "Again", Unit: "packets"}, {Name: "updates_applied", Title: "Applied", Unit: "updates"}},
		Identities: []olaf.Identity{{Left: []string{"packets_sent"}, Right: []string{"updates_applied"}}},
	})
}

// summing returns the declaration for a program in front of a queue.
func summing() *metric.Declaration {
	sums := &olaf.Ledger{Counters: []olaf.Counter{
		{Name: "count_merged", Title: "Merged before", Unit: "updates", Sparse: true}, {Name: "count_delivered",
			Title: "Inside", Unit: "updates", Aside: true},
		{Name: "count_queued", Title: "Waiting", Unit: "updates", Column: "WAITING"}, {Name: "count_flushed",
			Title: "Flushed", Unit: "updates"},
		{Name: "count_discarded", Title: "Discarded", Unit: "updates"}, {Name: "count_saturations",
			Title: "Saturated", Aside: true},
	}}
	flow := &olaf.Ledger{
		Counters: []olaf.Counter{{Name: "in", Title: "In", Unit: "frames"}, {Name: "dropped", Title: "Dropped",
			Unit: "frames"}, {Name: "delivered", Title: "Delivered", Unit: "frames", Aside: true}},
		Identities: []olaf.Identity{{Left: []string{"in"}, Right: []string{"delivered", "dropped"}}},
	}
	return metric.OfProgram("adder", &olaf.Ledger{
		Counters: []olaf.Counter{{Name: "added", Title: "Added", Unit: "updates", Column: "ADDED"},
			{Name: "late", Title: "Late", Unit: "updates"}, {Name: "vectors_out", Title: "Left", Unit: "updates", Aside: true}},
		Output: []string{"added"}, Parts: []string{"late"}, Inside: []string{"vectors_out"},
	}, 2, flow, sums)
}

// printed prints a declaration as documents and tables use it.
func printed(b *bytes.Buffer, d *metric.Declaration) {
	l := d.Ledger
	fmt.Fprintf(b, "== %q, offered %q, output %q, merged %q, parts %q, inside %q\n", d.System, l.Offered, l.Output,
		l.Merged, l.Parts, l.Inside)
	for _, c := range l.Counters {
		fmt.Fprintf(b, "counter %+v\n", c)
	}
	for _, i := range l.Identities {
		fmt.Fprintf(b, "%s; void by %q\n", i.String(), i.Void)
	}
	for _, m := range d.Metrics {
		fmt.Fprintf(b, "metric %s, %q [%s], columns %q %q, counter %q, zeroed %t, age %t, sparse %t, aside %t, %s: %s\n",
			m.Name, m.Title, m.Unit, m.Column, m.Part, m.Counter, m.Zeroed, m.Age, m.Sparse, m.Aside, m.Paper, m.Doc)
	}
}

// TestDeclarations checks the declaration for every kind of run, as documents, tables and registers use it, and that it
// is a valid ledger.
func TestDeclarations(t *testing.T) {
	var b bytes.Buffer
	for _, d := range []*metric.Declaration{toy.Declared, summing(), loop("collided")} {
		if err := d.Ledger.Validate(); err != nil {
			t.Error(err)
		}
		printed(&b, d)
	}
	golden.Equal(t, "declarations.txt", b.Bytes())
}

// measures checks some metrics of the given counts, and the reasons for missing ones.
func measures(t *testing.T, what string, d *metric.Declaration, m *metric.Measured, counts map[string]int64,
	want map[string]any) {
	t.Helper()
	m.Counts = olaf.NewCounts(d.Ledger)
	for name, n := range counts {
		m.Counts.Add(name, n)
	}
	m.AgeBelow = func(float64) metric.Float { return metric.Missing() }
	values, missing := d.Measure(m)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch want := want[name].(type) {
		case float64:
			if got := values.Of(name); got != metric.Float(want) {
				t.Errorf("%s: %s is %v, want %v", what, name, got, want)
			}
		case string:
			if got := values.Of(name); got.Known() || missing[name] != want {
				t.Errorf("%s: %s is %v (%q), want none: %q", what, name, got, missing[name], want)
			}
		}
	}
}

// TestLoopMetricsByHand checks the metrics of loops against values computed by hand.
func TestLoopMetricsByHand(t *testing.T) {
	for _, c := range []struct {
		what    string
		counts  map[string]int64
		want    map[string]any
		without bool // the slots are not shared
	}{
		{what: "nothing", want: map[string]any{
			"iteration_ns":   "needs two updates",
			"aggregation_ns": "no worker waited for the sum of all, or no round finished",
			"completion_ns":  "no job finished",
			"goodput_gbps":   0.0, "ceiling_gbps": 0.0, "staleness_updates": "no update was done",
			"slots_held": "the switch has no table", "held_bytes": "the switch has no table",
			"collided_pct": "slots are not shared", "resent_pct": "nothing was sent",
		}},
		{what: "slots of one's own", without: true, counts: map[string]int64{"vector_packets": 5},
			want: map[string]any{"collided_pct": "slots are not shared", "resent_pct": 0.0}},
		{what: "no time", counts: map[string]int64{"slots_built": 4, "memory_bytes": 64},
			want: map[string]any{"slots_held": "no time passed", "held_bytes": "no time passed"}},
		{what: "a slot", counts: map[string]int64{"slots_built": 1, "memory_bytes": 16, "span_ps": 1000},
			want: map[string]any{"slots_held": 0.0, "held_bytes": 0.0}},
		{what: "much", counts: map[string]int64{
			"iteration_ps": 2500, "aggregation_ps": 1500, "completion_ps": 1, "goodput_bps": 25e8, "ceiling_bps": 1e10,
			"updates_applied": 1, "stale_micro": 1_500_000,
			"slots_built": 4, "memory_bytes": 64, "held_slot_ns": 30, "span_ps": 20_000, "collided": 3,
			"vector_packets": 8, "packets_resent": 2,
		}, want: map[string]any{
			"iteration_ns": 2.5, "aggregation_ns": 1.5, "completion_ns": 0.001, "goodput_gbps": 2.5,
			"ceiling_gbps": 10.0, "staleness_updates": 1.5,
			"slots_held": 1.5, "held_bytes": 24.0, "collided_pct": 37.5, "resent_pct": 25.0,
		}},
	} {
		d := loop("collided")
		if c.without {
			d = loop()
		}
		measures(t, c.what, d, new(metric.Measured), c.counts, c.want)
	}
}

// TestTableOccupancyByHand checks the occupancy of a program's table against values computed by hand from registers in
// cycles of 4 ns.
func TestTableOccupancyByHand(t *testing.T) {
	const younger = "the card does not count it, because its register aggregator.occupancy_integral follows map " +
		"1.3"
	for _, c := range []struct {
		what     string
		duration metric.Float // ns
		counts   map[string]int64
		held     any
		bytes    any
	}{
		{"no delivery", metric.Missing(), map[string]int64{"held_slot_cycles": 10, "slots_peak": 2, "slots_built": 4,
			"memory_bytes": 64}, "needs two deliveries", "needs two deliveries"},
		{"one delivery", 0, map[string]int64{"held_slot_cycles": 10, "slots_peak": 2, "slots_built": 4,
			"memory_bytes": 64}, "needs two deliveries", "needs two deliveries"},
		{"an older card", 100, map[string]int64{"slots_peak": 2, "slots_built": 4, "memory_bytes": 64}, younger, younger},
		{"an older card that held a slot", 1, map[string]int64{"slots_peak": 1, "slots_built": 4, "memory_bytes": 64},
			younger, younger},
		{"nothing held", 100, map[string]int64{"slots_built": 4, "memory_bytes": 64}, 0.0, 0.0},
		{"a table", 100, map[string]int64{"held_slot_cycles": 50, "slots_peak": 3, "slots_built": 4,
			"memory_bytes": 64}, 2.0, 32.0},
		{"a slot", 100, map[string]int64{"held_slot_cycles": 25, "slots_peak": 1, "slots_built": 1,
			"memory_bytes": 48}, 1.0, 48.0},
	} {
		measures(t, c.what, summing(), &metric.Measured{Duration: c.duration, Torn: metric.Missing()}, c.counts,
			map[string]any{"slots_held": c.held, "held_bytes": c.bytes})
	}
}
