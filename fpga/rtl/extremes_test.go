package rtl

import (
	"bytes"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestExtremes fills the smallest and the largest build with one update per cluster while no frame can leave, and
// checks that all leave in order.
func TestExtremes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two simulations")
	}
	for _, c := range []struct {
		build Build
		frame int // size of an update and of a frame that bypasses the queue
		long  int
	}{
		{Build{Slots: 1, Clusters: 1, FrameBytes: 64, Descriptors: 1, Flows: 1}, 64, 64},
		{Build{Slots: 4096, Clusters: 1 << 16, FrameBytes: 9600, Ports: 1}, 128, 9600},
	} {
		b := openBench(t, c.build)
		b.watch(t, reportLog|reportDecisions|reportLanes|reportBypassed)
		b.configure(t, "olaf", &engine.Config{Slots: c.build.Slots, Provenance: true}, engine.Output{})
		b.ready(t, 0, always)
		// Some frames wait in the output's buffer, the slots fill, and the rest are dropped or merged.
		all := sent{}
		for i := range c.build.Slots + 100 {
			cluster := c.build.Clusters - 1 - i%c.build.Clusters
			u := olaf.Update{Seq: uint32(i), Cluster: olaf.ClusterID(cluster), Worker: olaf.WorkerID(i), Count: 1,
				Lanes: uint16((c.frame - olaf.HeaderBytes) / olaf.LaneBytes)}
			lanes := make([]int32, u.Lanes)
			for k := range lanes {
				lanes[k] = int32(i * k)
			}
			if err := b.child.inject(&injection{cycle: b.child.cycle + 1, known: true, cluster: u.Cluster, worker: u.Worker,
				bytes: encode(t, &u, lanes)}); err != nil {
				t.Fatal(err)
			}
			all[olaf.Contributor{Worker: u.Worker, Seq: u.Seq}] = offered{u, lanes}
		}
		around := bytes.Repeat([]byte{7}, c.long)
		if err := b.child.inject(&injection{cycle: b.child.cycle + 1, bytes: around}); err != nil {
			t.Fatal(err)
		}
		b.rest(t, int64(8*len(all)+1000))
		b.ready(t, always, always)
		if !b.rest(t, int64(16*len(all)+1000)) {
			t.Fatalf("%+v does not come to rest", c.build)
		}
		b.judge(t, all)
		if n := len(b.frames); n < c.build.Slots || n > c.build.Slots+40 || len(b.passed) != 1 || !bytes.Equal(b.passed[0], around) {
			t.Errorf("%+v: %d frames, %d around", c.build, n, len(b.passed))
		}
		b.write(t, regmap.QueueClusterIndex, uint32(c.build.Clusters-1))
		if v, err := b.Read32(regmap.QueueClusterIn); err != nil || v == 0 {
			t.Errorf("%+v: the last cluster counts %d, %v", c.build, v, err)
		}
	}
}
