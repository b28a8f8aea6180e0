package results

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/internal/test/toy"
)

// TestAgeBuckets checks that every age is in its bucket, that buckets are adjacent, and that no bucket is wider than
// the given share of its ages.
func TestAgeBuckets(t *testing.T) {
	end := int64(0)
	for i := range ageBuckets {
		low, width := ageBounds(i)
		if low != end || width < 1 {
			t.Fatalf("bucket %d begins at %d, the one before it ends at %d", i, low, end)
		}
		if width > 1 && width > low/(1<<perOctaveBits) {
			t.Errorf("bucket %d from %d is %d wide", i, low, width)
		}
		if end = low + width; end < low { // beyond 63 bits
			break
		}
		for _, ps := range []int64{low, low + width/2, end - 1} {
			if got := ageBucket(ps); got != i {
				t.Fatalf("%d ps are in bucket %d, want %d", ps, got, i)
			}
		}
	}
	if got := ageBucket(math.MaxInt64); got >= ageBuckets {
		t.Errorf("the longest age is in bucket %d of %d", got, ageBuckets)
	}
	rapid.Check(t, func(t *rapid.T) {
		ps := rapid.Int64Range(0, math.MaxInt64).Draw(t, "ps")
		if low, width := ageBounds(ageBucket(ps)); ps < low || ps-low >= width {
			t.Fatalf("%d ps are in a bucket from %d on, %d wide", ps, low, width)
		}
	})
}

// TestVectorAgeIsOldestSegments compares the age of a vector of segments with the minimum over what arrived for each
// segment.
func TestVectorAgeIsOldestSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.IntRange(1, 4).Draw(t, "segments")
		var v Vector
		newest := map[int]int64{}
		whole, age := false, int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "puts") {
			segment, gen := rapid.IntRange(0, segments-1).Draw(t, "segment"), rapid.Int64Range(-3, 6).Draw(t, "generated")
			if old, there := newest[segment]; !there || gen > old {
				newest[segment] = gen
			}
			least := int64(math.MaxInt64)
			for _, g := range newest {
				least = min(least, g)
			}
			want := len(newest) == segments && (!whole || least > age)
			oldest, younger := v.Put(segments, segment, gen)
			if younger != want || oldest != map[bool]int64{true: least}[want] {
				t.Fatalf("segment %d of %d at %d: %d, younger %t; want %d, %t", segment, segments, gen, oldest, younger,
					least, want)
			}
			if want {
				whole, age = true, least
			}
		}
	})
}

// TestPlacesOfJobs compares the places of frames with a list of all workers of all jobs.
func TestPlacesOfJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Clusters: 99, Workers: 99}
		type home struct{ index, first, workers int }
		homes := map[int]home{}
		next, workers := 0, 0
		for range rapid.IntRange(1, 3).Draw(t, "jobs") {
			next += rapid.IntRange(0, 2).Draw(t, "gap")
			j := Job{Cluster: olaf.ClusterID(next), Clusters: rapid.IntRange(1, 3).Draw(t, "clusters"),
				Workers: rapid.IntRange(1, 3).Draw(t, "workers")}
			cfg.Jobs = append(cfg.Jobs, j)
			for range j.Clusters {
				homes[next] = home{len(homes), workers, j.Workers}
				next, workers = next+1, workers+j.Workers
			}
		}
		var p places
		p.assign(&Config{Jobs: []Job{{Cluster: 50, Clusters: 9, Workers: 9}}}) // replaced by the next assignment
		p.assign(&cfg)
		if cfg.Clusters != len(homes) || cfg.Workers != workers {
			t.Fatalf("%d clusters of %d workers, want %d of %d", cfg.Clusters, cfg.Workers, len(homes), workers)
		}
		for id := range next + 3 {
			h, known := homes[id]
			for worker := range 4 {
				for inside := range 4 {
					o := olaf.Observation{Update: olaf.Update{Cluster: olaf.ClusterID(id), Worker: olaf.WorkerID(worker)},
						Contributors: []olaf.Contributor{{Worker: olaf.WorkerID(inside)}}}
					at, ok := p.placeOf(&o)
					if want := known && worker < h.workers && inside < h.workers; ok != want || ok &&
						(at != place{h.index, h.first} || at.worker(2) != h.first+2) {
						t.Fatalf("cluster %d, worker %d, inside %d: %+v, %t; want %+v, %t", id, worker, inside, at, ok, h, want)
					}
				}
			}
			if known && (p.id(h.index) != id || p.end(h.index) != h.first+h.workers) {
				t.Fatalf("cluster %d: id %d, ends at %d", id, p.id(h.index), p.end(h.index))
			}
		}
	})
	var none places
	cfg := Config{Clusters: 3, Workers: 9}
	none.assign(&cfg)
	at, ok := none.placeOf(&olaf.Observation{Update: olaf.Update{Cluster: 1000, Worker: 5}})
	if !ok || at != (place{cluster: 1000}) || none.id(7) != 7 || cfg.Clusters != 3 || cfg.Workers != 9 {
		t.Errorf("without jobs: %+v, %t, %+v", at, ok, cfg)
	}
}

// TestUnconfiguredWorkers delivers updates of workers and clusters that the configuration does not mention. It checks
// that their ages equal those of a collector that was configured for them from the start of its window.
func TestUnconfiguredWorkers(t *testing.T) {
	for _, initial := range []olaf.Duration{UnknownAge, 0, 5 * olaf.Microsecond} {
		window := Window{From: 1000, To: olaf.Time(olaf.Second), InitialAge: initial}
		told := NewCollector(Config{Declared: toy.Declared, Clusters: 4, Workers: 8, Window: window})
		untold := NewCollector(Config{Declared: toy.Declared, Window: window})
		for i, w := range []int{5, 1, 7, 5, 0, 2, 7, 3} {
			at := olaf.Time(i+2) * olaf.Time(olaf.Microsecond)
			o := olaf.Observation{At: at, Update: olaf.Update{GenNS: uint64(at.NS()) - 700,
				Cluster: olaf.ClusterID(w / 2), Worker: olaf.WorkerID(w), Count: 1}}
			told.Observe(&o)
			untold.Observe(&o)
		}
		for i := range untold.workers {
			if !reflect.DeepEqual(told.workers[i].saw, untold.workers[i].saw) {
				t.Errorf("initial age %v, worker %d: %+v, told %+v", initial, i, untold.workers[i].saw, told.workers[i].saw)
			}
		}
		for i := range untold.clusters {
			if !reflect.DeepEqual(told.clusters[i].saw, untold.clusters[i].saw) {
				t.Errorf("initial age %v, cluster %d: %+v, told %+v", initial, i, untold.clusters[i].saw, told.clusters[i].saw)
			}
		}
	}
}

// TestKnownStatistics checks that a statistic is known only with values and a mean.
func TestKnownStatistics(t *testing.T) {
	for _, c := range []struct {
		s    Statistic
		want bool
	}{{Statistic{}, false}, {Statistic{N: 1}, true}, {Statistic{N: 1, Mean: Missing()}, false},
		{Statistic{Mean: 5}, false}, {Statistic{N: 3, Mean: 5}, true}} {
		if got := c.s.Known(); got != c.want {
			t.Errorf("%+v is known: %t", c.s, got)
		}
	}
}
