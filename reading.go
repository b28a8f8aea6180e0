package olaf

// Reading selects how Age of Model is measured (docs/reference/metrics.md). Per cluster, the age is reset by deliveries
// from all its workers. Per worker, each worker's age is reset only by its own deliveries, and the cluster's age is the
// mean over its workers.
type Reading uint8

// All readings.
const (
	PerCluster Reading = iota
	PerWorker
	Readings = 2
)

// String returns the reading in words, such as "per worker".
func (r Reading) String() string {
	if r == PerWorker {
		return "per worker"
	}
	return "per cluster"
}
