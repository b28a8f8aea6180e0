package bench

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/stats"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
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
	address := testbedtest.ServeTwin(tb, testbed.ServeOptions{Calls: seen})
	if _, err := MeasureSpec(context.Background(), spec, Options{Device: address, Access: testbedtest.TestAccess()}); err != nil {
		tb.Fatal(err)
	}
	return seen.requests.Load(), seen.bytes.Load()
}

// TestFarRunsCostLittle states that a run on a lent device takes at most 5 round trips and 150 kB, as the way to its host
// costs time for each, and ssh costs CPU time for each byte.
func TestFarRunsCostLittle(t *testing.T) {
	few, fewBytes := measureLent(t, 1)
	many, manyBytes := measureLent(t, 5)
	runs := float64(4 * len(usualSpec().OutRates) * 2)
	if each, bytes := float64(many-few)/runs, float64(manyBytes-fewBytes)/runs; each > 5 || bytes > 150e3 {
		t.Errorf("%.1f round trips and %.0f bytes a run, want at most 5 and 150,000", each, bytes)
	}
}
