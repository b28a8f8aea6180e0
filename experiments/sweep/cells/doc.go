// Package cells runs the cells of a sweep. The runs are those of a bench, simulation, training, plan or verification. A
// cell is a JSON specification that fixes everything except the number of runs, so that workers on any machine get the
// same results and can look them up.
package cells

import (
	"encoding/json"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// Carrier runs cells whose specifications name systems. It looks them up in Systems.
type Carrier struct{ Systems system.Set }

// readSpec parses a specification from its JSON form.
func readSpec[T any](spec json.RawMessage) (one T, err error) {
	err = json.Unmarshal(spec, &one)
	return one, err
}

// row describes a metric that only sweeps use.
type row struct{ name, title, unit string }

func makeMetrics(rows ...row) []*metric.Metric {
	return olaf.Map(rows, func(r row) *metric.Metric { return &metric.Metric{Name: r.name, Title: r.title, Unit: r.unit} })
}

// newLot returns a lot with the given metrics and without runs.
func newLot(all []*metric.Metric) *sweep.Lot {
	return &sweep.Lot{Metrics: olaf.Map(all, func(m *metric.Metric) string { return m.Name })}
}

func floats(values ...float64) []results.Float {
	return olaf.Map(values, func(v float64) results.Float { return results.Float(v) })
}
