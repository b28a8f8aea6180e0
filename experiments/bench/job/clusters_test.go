package job

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
)

// TestClusterResultsSpanAllRuns checks that the clusters' results are collected over all runs, and that stalled ones
// are reported.
func TestClusterResultsSpanAllRuns(t *testing.T) {
	for loss, want := range map[float64]results.Float{0: 0, 1: 10} {
		top, err := netsim.Preset(system.All(), "multihop", netsim.Scale{})
		if err != nil {
			t.Fatal(err)
		}
		top.Queue, top.Duration, top.Waiting = "fifo", 15*olaf.Second, &netsim.Waiting{System: "switchml", Packet: 1024, Loss: loss}
		runs, err := netsim.RunSeeds(context.Background(), top, []uint64{1, 2}, netsim.Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := OfClusters(top, runs)
		if err != nil {
			t.Fatal(err)
		}
		if n := c.Stats().Of("stalled_clusters"); n.Mean != want || n.N != 2 {
			t.Errorf("loss %g: %v clusters stood still in %d runs, want %v", loss, n.Mean, n.N, want)
		}
		if errors.Is(c.Err(), ErrHung) != (loss > 0) || c.Name() != top.Title() {
			t.Errorf("loss %g: %s: %v", loss, c.Name(), c.Err())
		}
		if lines := strings.Join(c.Lines(), "\n"); !strings.Contains(lines, "a gradient takes 1 packet; after 1.6s of silence") {
			t.Errorf("loss %g: %s", loss, lines)
		}
	}
}
