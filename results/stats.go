package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/olafctl/olaf/results/metric"
)

// Stat is the statistic of one metric over the runs of a row.
type Stat struct {
	*metric.Metric
	Statistic
}

// Stats are a row's statistics by name, in declaration order. Times are in ns, rates and shares as their names say;
// docs/reference/metrics.md defines each.
type Stats []Stat

// Of returns the statistic of the named metric, without a mean if there is no such metric.
func (s Stats) Of(name string) *Statistic {
	for i := range s {
		if s[i].Name == name {
			return &s[i].Statistic
		}
	}
	none := Describe(nil, "not measured")
	return &none
}

// MarshalJSON writes the statistics as an object, in order.
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

// ofRows are the members of a row that are objects but not statistics.
var ofRows = []string{"decisions", "lateness_ns", "withheld", "burst_rate_bps", "model"}

// UnmarshalJSON reads the members of a row that are statistics. Only the names of their metrics are known then; see
// Row.Declare.
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

// plainRow is a Row for encoding/json, without its methods.
type plainRow Row

// MarshalJSON writes the statistics as members of the row.
func (r Row) MarshalJSON() ([]byte, error) { return metric.Inline(plainRow(r)) }

// UnmarshalJSON reads a row with its statistics.
func (r *Row) UnmarshalJSON(raw []byte) error {
	var plain plainRow
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err
	}
	*r = Row(plain)
	return json.Unmarshal(raw, &r.Stats)
}

// Value returns a run's value for a metric, or a missing value if it has none.
func (r *Run) Value(m *metric.Metric) Float {
	switch {
	case m.Counter != "" && !m.Sparse && r.Counters.Index(m.Counter) < 0:
		return Missing()
	case m.IsCount():
		return Float(m.Count(r.Counters))
	}
	return r.Metrics.Of(m.Name)
}

// MetricsOf returns the metrics for a table of these runs: all declared ones with statistics, in declaration order,
// except sparse ones without a value in any run.
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

// MetricsIn returns the metrics with a statistic in any row, in the rows' order.
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

// union merges lists of metrics, each name once. A metric that only a later list has keeps its position there.
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

// Declare sets the declaration of a run that was read from a document to the rows of d for its names.
func (r *Run) Declare(d *metric.Declaration) {
	r.Counters, r.Metrics = r.Counters.Under(d.Ledger), r.Metrics.Under(d)
	r.Declared = d.Among(r.Counters, r.Metrics)
}

// Declare sets the metrics of a row that was read from a document to the rows of d for its statistics.
func (r *Row) Declare(d *metric.Declaration) {
	for k := range r.Stats {
		if m := d.Metric(r.Stats[k].Name); m != nil {
			r.Stats[k].Metric = m
		}
	}
}
