// Package cells carries out cells of a sweep: some runs of a bench, a simulation, a training, a plan or a question. What a cell is
// stands in a specification, which decides everything but how many runs there are and is written as JSON: by it workers on any
// machine do the same, and results are found again.
package cells

import (
	"encoding/json"

	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// Carrier carries out those cells whose specifications name systems, of which it has those that there are.
type Carrier struct{ Systems system.Set }

// read takes a specification from the form in which workers get it.
func read[T any](spec json.RawMessage) (one T, err error) {
	err = json.Unmarshal(spec, &one)
	return one, err
}

// row is a metric that only sweeps name.
type row struct{ name, title, unit string }

func metrics(rows ...row) (all []*metric.Metric) {
	for _, r := range rows {
		all = append(all, &metric.Metric{Name: r.name, Title: r.title, Unit: r.unit})
	}
	return all
}

// of is a lot without runs that has these metrics.
func of(all []*metric.Metric) *sweep.Lot {
	lot := new(sweep.Lot)
	for _, m := range all {
		lot.Metrics = append(lot.Metrics, m.Name)
	}
	return lot
}

func floats(values ...float64) (all []results.Float) {
	for _, v := range values {
		all = append(all, results.Float(v))
	}
	return all
}
