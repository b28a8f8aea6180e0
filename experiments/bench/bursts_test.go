package bench

import (
	"math"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/results"
)

// TestBurstRate checks the rate inside bursts of either kind for arrivals that are 10 µs apart there, for any gaps, and
// that there is none without bursts.
func TestBurstRate(t *testing.T) {
	for _, c := range []struct {
		dist  string
		burst int
		want  results.Float
	}{{pktgen.Fixed, 27, 2048 / 10e-6}, {pktgen.Geometric, 9, 2048 / 10e-6}, {pktgen.Fixed, 1, 0}} {
		spec := usualSpec()
		w := spec.Workload
		w.UpdatesPerWorker, w.BurstPackets, w.BurstDist, w.MeanRate = 20, c.burst, c.dist, 8*olaf.Mbps
		schedule, err := pktgen.NewSchedule(w, 3)
		must(t, err)
		var arrivals []fpga.Arrival
		var d, last regmap.Descriptor
		at := olaf.Time(0)
		for schedule.Next(&d) {
			if d.Time-last.Time > 100 { // 400 ns
				at += olaf.Time(33 * olaf.Millisecond)
			} else {
				at += olaf.Time(10 * olaf.Microsecond)
			}
			arrivals = append(arrivals, fpga.Arrival{At: at, Update: olaf.Update{Lanes: uint16(w.Lanes())}})
			last = d
		}
		schedule.Reset(3)
		if got := burstRate(schedule, arrivals); math.Abs(float64(got-c.want)) > 1e-6*float64(c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestBurstStatement checks that the statement on bursts gives the measured rate of valid runs.
func TestBurstStatement(t *testing.T) {
	spec := usualSpec()
	o := &Outcome{Plan: &Plan{Spec: spec}, Runs: [][]results.Run{{{BurstRate: 120e6}, {BurstRate: 124.4e6}},
		{{BurstRate: 9e9, Invalid: []string{"x"}}}}}
	if s := o.burstStatement(); !strings.Contains(s, "planned at 100Gbps") || !strings.Contains(s, "go, 122Mbps inside bursts") {
		t.Error(s)
	}
	o.Runs = nil
	if s := o.burstStatement(); !strings.Contains(s, "testbed doctor") {
		t.Error(s)
	}
}
