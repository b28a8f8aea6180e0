package results

// Withhold removes everything derived from ages, because the clocks were not good enough, and stores the reason for
// each metric. Counts and arrival times stay.
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
