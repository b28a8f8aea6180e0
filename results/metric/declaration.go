package metric

import (
	"cmp"
	"slices"

	"github.com/olafctl/olaf"
)

// Declaration is everything that is counted and measured of a run, in the order of documents.
type Declaration struct {
	System  string // whose it is; empty for what passes one queue
	Ledger  *olaf.Ledger
	Metrics []*Metric
}

// OfQueue declares a run through one queue, which itself declares what it counts of arrivals and frames (flow) and of the
// updates inside of them (sums).
func OfQueue(flow, sums *olaf.Ledger) *Declaration {
	sending := sendingTo("in")
	d := &Declaration{Ledger: olaf.JoinLedgers(sending, astray, flow, captured, sums)}
	return d.measuring(sending, captured, flow, astray, sums)
}

// measuring adds the metrics: the counters of the ledger's parts, in the order of documents, and what is measured.
func (d *Declaration) measuring(parts ...*olaf.Ledger) *Declaration {
	l := d.Ledger
	for _, part := range parts {
		for i := range part.Counters {
			if c := &part.Counters[i]; !c.Aside {
				d.Metrics = append(d.Metrics, counted(c, slices.Contains(l.Parts, c.Name)))
			}
		}
	}
	lost := olaf.Identity{Left: []string{"lost"}, Right: l.Offered, Less: slices.Concat(l.Output, l.Merged)}
	d.Metrics = append(d.Metrics,
		&Metric{Name: "lost", Title: "Lost (paper)", Unit: "updates", Sum: olaf.Counts.Lost, Doc: "as Table 1 counts it: " + lost.String()},
		&Metric{Name: "lost_pct", Title: "Lost (paper)", Unit: "%", Column: "LOST %", Why: because("nothing was sent"), Doc: "100 · lost / sent",
			Of: func(m *Measured) Float { return Float(100 * float64(m.Counts.Lost()) / float64(m.Counts.Offered())) }})
	d.Metrics = append(d.Metrics, measured...)
	return d
}

// counted is the metric that a counter is, of a part of what was lost or not.
func counted(c *olaf.Counter, part bool) *Metric {
	m := &Metric{Name: c.Name, Title: c.Title, Unit: c.Unit, Doc: c.Doc, Paper: c.Paper, Counter: c.Name, Column: c.Column, Sparse: c.Sparse}
	if part {
		m.Column, m.Part = "", cmp.Or(c.Column, c.Title)
	}
	return m
}

// CountOf is the metric that a counter is.
func CountOf(c *olaf.Counter) *Metric { return counted(c, false) }

// Evaluate computes metrics of what was measured, counts as well.
func Evaluate(rows []*Metric, m *Measured) Values {
	return Listed(rows, func(i int) Float {
		if rows[i].Counted() {
			return Float(rows[i].Count(m.Counts))
		}
		return rows[i].Of(m)
	})
}

// Listed are values that their owner computes, by the index of their metric.
func Listed(rows []*Metric, value func(int) Float) Values {
	v := Values{rows, make([]Float, len(rows))}
	for i := range rows {
		v.values[i] = value(i)
	}
	return v
}

// Measure evaluates every metric that is measured, and gives the reasons of those that are missing.
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
		if why := row.Why; !value.Known() && why != nil {
			if text := why(m); text != "" {
				missing[row.Name] = text
			}
		}
	}
	return v, missing
}

// Among is the part of the declaration that concerns a stored run with these counts, which are declared, and values: the
// rows that d has for their names. Names that d does not have keep a row with nothing but the name.
func (d *Declaration) Among(c olaf.Counts, v Values) *Declaration {
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

// United has every metric that one of some declarations has, each name once.
func United(all ...*Declaration) *Declaration {
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

// Metric finds a row by its name; nil where there is none.
func (d *Declaration) Metric(name string) *Metric {
	for _, row := range d.Metrics {
		if row.Name == name {
			return row
		}
	}
	return nil
}
