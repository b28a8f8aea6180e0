package metric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Values contains the measured metrics of one run by name, in the order of their declaration. A copy shares the values
// with its original.
type Values struct {
	metrics []*Metric
	values  []Float
}

// Of returns the value of the metric with the given name, or a missing value if there is no such metric.
func (v Values) Of(name string) Float {
	if i := v.index(name); i >= 0 {
		return v.values[i]
	}
	return Missing()
}

// Has reports whether there is a metric with the given name, even if its value is missing.
func (v Values) Has(name string) bool { return v.index(name) >= 0 }

func (v Values) index(name string) int {
	return slices.IndexFunc(v.metrics, func(m *Metric) bool { return m.Name == name })
}

// All calls yield with every metric and its value, in order.
func (v Values) All(yield func(*Metric, Float) bool) {
	for i, m := range v.metrics {
		if !yield(m, v.values[i]) {
			return
		}
	}
}

// Withhold removes the values that are derived from ages. It calls removed with the name of each removed value that was
// known.
func (v Values) Withhold(removed func(name string)) {
	for i, m := range v.metrics {
		if m.Age && v.values[i].Known() {
			v.values[i] = Missing()
			removed(m.Name)
		}
	}
}

// AbovePath returns the values with ages above the fastest path instead of ages, in the order of d. The values must
// contain the latter under the ordinary names. It calls removed with the name of each removed value that was known.
func (v Values) AbovePath(d *Declaration, removed func(name string)) (above Values) {
	for _, m := range d.Metrics {
		value, there := v.Of(m.Name), v.Has(m.Name)
		if m.AbovePathOf != "" {
			value = v.Of(m.AbovePathOf)
			there = value.Known()
		}
		if there {
			above.metrics, above.values = append(above.metrics, m), append(above.values, value)
		}
	}
	for i, m := range above.metrics {
		if m.Age && m.AbovePathOf == "" && above.values[i].Known() {
			above.values[i] = Missing()
			removed(m.Name)
		}
	}
	return above
}

// Under returns values that were read from a document, with the metrics that d declares. Metrics that d does not
// declare keep only their name.
func (v Values) Under(d *Declaration) Values {
	out := Values{make([]*Metric, len(v.metrics)), v.values}
	for i, m := range v.metrics {
		if out.metrics[i] = d.Metric(m.Name); out.metrics[i] == nil {
			out.metrics[i] = m
		}
	}
	return out
}

// MarshalJSON encodes the values as a JSON object, in order.
func (v Values) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range v.metrics {
		if i > 0 {
			b.WriteByte(',')
		}
		name, errName := json.Marshal(m.Name)
		value, errValue := json.Marshal(v.values[i])
		if err := errors.Join(errName, errValue); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s:%s", name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads a JSON object of numbers. The metrics have only their names; use Under to apply a declaration.
func (v *Values) UnmarshalJSON(raw []byte) error {
	*v = Values{}
	return EachMember(raw, func(name string, value json.RawMessage) error {
		var f Float
		if err := json.Unmarshal(value, &f); err != nil {
			return fmt.Errorf("metric %s: %w", name, err)
		}
		v.metrics, v.values = append(v.metrics, &Metric{Name: name}), append(v.values, f)
		return nil
	})
}
