package olaf

import (
	"cmp"
	"slices"
)

// Decisions is the result of comparing a queue's decision log with the decisions of the engine, for devices that have
// such a log. The comparison passes if Void is empty and all checked decisions are equal.
type Decisions struct {
	Checked int64 `json:"checked"`
	Equal   int64 `json:"equal"`
	// First describes the first difference. Void is the reason why nothing was compared, such as a full log.
	First string `json:"first,omitempty"`
	Void  string `json:"void,omitempty"`
}

// Differ reports whether any checked decision differs from the engine's. It returns false if nothing was compared.
func (d *Decisions) Differ() bool { return d.Void == "" && d.Equal != d.Checked }

// Add adds the numbers of o to d. It keeps the earliest difference and the earliest reason for not comparing.
func (d *Decisions) Add(o *Decisions) {
	d.Checked += o.Checked
	d.Equal += o.Equal
	d.First = cmp.Or(d.First, o.First)
	d.Void = cmp.Or(d.Void, o.Void)
}

// Quantiles contains quantiles of a set of times, in nanoseconds.
type Quantiles struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// QuantilesOf sorts times and returns their quantiles. For n times, the quantile p is the value at index p·n. All
// quantiles are 0 if there are no times.
func QuantilesOf[T ~int64](times []T) Quantiles {
	if len(times) == 0 {
		return Quantiles{}
	}
	slices.Sort(times)
	at := func(share float64) int64 { return int64(times[min(int(share*float64(len(times))), len(times)-1)]) }
	return Quantiles{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// Worst sets each quantile of q to the maximum of the quantile in q and in o.
func (q *Quantiles) Worst(o *Quantiles) {
	q.P50, q.P99, q.Max = max(q.P50, o.P50), max(q.P99, o.P99), max(q.Max, o.Max)
}
