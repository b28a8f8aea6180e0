package results

import "math"

// workTolerance is how far the gradients in an update may differ between rows that count the same work: what a run's first and last
// updates add to a mean.
const workTolerance = 0.01

// SameWork reports whether one update of the weights is the same work in every row: as many gradients. Only then may numbers
// that count updates stand side by side, such as the time of an iteration. Rows that tell no time per gradient, as those of earlier
// builds, are alike only where all have the same name.
func SameWork(rows []Row) bool {
	first, name, known := Missing(), "", 0
	for i := range rows {
		iteration, gradient := rows[i].Stats.Of(iterationName).Mean, rows[i].Stats.Of(gradientName).Mean
		if !iteration.Known() {
			continue
		}
		known++
		work := iteration / gradient // not a number where a row tells no time per gradient
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

// The times of an update of the weights and of a gradient.
const (
	iterationName = "iteration_ns"
	gradientName  = "gradient_ns"
)
