package olaf

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

// Lateness is how much later than they should have frames left, in ns, as percentiles.
type Lateness struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// Worst takes the greater of each percentile.
func (l *Lateness) Worst(o *Lateness) {
	l.P50, l.P99, l.Max = max(l.P50, o.P50), max(l.P99, o.P99), max(l.Max, o.Max)
}
