package metric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Values are the measured metrics of one run, by name, in declaration order. A copy shares the values with its
// original.
type Values struct {
	metrics []*Metric
	values  []Float
}

// Of returns a metric's value, missing if there is none with this name.
func (v Values) Of(name string) Float {
	if i := v.index(name); i >= 0 {
		return v.values[i]
	}
	return Missing()
}

// Has reports whether there is a metric with this name, known or missing.
func (v Values) Has(name string) bool { return v.index(name) >= 0 }

func (v Values) index(name string) int {
	for i, m := range v.metrics {
		if m.Name == name {
			return i
		}
	}
	return -1
}

// All calls yield for every metric and its value, in order.
func (v Values) All(yield func(*Metric, Float) bool) {
	for i, m := range v.metrics {
		if !yield(m, v.values[i]) {
			return
		}
	}
}

// Withhold removes the values derived from ages and calls told for each of them that was known.
func (v Values) Withhold(told func(name string)) {
	for i, m := range v.metrics {
		if m.Age && v.values[i].Known() {
			v.values[i] = Missing()
			told(m.Name)
		}
	}
}

// Under returns values read from a document, with d's metrics in place of bare names where d has them.
func (v Values) Under(d *Declaration) Values {
	out := Values{make([]*Metric, len(v.metrics)), v.values}
	for i, m := range v.metrics {
		if out.metrics[i] = d.Metric(m.Name); out.metrics[i] == nil {
			out.metrics[i] = m
		}
	}
	return out
}

// MarshalJSON writes the values as an object, in order.
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

// UnmarshalJSON reads an object of numbers. Only the names of the metrics are known then; see Under.
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
