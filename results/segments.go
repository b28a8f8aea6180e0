package results

import "github.com/olafctl/olaf"

// Vector tracks the generation times of an update that arrives in segments. The zero Vector has received no segment.
type Vector struct {
	newest  []int64 // generation times in ps of the segments received
	present []bool
	missing int
	oldest  int64 // minimum of newest, once no segment is missing
	behind  int   // number of segments with that age
}

// Put adds a segment that was generated at gen, in picoseconds. If the segment completes the vector or makes the
// complete vector younger, Put returns the generation time of the oldest segment and true.
func (v *Vector) Put(segments, segment int, gen int64) (oldest int64, younger bool) {
	if v.newest == nil {
		v.newest, v.present, v.missing = make([]int64, segments), make([]bool, segments), segments
	}
	before := v.newest[segment]
	switch {
	case !v.present[segment]:
		v.present[segment], v.newest[segment] = true, gen
		if v.missing--; v.missing > 0 {
			return 0, false
		}
	case gen <= before:
		return 0, false
	default:
		v.newest[segment] = gen
		if v.missing > 0 || before > v.oldest {
			return 0, false
		}
		if v.behind--; v.behind > 0 {
			return 0, false
		}
	}
	v.findOldest()
	return v.oldest, true
}

// findOldest finds the oldest generation time and the number of segments that have it. It is called rarely, because a
// vector becomes younger only when all of its oldest segments have been replaced.
func (v *Vector) findOldest() {
	v.oldest, v.behind = v.newest[0], 0
	for _, gen := range v.newest {
		switch {
		case gen < v.oldest:
			v.oldest, v.behind = gen, 1
		case gen == v.oldest:
			v.behind++
		}
	}
}

// ageSegments updates the ages of the cluster and of those workers whose vector is completed or made younger by a
// segment.
func (c *Collector) ageSegments(o *olaf.Observation, place place, at, gen int64) {
	from, n := int64(c.cfg.Window.From), c.cfg.Segments
	u := c.cluster(place.cluster)
	if oldest, younger := u.vector.Put(n, int(o.Update.Seq)%n, gen); younger {
		c.ageCluster(u, from, at, oldest)
	}
	one := [1]olaf.Contributor{{GenNS: o.Update.GenNS, Seq: o.Update.Seq, Worker: o.Update.Worker}}
	inside := o.Contributors
	if inside == nil { // this is incomplete for a merged frame, but a run with merged frames has no metrics of workers
		inside = one[:]
	}
	for i := range inside {
		k := &inside[i]
		w := place.worker(k.Worker)
		if oldest, younger := c.worker(w).vector.Put(n, int(k.Seq)%n, unwrapGeneration(o.At, k.GenNS)); younger {
			c.ageWorker(w, place.cluster, from, at, oldest)
		}
	}
}

// countPart counts one delivered segment of a worker's update.
func (c *Collector) countPart(worker int, seq uint32) {
	w, update := c.worker(worker), int(seq)/c.cfg.Segments
	if have := len(w.parts); update >= have {
		w.parts = grow(w.parts, update+1-have)
	}
	w.parts[update]++
}

// countTorn returns the number of updates of which only some segments arrived. It is missing if updates are single
// frames or if contributors are unknown.
func (c *Collector) countTorn() Float {
	if c.cfg.Segments < 2 || c.lackProvenance {
		return Missing()
	}
	n := 0
	for i := range c.workers {
		for _, parts := range c.workers[i].parts {
			if parts > 0 && int(parts) < c.cfg.Segments {
				n++
			}
		}
	}
	return Float(n)
}
