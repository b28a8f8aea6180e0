package results

import (
	"testing"

	"github.com/olafctl/olaf"
	"pgregory.net/rapid"
)

// slowVectors are the deliveries of whole vectors: of every cluster, or worker, and each of its segments the newest generation, and
// when the oldest of them became younger.
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

// The age of a vector that comes in segments is that of the oldest of them.
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
		for i := range obs { // as the collector takes them
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
