package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/olafctl/olaf/results/metric"
)

// Stat is a metric with its statistic over the runs of a row.
type Stat struct {
	*metric.Metric
	Statistic
}

// Stats contains the statistics of a row by name, in the order of their declaration. Times are in nanoseconds; the
// units of rates and shares are part of their names. docs/reference/metrics.md defines each statistic.
type Stats []Stat

// Of returns the statistic of the metric with the given name. If there is no such metric, the statistic has no mean.
func (s Stats) Of(name string) *Statistic {
	for i := range s {
		if s[i].Name == name {
			return &s[i].Statistic
		}
	}
	none := Describe(nil, "not measured")
	return &none
}

// MarshalJSON encodes the statistics as a JSON object, in order.
func (s Stats) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(s[i].Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(s[i].Statistic)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s:%s", name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// ofRows lists the members of a row that are JSON objects but not statistics.
var ofRows = []string{"decisions", "lateness_ns", "withheld", "burst_rate_bps", "model"}

// UnmarshalJSON decodes those members of a row that are statistics. Their metrics have only names until Row.Declare is
// called.
func (s *Stats) UnmarshalJSON(raw []byte) error {
	*s = nil
	return metric.EachMember(raw, func(name string, value json.RawMessage) error {
		if !bytes.HasPrefix(value, []byte("{")) || slices.Contains(ofRows, name) {
			return nil
		}
		stat := Stat{Metric: &metric.Metric{Name: name}}
		if err := json.Unmarshal(value, &stat.Statistic); err != nil {
			return fmt.Errorf("statistic %s: %w", name, err)
		}
		*s = append(*s, stat)
		return nil
	})
}

// plainRow is a Row without its methods, for use by encoding/json.
type plainRow Row

// MarshalJSON encodes the row with its statistics as members.
func (r Row) MarshalJSON() ([]byte, error) { return metric.Inline(plainRow(r)) }

// UnmarshalJSON decodes a row with its statistics.
func (r *Row) UnmarshalJSON(raw []byte) error {
	var plain plainRow
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err
	}
	*r = Row(plain)
	return json.Unmarshal(raw, &r.Stats)
}

// Value returns the run's value of metric m. The value is missing if the run does not have it.
func (r *Run) Value(m *metric.Metric) Float {
	switch {
	case m.Counter != "" && !m.Sparse && r.Counters.Index(m.Counter) < 0:
		return Missing()
	case m.IsCount():
		return Float(m.Count(r.Counters))
	}
	return r.Metrics.Of(m.Name)
}

// MetricsOf returns the metrics that a table of the given runs shows. These are all declared metrics with statistics,
// in the order of their declaration, without sparse metrics that have no value in any run.
func MetricsOf(runs []Run) []*metric.Metric {
	var union union
	var last *metric.Declaration
	for i := range runs {
		if d := runs[i].Declared; d != nil && d != last {
			last = d
			union.add(d.Metrics)
		}
	}
	return slices.DeleteFunc(union.metrics, func(m *metric.Metric) bool {
		return m.Aside || m.Sparse && !slices.ContainsFunc(runs,
			func(r Run) bool { v := r.Value(m); return v.Known() && v != 0 })
	})
}

// MetricsIn returns the metrics that have a statistic in any of the rows, in the order of the rows.
func MetricsIn(rows []Row) []*metric.Metric {
	var union union
	for i := range rows {
		of := make([]*metric.Metric, len(rows[i].Stats))
		for k := range rows[i].Stats {
			of[k] = rows[i].Stats[k].Metric
		}
		union.add(of)
	}
	return union.metrics
}

// union merges lists of metrics so that each name occurs once. A metric that is only in a later list is inserted after
// the metrics that precede it in that list.
type union struct{ metrics []*metric.Metric }

func (u *union) add(list []*metric.Metric) {
	at := 0
	for _, m := range list {
		if found := slices.IndexFunc(u.metrics, func(other *metric.Metric) bool { return other.Name == m.Name }); found >= 0 {
			at = found + 1
			continue
		}
		u.metrics = slices.Insert(u.metrics, at, m)
		at++
	}
}

// Declare sets the declaration of a run that was read from a document. It contains those rows of d that the run has.
func (r *Run) Declare(d *metric.Declaration) {
	r.Counters, r.Metrics = r.Counters.Under(d.Ledger), r.Metrics.Under(d)
	r.Declared = d.ForStored(r.Counters, r.Metrics)
}

// Declare sets the metrics of the statistics in a row that was read from a document to those declared by d.
func (r *Row) Declare(d *metric.Declaration) {
	for k := range r.Stats {
		if m := d.Metric(r.Stats[k].Name); m != nil {
			r.Stats[k].Metric = m
		}
	}
}
