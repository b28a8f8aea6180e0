package results

// Withhold takes everything out of the run that is made of ages, because of clocks that were not good enough for it, and
// gives each the reason why. What was counted, and when updates arrived, stays.
func (r *Run) Withhold(why string) {
	r.Withheld = why
	if r.Missing == nil {
		r.Missing = map[string]string{}
	}
	m := &r.Metrics
	for _, age := range []struct {
		name  string
		value *Float
	}{
		{"aom_cluster_ns", &m.AoMCluster}, {"aom_worker_ns", &m.AoMWorker}, {"peak_aom_ns", &m.PeakAoM},
		{"aom_p50_ns", &m.AoMP50}, {"aom_p95_ns", &m.AoMP95}, {"aom_p99_ns", &m.AoMP99},
		{"jain", &m.Jain}, {"jain_worker_means", &m.JainWorkerMeans}, {"jain_workers", &m.JainWorkers},
	} {
		if age.value.Known() {
			*age.value, r.Missing[age.name] = Missing(), why
		}
	}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		c.AoM, c.PeakAoM, c.AoMWorker = Missing(), Missing(), Missing()
	}
}
