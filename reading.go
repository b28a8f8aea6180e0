package olaf

// Reading is what an Age of Model belongs to (docs/reference/metrics.md): a cluster's is reset by a delivery of any of its workers,
// a worker's by its own alone, whose mean over a cluster stands for the cluster. Like is compared with like.
type Reading uint8

// All readings.
const (
	PerCluster Reading = iota
	PerWorker
	Readings = 2
)

// String is the reading in words.
func (r Reading) String() string {
	if r == PerWorker {
		return "per worker"
	}
	return "per cluster"
}
