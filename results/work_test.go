package results

import (
	"testing"

	"github.com/olafctl/olaf/results/metric"
)

// TestUpdatesOfDifferentSizeAreNotCompared checks rows with different times for an update and for a gradient.
func TestUpdatesOfDifferentSizeAreNotCompared(t *testing.T) {
	row := func(queue string, iteration, gradient Float) Row {
		r := Row{Queue: queue}
		for name, v := range map[string]Float{"iteration_ns": iteration, "gradient_ns": gradient} {
			if v.Known() {
				r.Stats = append(r.Stats, Stat{&metric.Metric{Name: name}, Describe([]Float{v}, "")})
			}
		}
		return r
	}
	for name, c := range map[string]struct {
		rows []Row
		same bool
	}{
		"an asynchronous server applies one gradient, a switch four": {[]Row{row("iswitch", 1e6, 250e3),
			row("ps", 412.8e3, 412.8e3)}, false},
		"both wait for all":       {[]Row{row("iswitch", 1e6, 250e3), row("ps", 2e6, 500e3)}, true},
		"one system at two rates": {[]Row{row("ps", 1, 1), row("ps", 2, 2)}, true},
		"kept without a time per gradient": {[]Row{row("iswitch", 1e6, Missing()),
			row("ps", 412.8e3, Missing())}, false},
		"one system, kept without it": {[]Row{row("ps", 1, Missing()), row("ps", 2, Missing())}, true},
		"one side kept without it":    {[]Row{row("iswitch", 1e6, 250e3), row("ps", 1, Missing())}, false},
		"workers that do not wait have no update": {[]Row{row("olaf", Missing(), Missing()), row("fifo", Missing(),
			Missing())}, true},
	} {
		if got := SameWork(c.rows); got != c.same {
			t.Errorf("%s: updates are the same work: %t, want %t", name, got, c.same)
		}
		b := &Bench{Rows: c.rows, Comparisons: []Comparison{{Queue: c.rows[0].Queue, Versus: c.rows[1].Queue}}}
		if got := len(b.CompareAges()) == 1; got != c.same {
			t.Errorf("%s: ages are compared: %t, want %t", name, got, c.same)
		}
	}
}
