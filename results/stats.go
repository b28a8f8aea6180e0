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

// Stats are a row's statistics by name, in the order in which their metrics are declared. Times are ns, rates and shares
// are as the names say; docs/reference/metrics.md defines each.
type Stats []Stat

// Of is the statistic of a metric, with no mean where there is none of that name.
func (s Stats) Of(name string) *Statistic {
	for i := range s {
		if s[i].Name == name {
			return &s[i].Statistic
		}
	}
	none := Describe(nil, "not measured")
	return &none
}

// MarshalJSON writes an object of the statistics in their order.
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

// ofRows are the members of a row that are objects and no statistics.
var ofRows = []string{"decisions", "lateness_ns", "withheld", "burst_rate_bps"}

// UnmarshalJSON reads those members of an object that are objects themselves: the statistics of a whole row. Names are all
// that is known of their metrics; see Row.Declare.
func (s *Stats) UnmarshalJSON(raw []byte) error {
	*s = nil
	return metric.Members(raw, func(name string, value json.RawMessage) error {
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

// plainRow is a Row as encoding/json sees it.
type plainRow Row

// MarshalJSON writes the statistics among the row's own members.
func (r Row) MarshalJSON() ([]byte, error) { return metric.Inline(plainRow(r)) }

// UnmarshalJSON reads a row and whatever statistics it has.
func (r *Row) UnmarshalJSON(raw []byte) error {
	var plain plainRow
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err
	}
	*r = Row(plain)
	return json.Unmarshal(raw, &r.Stats)
}

// Value is what a run has of a metric, missing where it has nothing.
func (r *Run) Value(m *metric.Metric) Float {
	switch {
	case m.Counter != "" && !m.Sparse && r.Counters.Index(m.Counter) < 0:
		return Missing()
	case m.Counted():
		return Float(m.Count(r.Counters))
	}
	return r.Metrics.Of(m.Name)
}

// MetricsOf lists the metrics of which a table of these runs shows anything: all that any of them declares and of which
// there is a statistic, in the order of their declarations, but for sparse ones of which no run has anything.
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
		return m.Aside || m.Sparse && !slices.ContainsFunc(runs, func(r Run) bool { v := r.Value(m); return v.Known() && v != 0 })
	})
}

// MetricsIn lists the metrics of which any row has a statistic, in the order of the rows' own.
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

// union lists the metrics of several lists, each name once: what only a later list has stands where that list has it.
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

// Declare gives a run that was read the rows of d for the names that it has.
func (r *Run) Declare(d *metric.Declaration) {
	r.Counters, r.Metrics = r.Counters.Under(d.Ledger), r.Metrics.Under(d)
	r.Declared = d.Among(r.Counters, r.Metrics)
}

// Declare gives a row that was read the rows of d for the names of its statistics.
func (r *Row) Declare(d *metric.Declaration) {
	for k := range r.Stats {
		if m := d.Metric(r.Stats[k].Name); m != nil {
			r.Stats[k].Metric = m
		}
	}
}
