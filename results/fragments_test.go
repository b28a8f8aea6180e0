package results

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/internal/test/toy"
)

// fragmentOf returns a delivery of fragment f of updates (worker, seq, generation) of model 0, with two frames and
// two workers.
func fragmentOf(atNS int64, f int, inside ...[3]int) olaf.Observation {
	o := olaf.Observation{At: olaf.Time(atNS) * olaf.Time(olaf.Nanosecond), Queued: -1}
	o.Update.Cluster, o.Update.Count = olaf.ClusterID(f), uint16(len(inside))
	for _, k := range inside {
		o.Contributors = append(o.Contributors, olaf.Contributor{Worker: olaf.WorkerID(2*f + k[0]), Seq: uint32(k[1]),
			GenNS: uint64(k[2])})
		o.Update.Worker, o.Update.Seq = olaf.WorkerID(2*f+k[0]), uint32(k[1])
		o.Update.GenNS = max(o.Update.GenNS, uint64(k[2]))
	}
	return o
}

// TestTornModels checks which updates are torn, and that a model is as old as its oldest fragment.
func TestTornModels(t *testing.T) {
	c := NewCollector(Config{Declared: toy.Declared, Clusters: 2, Workers: 4, Split: Split{Frames: 2, Workers: 2}})
	for _, o := range []olaf.Observation{
		fragmentOf(100, 0, [3]int{0, 1, 10}), fragmentOf(110, 1, [3]int{0, 1, 10}), // a whole model, generated at 10, from 110 on
		fragmentOf(120, 0, [3]int{0, 2, 20}, [3]int{1, 1, 20}), fragmentOf(130, 1, [3]int{0, 2, 20}),
		fragmentOf(140, 1, [3]int{1, 1, 20}), // both torn: one alone in fragment 1, the other generated at 20, from 130 on
		fragmentOf(150, 0, [3]int{0, 3, 30}), // the other fragment is lost
		fragmentOf(160, 0, [3]int{1, 2, 40}, [3]int{0, 4, 40}), fragmentOf(170, 1, [3]int{0, 4, 40}, [3]int{1, 2, 40}),
	} {
		c.Observe(&o)
	}
	// The age is (100 to 120) over 20 ns, (110 to 150) over 40 ns.
	m := c.Finish(toy.Counts(nil)).Model
	if m == nil || m.Frames != 2 || m.Updates != 6 || m.Torn != 50 || m.AoM != (110*20+130*40)/60.0 {
		t.Errorf("got %+v, want 3 of 6 updates torn and a mean age of 123.3 ns", m)
	}
	row := modelRow([]*Run{{Model: m}, {Model: m}})
	if row.Frames != 2 || row.Torn.Mean != 50 || modelRow([]*Run{{}}) != nil {
		t.Errorf("over runs: %+v", row)
	}
}

// TestWholeUpdatesAreNotTorn checks that an update is not torn if every fragment is delivered with the same mixture, in
// any order of models.
func TestWholeUpdatesAreNotTorn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.IntRange(2, 5).Draw(t, "frames")
		c := NewCollector(Config{Declared: toy.Declared, Split: Split{Frames: frames, Workers: 3}})
		now, updates := int64(100), int64(0)
		for seq := range rapid.IntRange(1, 20).Draw(t, "rounds") {
			model, merged := rapid.IntRange(0, 3).Draw(t, "model"), rapid.IntRange(1, 3).Draw(t, "merged")
			updates += int64(merged)
			for f := range frames {
				now += 10
				o := olaf.Observation{At: olaf.Time(now) * olaf.Time(olaf.Nanosecond), Queued: -1}
				cluster := model*frames + f
				o.Update = olaf.Update{Cluster: olaf.ClusterID(cluster), Count: uint16(merged), GenNS: uint64(now - 50)}
				for w := range merged {
					o.Contributors = append(o.Contributors, olaf.Contributor{Worker: olaf.WorkerID(3*cluster + w),
						Seq: uint32(seq), GenNS: uint64(now - 50)})
				}
				c.Observe(&o)
			}
		}
		if m := c.Finish(toy.Counts(nil)).Model; m.Torn != 0 || m.Updates != updates {
			t.Errorf("%+v, want %d updates and none torn", m, updates)
		}
	})
}
