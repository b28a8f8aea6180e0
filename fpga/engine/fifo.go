package engine

import "github.com/olafctl/olaf"

// fifo appends updates while there is room and drops later arrivals. It is the paper's baseline (§8). clusters counts
// the queued updates of each cluster.
type fifo struct {
	store
	active int // clusters with a queued update
}

func newFIFO(cfg Config) Discipline { return &fifo{store: newStore(cfg)} }

func (f *fifo) Offer(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Outcome {
	f.stats.Offered++
	c := &f.clusters[u.Cluster]
	if f.isLeaving(u) && *c == 1 {
		f.stats.LockedCollisions++
	}
	o := Outcome{Slot: f.appendUpdate(now, u), Class: Appended, Ready: true}
	if o.Slot == NoSlot {
		o.Class, o.Ready = DroppedFull, false
	} else {
		f.active += isZero(*c)
		*c++
	}
	f.stats.Class[o.Class]++
	if f.carries {
		f.moveLanes(o, u, lanes, inside)
	}
	return o
}

func (f *fifo) Lock() (Slot, olaf.Size, bool) { return f.lock() }

func (f *fifo) Release(slot Slot) {
	f.store.Release(slot)
	c := &f.clusters[f.places[slot].update.Cluster]
	*c--
	f.active -= isZero(*c)
}

func (f *fifo) Flush() {
	f.store.Flush()
	f.active = 0
}

func (f *fifo) Reset() {
	f.store.Reset()
	f.active = 0
}

func (f *fifo) ActiveClusters() int { return f.active }
