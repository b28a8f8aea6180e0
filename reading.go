package olaf

// Reading selects whose Age of Model is measured (docs/reference/metrics.md). A cluster's age is reset by a delivery
// from any of its workers; a worker's age by its deliveries only, and the mean over its workers is the cluster's value.
type Reading uint8

// All readings.
const (
	PerCluster Reading = iota
	PerWorker
	Readings = 2
)

// String returns the reading in words.
func (r Reading) String() string {
	if r == PerWorker {
		return "per worker"
	}
	return "per cluster"
}
