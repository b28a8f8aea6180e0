package olaf

import "slices"

// Decisions is how a log of what a queue decided compares with the engine: an accounting identity of devices that keep one. It
// holds where Void is empty and all that was checked is equal.
type Decisions struct {
	Checked int64 `json:"checked"`
	Equal   int64 `json:"equal"`
	// First is what the first one differs in; Void why nothing can be said, such as entries for which the log had no room.
	First string `json:"first,omitempty"`
	Void  string `json:"void,omitempty"`
}

// Differ says whether something that could be checked is not equal.
func (d *Decisions) Differ() bool { return d.Void == "" && d.Equal != d.Checked }

// Add sums up, with the first difference and the first reason.
func (d *Decisions) Add(o *Decisions) {
	d.Checked += o.Checked
	d.Equal += o.Equal
	if d.First == "" {
		d.First = o.First
	}
	if d.Void == "" {
		d.Void = o.Void
	}
}

// Quantiles are of times, in ns.
type Quantiles struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// QuantilesOf sorts times and takes theirs: of n the value in place share·n, from 0. They are 0 where there are none.
func QuantilesOf[T ~int64](times []T) Quantiles {
	if len(times) == 0 {
		return Quantiles{}
	}
	slices.Sort(times)
	at := func(share float64) int64 { return int64(times[min(int(share*float64(len(times))), len(times)-1)]) }
	return Quantiles{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// Worst takes the greater of each.
func (q *Quantiles) Worst(o *Quantiles) {
	q.P50, q.P99, q.Max = max(q.P50, o.P50), max(q.P99, o.P99), max(q.Max, o.Max)
}
