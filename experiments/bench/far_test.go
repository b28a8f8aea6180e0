package bench

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/stats"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
)

// requests counts the messages that clients send to an agent.
type requests struct{ atomic.Int64 }

func (*requests) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*requests) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*requests) HandleConn(context.Context, stats.ConnStats)                       {}

func (r *requests) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.InPayload); ok {
		r.Add(1)
	}
}

// measureLent measures Table 1 on a lent twin and returns the requests of all runs.
func measureLent(tb testing.TB, runs int) int64 {
	spec, seen := usualSpec(), new(requests)
	spec.Runs = runs
	address := testbedtest.ServeTwin(tb, testbed.ServeOptions{Calls: seen})
	if _, err := MeasureSpec(context.Background(), spec, Options{Device: address, Access: testbedtest.TestAccess()}); err != nil {
		tb.Fatal(err)
	}
	return seen.Load()
}

// TestFarRunsTakeFewRoundTrips states that a run on a lent device takes at most 15 round trips, as each costs what the way to
// its host takes.
func TestFarRunsTakeFewRoundTrips(t *testing.T) {
	few := measureLent(t, 1)
	many := measureLent(t, 5)
	if each := float64(many-few) / float64(4*len(usualSpec().OutRates)*2); each > 15 {
		t.Errorf("%.1f round trips a run, want at most 15", each)
	}
}
