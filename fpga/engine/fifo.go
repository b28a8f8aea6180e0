package engine

import "github.com/olafctl/olaf"

// fifo appends while there is room and drops what comes after: the baseline of the paper (§8). Of each cluster it
// remembers how many updates are inside.
type fifo struct {
	store
	active int // clusters with an update inside
}

func newFIFO(cfg Config) Engine { return &fifo{store: newStore(cfg)} }

func (f *fifo) Offer(now olaf.Time, u *olaf.Update, lanes []int32) Class {
	return f.OfferMerged(now, u, lanes, nil)
}

func (f *fifo) OfferMerged(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) (class Class) {
	f.stats.Offered++
	c := &f.clusters[u.Cluster]
	if f.isLeaving(u) && *c == 1 {
		f.stats.LockedCollisions++
	}
	if f.append(now, u) >= 0 {
		f.active += isZero(*c)
		*c++
	} else {
		class = DroppedFull
	}
	f.stats.Class[class]++
	if f.carries {
		f.carry(class, u, lanes, inside)
	}
	return class
}

func (f *fifo) Lock(p Port) (Slot, bool) { return f.lock(p) }

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
