package results

// Withhold removes all values derived from ages, because the clocks were not accurate enough, and stores why as the
// reason for each metric. Counts and arrival times are kept.
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
