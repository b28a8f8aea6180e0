package results

// Withhold removes all values derived from ages, because the clocks were not accurate enough, and stores why as the
// reason for each metric. Counts and arrival times are kept.
func (r *Run) Withhold(why string) {
	r.withhold(why, r.Metrics.Withhold)
}

// aboveOnly is the reason to withhold the ages of a run that was measured above the fastest path.
const aboveOnly = "ages are known above the fastest path only (clock.by probe): see " + AbovePath

// AbovePath is the name of a metric that only runs with ages above the fastest path have.
const AbovePath = "aom_cluster_above_path_ns"

// KeepAbovePath renames the ages of a run from which the delay of the fastest path is missing, and withholds those
// without another name. The caller has computed the ages under their ordinary names.
func (r *Run) KeepAbovePath() {
	r.withhold(aboveOnly, func(removed func(string)) { r.Metrics = r.Metrics.AbovePath(r.Declared, removed) })
	if r.Model != nil {
		r.Model.AoM = Missing()
	}
}

// withhold removes the ages from a run. remove removes metrics and calls its argument with their names.
func (r *Run) withhold(why string, remove func(removed func(name string))) {
	r.Withheld = why
	if r.Missing == nil {
		r.Missing = map[string]string{}
	}
	remove(func(name string) { r.Missing[name] = why })
	for i := range r.Clusters {
		c := &r.Clusters[i]
		c.AoM, c.PeakAoM, c.AoMWorker = Missing(), Missing(), Missing()
	}
}
