package engine

import "github.com/olafctl/olaf"

// fifo appends while there is room and drops what comes after: the baseline of the paper (§8).
type fifo struct{ store }

func newFIFO(cfg Config) Engine { return &fifo{newStore(cfg)} }

func (f *fifo) Offer(now olaf.Time, u *olaf.Update, lanes []int32) Class {
	return f.OfferMerged(now, u, lanes, nil)
}

func (f *fifo) OfferMerged(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Class {
	f.stats.Offered++
	c := &f.clusters[u.Cluster]
	if f.leaving >= 0 && c.inside == 1 && f.places[f.leaving].update.Cluster == u.Cluster {
		f.stats.LockedCollisions++
	}
	class := f.append(now, u, c)
	f.stats.Class[class]++
	if f.carries {
		f.carry(class, u, lanes, inside)
	}
	return class
}

func (f *fifo) Lock(p Port) (Slot, bool) { return f.lock(p) }
