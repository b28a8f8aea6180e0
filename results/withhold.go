package results

// Withhold takes everything out of the run that is made of ages, because of clocks that were not good enough for it, and
// gives each the reason why. What was counted, and when updates arrived, stays.
func (r *Run) Withhold(why string) {
	r.Withheld = why
	if r.Missing == nil {
		r.Missing = map[string]string{}
	}
	r.Metrics.Withhold(func(name string) { r.Missing[name] = why })
	for i := range r.Clusters {
		c := &r.Clusters[i]
		c.AoM, c.PeakAoM, c.AoMWorker = Missing(), Missing(), Missing()
	}
}
