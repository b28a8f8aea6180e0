package metric

import (
	"cmp"
	"slices"

	"github.com/olafctl/olaf"
)

// Declaration lists the counters and metrics of a run, in the order of documents.
type Declaration struct {
	System  string // system to which it belongs; empty for a single queue
	Ledger  *olaf.Ledger
	Metrics []*Metric
}

// OfQueue returns the declaration of the counters and metrics of a run with one queue. flow declares the counters of
// arrivals and frames at the queue, and sums declares the counters of the updates in them.
func OfQueue(flow, sums *olaf.Ledger) *Declaration {
	sending := sendingTo("in")
	d := &Declaration{Ledger: olaf.JoinLedgers(sending, astray, flow, captured, sums)}
	return d.withMetrics(sending, captured, flow, astray, sums)
}

// withMetrics adds metrics to the declaration and returns it. First come the metrics for the counters in parts, in the
// order of documents, then the losses and the measured metrics.
func (d *Declaration) withMetrics(parts ...*olaf.Ledger) *Declaration {
	l := d.Ledger
	for _, part := range parts {
		for i := range part.Counters {
			if c := &part.Counters[i]; !c.Aside {
				d.Metrics = append(d.Metrics, counterMetric(c, slices.Contains(l.Parts, c.Name)))
			}
		}
	}
	lost := olaf.Identity{Left: []string{"lost"}, Right: l.Offered, Less: slices.Concat(l.Output, l.Merged)}
	d.Metrics = append(d.Metrics,
		&Metric{Name: "lost", Title: "Lost (paper)", Unit: "updates", Sum: olaf.Counts.SumLost,
			Doc: "as Table 1 counts it: " + lost.String()},
		&Metric{Name: "lost_pct", Title: "Lost (paper)", Unit: "%", Column: "LOST %",
			MissingReason: fixedReason("nothing was sent"), Doc: "100 · lost / sent",
			Of: func(m *Measured) Float {
				return Float(100 * float64(m.Counts.SumLost()) / float64(m.Counts.SumOffered()))
			}})
	d.Metrics = append(d.Metrics, measured...)
	return d
}

// counterMetric returns the metric for a counter. part is true if the counter is a part of the total loss.
func counterMetric(c *olaf.Counter, part bool) *Metric {
	m := &Metric{Name: c.Name, Title: c.Title, Unit: c.Unit, Doc: c.Doc, Paper: c.Paper, Counter: c.Name,
		Column: c.Column, Sparse: c.Sparse}
	if part {
		m.Column, m.Part = "", cmp.Or(c.Column, c.Title)
	}
	return m
}

// CountOf returns the metric for a counter that is not a part of the loss.
func CountOf(c *olaf.Counter) *Metric { return counterMetric(c, false) }

// Evaluate computes the values of the given metrics, including counts, from the measurements of a run.
func Evaluate(rows []*Metric, m *Measured) Values {
	return NewValues(rows, func(i int) Float {
		if rows[i].IsCount() {
			return Float(rows[i].Count(m.Counts))
		}
		return rows[i].Of(m)
	})
}

// NewValues returns the values of the given metrics. value returns a metric's value by the metric's index.
func NewValues(rows []*Metric, value func(int) Float) Values {
	v := Values{rows, make([]Float, len(rows))}
	for i := range rows {
		v.values[i] = value(i)
	}
	return v
}

// Measure computes all measured metrics. It also returns the reasons for missing values, by metric name.
func (d *Declaration) Measure(m *Measured) (v Values, missing map[string]string) {
	missing = map[string]string{}
	if d == nil {
		return v, missing
	}
	for _, row := range d.Metrics {
		if row.Of == nil {
			continue
		}
		value := row.Of(m)
		if row.Sparse && !value.Known() {
			continue
		}
		v.metrics, v.values = append(v.metrics, row), append(v.values, value)
		if why := row.MissingReason; !value.Known() && why != nil {
			if text := why(m); text != "" {
				missing[row.Name] = text
			}
		}
	}
	return v, missing
}

// ForStored returns the declaration for a stored run. It contains those rows of d for which the run has a count or a
// value. For a name that d does not have, it adds a row with only the name.
func (d *Declaration) ForStored(c olaf.Counts, v Values) *Declaration {
	part := &Declaration{System: d.System, Ledger: c.Ledger()}
	for _, row := range d.Metrics {
		there := row.Sparse || v.index(row.Name) >= 0
		switch {
		case row.Counter != "":
			there = row.Sparse || c.Index(row.Counter) >= 0
		case row.Sum != nil:
			there = len(part.Ledger.Offered) > 0
		}
		if there {
			part.Metrics = append(part.Metrics, row)
		}
	}
	for _, row := range v.metrics {
		if d.Metric(row.Name) == nil {
			part.Metrics = append(part.Metrics, row)
		}
	}
	if part.Ledger == d.Ledger && slices.Equal(part.Metrics, d.Metrics) {
		return d
	}
	return part
}

// Union returns a declaration with every metric of the given declarations. Each name occurs only once.
func Union(all ...*Declaration) *Declaration {
	united := new(Declaration)
	for _, d := range all {
		for _, m := range d.Metrics {
			if united.Metric(m.Name) == nil {
				united.Metrics = append(united.Metrics, m)
			}
		}
	}
	return united
}

// Metric returns the metric with the given name, or nil if there is none.
func (d *Declaration) Metric(name string) *Metric {
	for _, row := range d.Metrics {
		if row.Name == name {
			return row
		}
	}
	return nil
}
