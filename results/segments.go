package results

import "github.com/olafctl/olaf"

// Vector is what somebody has of an update that comes in segments. The zero value has nothing.
type Vector struct {
	newest  []int64 // generation in ps by segment, of those that came
	there   []bool
	missing int
	oldest  int64 // the least of newest, once none is missing, and
	behind  int   // how many segments are that old
}

// Put takes a segment that was generated at gen, in ps. It says how old the whole is, if that became whole or younger by it.
func (v *Vector) Put(segments, segment int, gen int64) (oldest int64, younger bool) {
	if v.newest == nil {
		v.newest, v.there, v.missing = make([]int64, segments), make([]bool, segments), segments
	}
	before := v.newest[segment]
	switch {
	case !v.there[segment]:
		v.there[segment], v.newest[segment] = true, gen
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
	v.look()
	return v.oldest, true
}

// look finds the oldest segments. A vector becomes younger when all of them were replaced, so that this is rare.
func (v *Vector) look() {
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

// ageSegments moves the sawtooths of the cluster and of the workers inside where a segment makes their vector whole or younger.
func (c *Collector) ageSegments(o *olaf.Observation, place place, at, gen int64) {
	from, n := int64(c.cfg.Window.From), c.cfg.Segments
	u := c.cluster(place.cluster)
	if oldest, younger := u.vector.Put(n, int(o.Update.Seq)%n, gen); younger {
		c.ageCluster(u, from, at, oldest)
	}
	one := [1]olaf.Contributor{{GenNS: o.Update.GenNS, Seq: o.Update.Seq, Worker: o.Update.Worker}}
	inside := o.Contributors
	if inside == nil { // of a merged frame this is not all; no metric of workers comes out of such a run
		inside = one[:]
	}
	for i := range inside {
		k := &inside[i]
		w := place.worker(k.Worker)
		if oldest, younger := c.worker(w).vector.Put(n, int(k.Seq)%n, generated(o.At, k.GenNS)); younger {
			c.ageWorker(w, place.cluster, from, at, oldest)
		}
	}
}

// came notes that a segment of a worker's update was delivered.
func (c *Collector) came(worker int, seq uint32) {
	w, update := c.worker(worker), int(seq)/c.cfg.Segments
	if have := len(w.parts); update >= have {
		w.parts = grown(w.parts, update+1-have)
	}
	w.parts[update]++
}

// torn is how many updates arrived in part; missing where an update is one frame, or nobody knows who was inside.
func (c *Collector) torn() Float {
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
