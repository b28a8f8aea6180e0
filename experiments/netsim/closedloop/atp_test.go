package closedloop

import (
	"fmt"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// atpParts returns ATP with a window and a table with the given number of aggregators for all jobs.
func atpParts(o endpoint.ATP, slots int) system.Parts {
	d := atp.Describe()
	o.Aggregators = slots
	p := system.Parts{Program: &d, Header: 60, Window: o.Window}
	p.Build.Slots, p.Build.Profile = slots, o.Profile
	p.Worker = func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewATPWorker(cfg, o, h)
	}
	p.Server = func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewATPServer(cfg, o, h)
	}
	return p
}

// crowdedATP returns a configuration in which jobs collide: windows of four over five aggregators.
func crowdedATP(profile string, perRack int) (endpoint.ATP, int) {
	return endpoint.ATP{Profile: profile, Window: 4, PerRack: perRack, FirstTimeout: olaf.Millisecond}, 5
}

// TestATPExactlyOnce checks that under ATP every worker of every job ends every round with exactly one contribution of
// every worker, with collisions and losses, and that no aggregator remains in use.
func TestATPExactlyOnce(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 10
	}
	var all exactness
	for _, shape := range []struct {
		name             string
		profile          string
		workers, perRack int
	}{{"switch", atp.Released, 4, 0}, {"switch", atp.Paper, 4, 0}, {"racks", atp.Paper, 6, 3}, {"uneven", atp.Paper, 5, 2}} {
		for _, jobs := range []int{1, 3} {
			for _, loss := range []float64{0, 0.0001, 0.001, 0.01, 0.05} {
				t.Run(fmt.Sprintf("%s/%s/%d jobs/%g", shape.name, shape.profile, jobs, loss), func(t *testing.T) {
					for seed := range seeds {
						n := lab(shape.workers)
						n.PerRack, n.Jobs, n.Link.Loss = shape.perRack, jobs, loss
						all.add(exactlyOnce(t, n, atpParts(crowdedATP(shape.profile, shape.perRack)), integers, uint64(seed)))
					}
				})
			}
		}
	}
	t.Logf("atp: %s", &all)
}

// TestATPHangsWithoutResends checks that without retransmission, jobs that share aggregators block each other for good,
// and that this is reported.
func TestATPHangsWithoutResends(t *testing.T) {
	hung := 0
	for seed := range uint64(20) {
		n := lab(4)
		n.Jobs = 3
		o, slots := crowdedATP(atp.Released, 0)
		o.Silent = true
		j := Job{Layout: endpoint.Layout{Values: 400, PerPacket: 4}, Updates: 3, Compute: 50 * olaf.Microsecond, Jitter: 1}
		r := run(t, n, j, atpParts(o, slots), true, seed)
		if r.Hung {
			hung++
		}
	}
	if hung == 0 {
		t.Error("none of 20 runs hung")
	}
}
