package slowmotion

import (
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends/backendstest"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
)

func okay(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCardIsWatched checks that a run on a card, or on a twin behind an agent, can be watched until every frame has
// arrived.
func TestCardIsWatched(t *testing.T) {
	spec := bench.DefaultSpec(system.All())
	spec.Runs, spec.Workload.UpdatesPerWorker = 2, 60
	plan, err := bench.NewPlan(spec)
	okay(t, err)
	r := backendstest.NewLab(t)
	r.Wire.Latency = time.Millisecond
	for _, o := range []Options{{Device: backendstest.CardAddress, Access: r.Access},
		{Device: backendstest.ServeTwin(t, testbed.ServeOptions{}), Access: backendstest.TestAccess()}} {
		l, err := OpenSession(t.Context(), plan, o)
		okay(t, err)
		for n := 0; !l.IsDone() && n < 1000; n++ {
			okay(t, l.Sample(t.Context()))
		}
		s, err := l.Snapshot()
		okay(t, err)
		q := &s.Queues[0]
		if !s.Sampled || s.State != Done || len(s.Queues) != 1 || q.Counters.Of("received") == 0 ||
			q.Counters.Of("received") != q.Counters.Of("delivered") || q.Invalid != "" {
			t.Errorf("%s: done %v, %+v, %q", o.Device, l.IsDone(), q.Counters, q.Invalid)
		}
		if shown := o.Device != backendstest.CardAddress; q.MeanAoM[olaf.PerCluster].Known() != shown ||
			q.Clusters[0].Peak.Known() != shown {
			t.Errorf("%s: AoM %v; of a card no ages are shown", o.Device, q.MeanAoM)
		}
		okay(t, l.Close())
	}
}
