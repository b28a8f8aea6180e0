package bench

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/stats"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends/backendstest"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/regmap"
)

// agentTraffic counts what an agent exchanges: requests, and bytes in both directions.
type agentTraffic struct{ requests, bytes atomic.Int64 }

func (*agentTraffic) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*agentTraffic) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*agentTraffic) HandleConn(context.Context, stats.ConnStats)                       {}

func (a *agentTraffic) HandleRPC(_ context.Context, s stats.RPCStats) {
	switch p := s.(type) {
	case *stats.InPayload:
		a.requests.Add(1)
		a.bytes.Add(int64(p.WireLength))
	case *stats.OutPayload:
		a.bytes.Add(int64(p.WireLength))
	}
}

// measureLent measures Table 1 on a lent twin and returns the requests and bytes of all runs.
func measureLent(tb testing.TB, runs int) (requests, bytes int64) {
	spec, seen := usualSpec(), new(agentTraffic)
	spec.Runs = runs
	address := backendstest.ServeTwin(tb, testbed.ServeOptions{Calls: seen})
	if _, err := MeasureSpec(context.Background(), spec, Options{Device: address, Access: backendstest.TestAccess()}); err != nil {
		tb.Fatal(err)
	}
	return seen.requests.Load(), seen.bytes.Load()
}

// TestFarRunsCostLittle checks that a run on a lent device takes at most 5 round trips and 150 kB, because each round
// trip to its host costs time and each byte costs CPU time in ssh.
func TestFarRunsCostLittle(t *testing.T) {
	few, fewBytes := measureLent(t, 1)
	many, manyBytes := measureLent(t, 5)
	runs := float64(4 * len(usualSpec().OutRates) * 2)
	if each, bytes := float64(many-few)/runs, float64(manyBytes-fewBytes)/runs; each > 5 || bytes > 150e3 {
		t.Errorf("%.1f round trips and %.0f bytes a run, want at most 5 and 150,000", each, bytes)
	}
}

// TestFarQueuesAreDrainedFirst checks, for a queue that is configured while it contains frames, that the same time
// passes on a local and on a lent twin until it is empty, and that the counters are zero afterwards.
func TestFarQueuesAreDrainedFirst(t *testing.T) {
	local := reconfigure(t, "")
	lent := reconfigure(t, backendstest.ServeTwin(t, testbed.ServeOptions{}))
	if local != lent || local == 0 {
		t.Errorf("cycle %d on the local twin and %d on the lent one, want equal ones", local, lent)
	}
}

// reconfigure configures the queue of a twin while it contains frames, and returns the device's cycle afterwards.
func reconfigure(t *testing.T, address string) uint32 {
	t.Helper()
	plan, err := NewPlan(usualSpec())
	if err != nil {
		t.Fatal(err)
	}
	bed, err := testbed.OpenTestbed(t.Context(), address, testbed.OpenOptions{Access: backendstest.TestAccess(), Cards: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer bed.Close()
	rig, err := plan.Rig(bed.Cards[0])
	if err != nil {
		t.Fatal(err)
	}
	defer rig.Close()
	var status, cycle uint32
	for n, step := range []func() error{
		func() error { _, err := plan.Program(t.Context(), bed); return err },
		func() error { _, err := rig.Load(t.Context(), 0); return err },
		func() error { return rig.Prepare(t.Context(), len(plan.Configs)-1) },
		rig.Generator.ArmAndStart,
		func() (err error) {
			for status = regmap.QueueStatusEmpty; status&regmap.QueueStatusEmpty != 0 && err == nil; {
				if err = rig.Device.Sleep(t.Context(), olaf.Microsecond); err == nil {
					status, err = rig.Device.Read32(regmap.QueueStatus)
				}
			}
			return err
		},
		rig.Generator.Abort,
		func() error { return rig.Prepare(t.Context(), len(plan.Configs)-1) },
		func() (err error) { cycle, err = rig.Device.Read32(regmap.CommonCycles); return err },
	} {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
	}
	counters, err := rig.Snapshot()
	if err != nil || counters.Queue.DeliveredFrames != 0 || counters.Generator.SentPackets != 0 {
		t.Errorf("%q: %+v, %v afterwards", address, counters, err)
	}
	return cycle
}
