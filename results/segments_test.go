package results

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/internal/test/toy"
)

// slowVectors returns the deliveries of complete vectors by cluster or worker: the newest generation time of each
// segment, and the times at which the oldest of these became younger.
func slowVectors(obs []olaf.Observation, segments int, workers bool) map[int][][2]int64 {
	out, have := map[int][][2]int64{}, map[int]map[int]int64{}
	oldest := map[int]int64{}
	for i := range obs {
		for id, parts := range byKey(obs[i:i+1], workers) {
			if have[id] == nil {
				have[id] = map[int]int64{}
			}
			segment := int(obs[i].Update.Seq) % segments
			if old, ok := have[id][segment]; !ok || parts[0][1] > old {
				have[id][segment] = parts[0][1]
			}
			if len(have[id]) < segments {
				continue
			}
			least := parts[0][1]
			for _, gen := range have[id] {
				least = min(least, gen)
			}
			if was, whole := oldest[id]; !whole || least > was {
				oldest[id] = least
				out[id] = append(out[id], [2]int64{int64(obs[i].At), least})
			}
		}
	}
	return out
}

// TestTornUpdates checks that no update is torn if updates consist of one frame, or if merged frames do not list their
// contributors.
func TestTornUpdates(t *testing.T) {
	for _, c := range []struct {
		segments int
		inside   bool
		want     Float
	}{{0, true, Missing()}, {1, true, Missing()}, {2, true, 1}, {3, true, 2}, {2, false, Missing()}} {
		collector := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 1, Segments: c.segments})
		for _, seq := range []uint32{0, 1, 3} { // with two segments, one is whole and one torn; with three, two are torn
			o := one(int64(10+seq), 1, 0, 0)
			if o.Update.Seq = seq; !c.inside {
				o.Update.Count, o.Contributors = 2, nil
			}
			collector.Observe(&o)
		}
		if got := collector.countTorn(); got != c.want && (got.Known() || c.want.Known()) {
			t.Errorf("of %d segments: %v are torn, want %v", c.segments, got, c.want)
		}
	}
}

// TestAgeOfTheOldestSegment checks that the age of a vector that arrives in segments is that of its oldest segment.
func TestAgeOfTheOldestSegment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const clusters, workers = 2, 3
		segments := rapid.IntRange(2, 4).Draw(t, "segments")
		obs := traffic(t, clusters, workers)
		for i := range obs {
			segment := uint32(rapid.IntRange(0, segments-1).Draw(t, "segment"))
			obs[i].Update.Seq = segment + uint32(segments*rapid.IntRange(0, 5).Draw(t, "vector"))
			for k := range obs[i].Contributors {
				obs[i].Contributors[k].Seq = segment + uint32(segments*k)
			}
			if len(obs[i].Contributors) == 1 && rapid.Bool().Draw(t, "alone") {
				obs[i].Contributors = nil
			}
		}
		c := NewCollector(Config{Clusters: clusters, Workers: workers, Segments: segments})
		for i := range obs {
			c.Observe(&obs[i])
		}
		run := c.Finish(olaf.Counts{})
		got := map[int]Float{}
		for _, m := range run.Clusters {
			got[m.Cluster] = m.AoM
		}
		for i := range obs { // add contributors like the collector
			if u := &obs[i].Update; obs[i].Contributors == nil {
				obs[i].Contributors = []olaf.Contributor{{GenNS: u.GenNS, Seq: u.Seq, Worker: u.Worker}}
			}
		}
		whole := slowVectors(obs, segments, false)
		compare(t, "cluster", Window{}, whole, clusters, func(id int) Float { return got[id] })
		for id := range clusters {
			if n := int64(len(whole[id])); run.Clusters[id].Deliveries != n {
				t.Fatalf("cluster %d had %d whole vectors, want %d", id, run.Clusters[id].Deliveries, n)
			}
		}
		compare(t, "worker", Window{}, slowVectors(obs, segments, true), workers, func(id int) Float {
			if !c.counts(&c.workers[id].saw) {
				return Missing()
			}
			return c.workers[id].saw.meanNS()
		})
	})
}

// TestTornVectors checks that vectors are torn if some of their segments arrived and others did not, in any order of
// segments.
func TestTornVectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const workers, updates = 3, 5
		segments := rapid.IntRange(2, 4).Draw(t, "segments")
		var came []olaf.Contributor
		torn := 0
		for w := range workers {
			for update := range updates {
				n := 0
				for segment := range segments {
					if rapid.Bool().Draw(t, "came") {
						n++
						came = append(came, olaf.Contributor{Worker: olaf.WorkerID(w), Seq: uint32(update*segments + segment)})
					}
				}
				if n > 0 && n < segments {
					torn++
				}
			}
		}
		c := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: workers, Segments: segments})
		for i, k := range rapid.Permutation(came).Draw(t, "order") {
			o := olaf.Observation{At: olaf.Time(i) * olaf.Time(olaf.Microsecond), Update: olaf.Update{Worker: k.Worker,
				Seq: k.Seq, Count: 1}}
			if rapid.Bool().Draw(t, "named") {
				o.Contributors = []olaf.Contributor{k}
			}
			c.Observe(&o)
		}
		if got := c.Finish(toy.Counts(nil)).Metrics.Of("vectors_torn"); got != Float(torn) {
			t.Fatalf("%v vectors are torn, want %d", got, torn)
		}
	})
	c := NewCollector(Config{Declared: toy.Declared, Clusters: 1, Workers: 1})
	c.Observe(&olaf.Observation{Update: olaf.Update{Count: 1}})
	if run := c.Finish(toy.Counts(nil)); run.Metrics.Of("vectors_torn").Known() {
		t.Error("updates of one frame can be torn")
	}
}
