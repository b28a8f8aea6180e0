package engine

import "github.com/olafctl/olaf"

// Activity counts the clusters, or the workers in them, whose updates a port received in the current or the previous
// window. The count is the N of transmission control (paper §5).
type Activity struct {
	window    int64 // ps
	epoch     int64 // epoch of the counts
	last      []int64
	now, past uint32
}

// NewActivity returns the Activity of a port through which at most the given number of clusters send. The window is in
// ps.
func NewActivity(window int64, clusters int) Activity {
	return Activity{window: window, last: make([]int64, clusters)}
}

func (a *Activity) advance(at int64) {
	epoch := at/a.window + 2 // 0 and 1 mean never
	switch {
	case epoch == a.epoch:
		return
	case epoch == a.epoch+1:
		a.past, a.now = a.now, 0
	default:
		a.past, a.now = 0, 0
	}
	a.epoch = epoch
}

// Record records that an update from a cluster with the given weight arrived.
func (a *Activity) Record(at int64, cluster olaf.ClusterID, weight uint32) {
	a.advance(at)
	last := &a.last[cluster]
	switch *last {
	case a.epoch:
		return
	case a.epoch - 1:
		a.past -= weight
	}
	a.now += weight
	*last = a.epoch
}

// Count returns the total weight of the clusters that are active at an instant.
func (a *Activity) Count(at int64) uint32 {
	a.advance(at)
	return a.now + a.past
}
