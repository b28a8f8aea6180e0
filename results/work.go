package results

import "math"

// workTolerance is the largest difference in gradients per update between rows whose updates still count as the same
// work. It allows for the effect of a run's first and last updates on a mean.
const workTolerance = 0.01

// SameWork reports whether an update of the weights has the same number of gradients in all rows. Only then can numbers
// per update, such as the duration of an iteration, be compared. Rows without a time per gradient, for example from
// earlier builds, are the same work only if all have the same name.
func SameWork(rows []Row) bool {
	first, name, known := Missing(), "", 0
	for i := range rows {
		iteration, gradient := rows[i].Stats.Of(iterationName).Mean, rows[i].Stats.Of(gradientName).Mean
		if !iteration.Known() {
			continue
		}
		known++
		work := iteration / gradient // NaN if a row has no time per gradient
		switch {
		case known == 1:
			first, name = work, rows[i].Queue
		case !first.Known() || !work.Known():
			if rows[i].Queue != name {
				return false
			}
		case math.Abs(float64(work/first)-1) > workTolerance:
			return false
		}
	}
	return true
}

// Metrics for the time of an update of the weights and of a gradient.
const (
	iterationName = "iteration_ns"
	gradientName  = "gradient_ns"
)

// CompareAges returns the comparisons of systems whose updates of the weights have the same number of gradients. The
// ages of other systems differ by definition. An update with one gradient is as old as this gradient, and is timed at
// the server that applies it. An update with several gradients is as old as the newest of them, and is timed at the
// last worker.
func (b *Bench) CompareAges() (fair []Comparison) {
	for i := range b.Comparisons {
		c := &b.Comparisons[i]
		var pair []Row
		for k := range b.Rows {
			if r := &b.Rows[k]; r.OutRateBPS == c.OutRateBPS && (r.Queue == c.Queue || r.Queue == c.Versus) {
				pair = append(pair, *r)
			}
		}
		if SameWork(pair) {
			fair = append(fair, *c)
		}
	}
	return fair
}
