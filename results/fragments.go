package results

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/results/metric"
)

// Split describes how updates are split into frames, for queues that treat each frame as a whole update. Fragment f of
// an update from cluster c is sent in cluster c · Frames + f, and its worker is numbered within that cluster. With the
// zero Split, updates are not split.
type Split struct {
	Frames  int `json:"frames"`  // frames in an update; 0 or 1 for whole updates
	Workers int `json:"workers"` // workers in a cluster
}

// ModelMetric describes the models that a queue delivered when updates were split into frames. All other numbers of a
// run are per frame.
type ModelMetric struct {
	Frames  int   `json:"frames"`
	Updates int64 `json:"updates"`  // updates of which at least one frame was delivered
	Torn    Float `json:"torn_pct"` // share of these updates with lost frames, or with frames from different mixtures of updates
	AoM     Float `json:"aom_ns"`   // mean over the models of the age of the model's oldest fragment
}

// ModelRow contains statistics of ModelMetric over several runs.
type ModelRow struct {
	Frames int       `json:"frames"`
	Torn   Statistic `json:"torn_pct"`
	AoM    Statistic `json:"aom_ns"`
}

// fragments computes a ModelMetric from delivered frames.
type fragments struct {
	split   Split
	models  []clusterState
	partial map[split]*mixture // updates whose frames have not all arrived
	updates int64
	torn    int64
}

// split identifies an update by its model, the number of its worker in the model, and its sequence number.
type split struct {
	model, worker int32
	seq           uint32
}

// mixture describes the contents of those frames of an update that have arrived.
type mixture struct {
	frames  int
	inside  uint64 // sum of hashes of the contributors to the first frame
	differs bool
}

func newFragments(s Split) *fragments {
	if s.Frames < 2 {
		return nil
	}
	return &fragments{split: s, partial: map[split]*mixture{}}
}

// observe adds a delivered frame.
func (g *fragments) observe(o *olaf.Observation, from, at int64) {
	model, fragment := int(o.Update.Cluster)/g.split.Frames, int(o.Update.Cluster)%g.split.Frames
	if model >= len(g.models) {
		g.models = grow(g.models, model+1-len(g.models))
	}
	u := &g.models[model]
	if oldest, younger := u.vector.Put(g.split.Frames, fragment, unwrapGeneration(o.At, o.Update.GenNS)); younger {
		u.saw.advance(from, at)
		u.saw.deliver(from, at, oldest)
	}
	one := [1]olaf.Contributor{{GenNS: o.Update.GenNS, Seq: o.Update.Seq, Worker: o.Update.Worker}}
	all := o.Contributors
	if all == nil {
		all = one[:]
	}
	inside := uint64(0)
	for i := range all {
		k := g.identify(model, &all[i])
		inside += splitmix.MixBits(uint64(k.worker)<<32 | uint64(k.seq))
	}
	for i := range all {
		g.count(g.identify(model, &all[i]), inside)
	}
}

func (g *fragments) identify(model int, k *olaf.Contributor) split {
	return split{int32(model), int32(int(k.Worker) % g.split.Workers), k.Seq}
}

// count counts a frame that contains a fragment of update k. inside is a hash of all updates in the frame.
func (g *fragments) count(k split, inside uint64) {
	m := g.partial[k]
	if m == nil {
		m = &mixture{inside: inside}
		g.partial[k] = m
		g.updates++
	}
	m.frames++
	m.differs = m.differs || m.inside != inside
	if m.frames == g.split.Frames {
		delete(g.partial, k)
		if m.differs {
			g.torn++
		}
	}
}

// finish returns the metric. nameless is true if the contributors of some frames are unknown.
func (g *fragments) finish(c *Collector, nameless bool) *ModelMetric {
	m := &ModelMetric{Frames: g.split.Frames, Updates: g.updates, Torn: Missing()}
	if !nameless && g.updates > 0 {
		m.Torn = Float(100 * float64(g.torn+int64(len(g.partial))) / float64(g.updates))
	}
	var ages metric.Series
	for i := range g.models {
		s := &g.models[i].saw
		if w := c.cfg.Window; !w.FirstToLast() {
			s.advance(int64(w.From), int64(w.To))
		}
		if c.counts(s) {
			ages.Add(s.meanNS())
		}
	}
	m.AoM = ages.Mean()
	return m
}

// modelRow returns statistics of the models over runs, or nil if updates were not split.
func modelRow(runs []*Run) *ModelRow {
	var torn, ages []Float
	row := &ModelRow{}
	for _, r := range runs {
		if r.Model != nil {
			row.Frames = r.Model.Frames
			torn, ages = append(torn, r.Model.Torn), append(ages, r.Model.AoM)
		}
	}
	if row.Frames == 0 {
		return nil
	}
	row.Torn, row.AoM = Describe(torn, "what is inside frames is not known"), Describe(ages, "too few deliveries")
	return row
}
