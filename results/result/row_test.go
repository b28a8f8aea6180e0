package result_test

import (
	"slices"
	"testing"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/result"
)

// TestOnlyDifferingNumbersAreDrawn lays out two rows and expects figures of the numbers that differ, but none of constant
// or unknown ones, nor of an age or a number per update whose rows hold different work.
func TestOnlyDifferingNumbersAreDrawn(t *testing.T) {
	drawn := func(name, unit string) *metric.Metric {
		m := result.NewMetric(name, name, unit)
		m.Column = name
		return m
	}
	dropped, zero, unknown := result.NewCounter("dropped", "Dropped", "packets"), result.NewCounter("zero", "Zero", "packets"),
		drawn("unknown", "ns")
	dropped.Column, zero.Column = "DROPPED", "ZERO"
	iteration, gradient, plain := drawn("iteration_ns", "ns"), drawn("gradient_ns", "ns"), result.NewMetric("plain", "Plain", "ns")
	age := drawn("aom_mean_ns", "ns")
	iteration.PerUpdate, age.Age = true, true
	row := func(name string, values ...float64) result.Row {
		r := result.Row{Name: name, Runs: 1}
		for i, m := range []*metric.Metric{dropped, zero, iteration, gradient, plain, age} {
			r.Stats = append(r.Stats, results.Stat{Metric: m, Statistic: result.Describe([]float64{values[i]})})
		}
		return r
	}
	r := result.New("simulate", "", nil)
	r.Metrics = result.Metrics{dropped, zero, unknown, iteration, gradient, plain, age}
	r.Rows = []result.Row{row("iswitch", 3, 0, 400, 100, 1, 5), row("ps", 4, 0, 200, 200, 2, 6)}
	charts := func() (names []string) {
		for _, s := range r.Sheets() {
			if len(s.Charts) > 0 && len(s.Rows) == len(r.Rows) && s.Name != "Paper" {
				names = append(names, s.Title)
			}
		}
		return names
	}
	if got, want := charts(), []string{"Dropped", "gradient_ns"}; !slices.Equal(got, want) {
		t.Errorf("figures of %q, want %q: four gradients an update against one", got, want)
	}
	r.Rows[1] = row("ps", 4, 0, 800, 200, 2, 6)
	if got, want := charts(), []string{"Dropped", "iteration_ns", "gradient_ns", "aom_mean_ns"}; !slices.Equal(got, want) {
		t.Errorf("figures of %q, want %q: four gradients an update in both", got, want)
	}
	r.Rows = r.Rows[:1]
	if got := charts(); len(got) > 0 {
		t.Errorf("figures of %q, want none for a single bar", got)
	}
}
