package results

import (
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/internal/test/toy"
)

// TestStamps checks the ages of sums by the newest, the mean and the oldest contribution against sums computed by hand.
// They are missing if a frame does not list its contributors, or if they were not requested.
func TestStamps(t *testing.T) {
	measure := func(inside bool) Run {
		c := NewCollector(Config{Declared: toy.Summing, Clusters: 1, Workers: 2})
		for k := range uint64(3) { // delivered at 1, 2 and 3 µs; 100 ns old by one stamp, 300 ns by the other
			at := (k + 1) * 1000
			o := olaf.Observation{At: olaf.Time(at) * olaf.Time(olaf.Nanosecond), Update: olaf.Update{GenNS: at - 100,
				Count: 2, Worker: 1, Seq: uint32(k)}}
			if inside {
				o.Contributors = []olaf.Contributor{{GenNS: at - 300, Seq: uint32(k)}, {GenNS: at - 100, Seq: uint32(k), Worker: 1}}
			}
			c.Observe(&o)
		}
		return c.Finish(olaf.NewCounts(toy.Summing.Ledger))
	}
	r := measure(true)
	// Growth of 500 on average, plus the age after each delivery.
	for name, want := range map[string]Float{"aom_cluster_ns": 600, "aom_mean_ns": 700, "aom_oldest_ns": 800} {
		if got := r.Metrics.Of(name); got != want {
			t.Errorf("%s is %v, not %v", name, got, want)
		}
	}
	for _, name := range []string{"aom_mean_ns", "aom_oldest_ns"} {
		if r := measure(false); r.Metrics.Of(name).Known() || !strings.HasPrefix(r.Missing[name], "not observable") {
			t.Errorf("%s of a capture: %v, %q", name, r.Metrics.Of(name), r.Missing[name])
		}
		if toy.Declared.Metric(name) != nil {
			t.Errorf("a queue declares %s", name)
		}
	}
}
