package results

import (
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/metric"
)

// TestZeroedMetrics checks that a run stored with 0 for a value that is missing now equals the new run, for zeroed
// metrics and no others.
func TestZeroedMetrics(t *testing.T) {
	never := func(*metric.Measured) metric.Float { return metric.Missing() }
	run := func(zeroed bool, v metric.Float) Run {
		d := &metric.Declaration{Metrics: []*metric.Metric{{Name: "held", Zeroed: zeroed, Of: never}}}
		return Run{Declared: d, Metrics: metric.NewValues(d.Metrics, func(int) metric.Float { return v })}
	}
	for _, c := range []struct {
		zeroed  bool
		was, is metric.Float
		same    bool
	}{
		{true, 0, metric.Missing(), true}, {false, 0, metric.Missing(), false}, {true, 1, metric.Missing(), false},
		{true, 0, 1, false}, {true, metric.Missing(), 0, false}, {true, 2, 2, true},
	} {
		was, is := run(c.zeroed, c.was), run(c.zeroed, c.is)
		if why := was.Differs(&is); (why == "") != c.same {
			t.Errorf("zeroed %v, %v and %v: %q", c.zeroed, c.was, c.is, why)
		}
	}
}

// TestMetricsOverSomethingElse checks that a number stored with a different denominator is not compared with today's,
// and that one with the same denominator is.
func TestMetricsOverSomethingElse(t *testing.T) {
	run := func(v metric.Float, counters ...olaf.Counter) Run {
		d := &metric.Declaration{Metrics: []*metric.Metric{{Name: "held", Over: "cycles",
			Of: func(*metric.Measured) metric.Float { return 0 }}}}
		return Run{Declared: d, Counters: olaf.NewCounts(&olaf.Ledger{Counters: counters}),
			Metrics: metric.NewValues(d.Metrics, func(int) metric.Float { return v })}
	}
	cycles := olaf.Counter{Name: "cycles"}
	for name, c := range map[string]struct {
		was, is Run
		same    bool
	}{
		"kept before it was counted":               {run(1), run(2, cycles), true},
		"kept since":                               {run(1, cycles), run(2, cycles), false},
		"measured again from what was kept before": {run(1), run(2), false},
	} {
		if why := c.was.Differs(&c.is); (why == "") != c.same {
			t.Errorf("%s: %q", name, why)
		}
	}
}
