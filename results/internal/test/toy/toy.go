// Package toy declares a merging queue for tests of package results. It has fewer counters than any real queue. The
// tests use it because package results depends only on declarations of queues.
package toy

import (
	"encoding/json"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/metric"
)

var flow = &olaf.Ledger{
	Counters: []olaf.Counter{
		{Name: "in", Title: "Reached the queue", Unit: "updates", Aside: true},
		{Name: "appended", Title: "Appended", Unit: "updates", Aside: true},
		{Name: "aggregated", Title: "Aggregated", Unit: "updates", Column: "AGGREGATED"},
		{Name: "turned_away", Title: "Turned away", Unit: "updates", Column: "AWAY"},
		{Name: "delivered", Title: "Delivered", Unit: "frames", Aside: true},
		{Name: "queued", Title: "Queued", Unit: "frames", Aside: true},
	},
	Identities: []olaf.Identity{
		{Left: []string{"in"}, Right: []string{"appended", "aggregated", "turned_away"}},
		{Left: []string{"appended"}, Right: []string{"delivered", "queued"}},
	},
	Output: []string{"delivered"}, Merged: []string{"aggregated"}, Parts: []string{"turned_away", "queued"}, Inside: []string{"queued"},
}

var sums = &olaf.Ledger{
	Counters: []olaf.Counter{
		{Name: "count_delivered", Title: "Updates delivered", Unit: "updates", Aside: true},
		{Name: "count_queued", Title: "Updates queued", Unit: "updates", Aside: true},
	},
	Identities: []olaf.Identity{{Left: []string{"count_delivered", "count_queued"}, Right: []string{"appended", "aggregated"}}},
}

// Declared is the declaration of a run with the toy queue.
var Declared = metric.OfQueue(flow, sums)

// Summing is the declaration of a run with a summing switch program before the toy queue.
var Summing = metric.OfProgram("summing", &olaf.Ledger{
	Counters: []olaf.Counter{{Name: "added", Title: "Added", Unit: "updates"},
		{Name: "vectors_out", Title: "Left", Unit: "updates"}}, Output: []string{"added"},
}, 1, flow, sums)

// Declarations returns the toy queue's declaration for any system name.
func Declarations(system string) *metric.Declaration {
	if system != "" {
		return nil
	}
	return Declared
}

// Counts returns the toy queue's counters with the given values, by name. All other counters are 0.
func Counts(values map[string]int64) olaf.Counts {
	c := olaf.NewCounts(Declared.Ledger)
	for name, v := range values {
		c.Add(name, v)
	}
	return c
}

// Values returns the toy queue's measured metrics with the given values, by name. All other metrics are missing.
func Values(values map[string]metric.Float) metric.Values {
	v, _ := Declared.Measure(&metric.Measured{AgeBelow: func(float64) metric.Float { return metric.Missing() }})
	for m := range v.All {
		if _, given := values[m.Name]; !given {
			values[m.Name] = metric.Missing()
		}
	}
	raw, err := json.Marshal(values)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		panic(err)
	}
	return v.Under(Declared)
}
