package cells

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results"
)

func TestParseNetworkSweep(t *testing.T) {
	s, err := ParseNetworkSweep("phase=0..100ms/4")
	if err != nil || len(s.Values) != 5 || s.Values[1] != 25*olaf.Millisecond || s.Values[4] != 100*olaf.Millisecond {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"phase": "there is no NAME=", "speed=0..1ms": `"speed" is not one of phase, jitter, period`,
		"phase=0..100": "has no unit", "phase=5ms..1ms": "5ms is more than 1ms", "phase=0..1ms/0": "steps is 1 to 1000",
		"phase=0..1ms/x": "steps",
	} {
		if _, err := ParseNetworkSweep(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestPhaseMap checks with a sweep over phases that drop-tail serves the workers that come first in the period and
// starves the rest.
func TestPhaseMap(t *testing.T) {
	topology := multihop(t)
	topology.Queue, topology.Duration = "fifo", 10*olaf.Second
	for i := range topology.Clusters {
		topology.Clusters[i].Jitter = 0
	}
	sweep, err := ParseNetworkSweep("phase=10ms..50ms/1")
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	points, err := RunNetworkSweep(t.Context(), topology, sweep, []uint64{1}, func() { done++ })
	if err != nil || len(points) != 2 || done != 2 {
		t.Fatalf("%d points, %d runs, %v", len(points), done, err)
	}
	first, last := points[0].Delivered[0], points[0].Delivered[4]
	if !(first > 5*last) {
		t.Errorf("of the first workers of a period %v arrives, of the last %v", first, last)
	}
	if points[0].Delivered[5].Known() || !points[1].Delivered[24].Known() {
		t.Error("bins beyond the phases in use must be missing, those within known")
	}
	if topology.Clusters[0].Phase.To != 54*olaf.Millisecond {
		t.Error("the sweep changed the topology it was given")
	}
	if _, err := RunNetworkSweep(t.Context(), topology, NetworkSweep{"period", []olaf.Duration{0}}, []uint64{1}, nil); !errors.Is(err, netsim.ErrTopology) {
		t.Errorf("a period of 0: %v", err)
	}
}

// TestSweepChecksValues checks that every value of a sweep is checked before anything runs.
func TestSweepChecksValues(t *testing.T) {
	topology := multihop(t)
	sweep := NetworkSweep{"jitter", []olaf.Duration{0, olaf.Second}}
	if err := sweep.Check(topology); !errors.Is(err, netsim.ErrTopology) || !strings.HasPrefix(err.Error(), "jitter = 1s: ") {
		t.Error(err)
	}
}

// TestPhaseBins checks that workers fall into the bin of their phase, including the last one, and that empty bins have
// no share.
func TestPhaseBins(t *testing.T) {
	run := &netsim.Result{Workers: []netsim.WorkerResult{
		{Share: 0, Sent: 4, Received: 1}, {Share: 0.0199, Sent: 4, Received: 2}, {Share: 0.02, Sent: 5, Received: 5},
		{Share: 0.999999, Sent: 2, Received: 1}, {Share: 1, Sent: 2}, {Share: 0.5},
	}}
	p := sweepPoint(5*olaf.Millisecond, []*netsim.Result{run, run})
	want := map[int]results.Float{0: 3.0 / 8, 1: 1, PhaseBins - 1: 1.0 / 4}
	for bin, share := range p.Delivered {
		if w, known := want[bin]; share.Known() != known || known && share != w {
			t.Errorf("bin %d: %v, want %v", bin, share, w)
		}
	}
	if len(p.Delivered) != PhaseBins || p.ValueNS != 5e6 || len(p.Stats) != len(netsim.SweepStatistics()) {
		t.Errorf("%+v", p)
	}
}

// TestSweepPoints checks the statistics of a sweep over two phases.
func TestSweepPoints(t *testing.T) {
	var b bytes.Buffer
	topology := multihop(t)
	topology.Duration, topology.Warmup = 3*olaf.Second, 300*olaf.Millisecond
	points, err := RunNetworkSweep(t.Context(), topology, NetworkSweep{"phase", []olaf.Duration{0, 50 * olaf.Millisecond}}, []uint64{1, 2},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		fmt.Fprintf(&b, "phase %v, %g ns, by phase %v\n", p.Value, p.ValueNS, p.Delivered)
		for _, s := range p.Stats {
			fmt.Fprintf(&b, "  %s %v SD %v CI95 %v, %v to %v of %d %s\n", s.Metric.Name, s.Mean, s.SD, s.CI95, s.Min, s.Max, s.N,
				s.Reason)
		}
	}
	golden.Equal(t, "sweep_points.golden", b.Bytes())
}

func multihop(t *testing.T) *netsim.Topology {
	t.Helper()
	topology, err := netsim.Preset(system.All(), "multihop", netsim.Scale{})
	must(t, err)
	return topology
}
