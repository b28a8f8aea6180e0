package closedloop

import (
	"fmt"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// segments returns P4INC with size aggregators per job and a window.
func segments(jobs, size, window int) system.Parts {
	d := p4inc.Describe()
	return system.Parts{
		Program: &d, Build: program.Config{Slots: jobs * size}, Header: 54,
		Share: func(job int) (int, int) { return job * size, size },
		Worker: func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewP4INC(cfg, endpoint.P4INC{Base: (int(cfg.Job) - 1) * size, Size: size, Window: window}, h)
		},
	}
}

// TestP4INCExactlyOnce checks that P4INC with windows of a segment's size ends every round with exactly one
// contribution of every worker, with any losses.
func TestP4INCExactlyOnce(t *testing.T) {
	seeds := 100
	if testing.Short() {
		seeds = 20
	}
	for _, shape := range []struct{ workers, jobs, size int }{{4, 1, 1}, {4, 1, 4}, {5, 2, 3}} {
		for _, loss := range []float64{0, 0.001, 0.01, 0.05} {
			t.Run(fmt.Sprintf("%d workers, %d jobs, %d aggregators, %g", shape.workers, shape.jobs, shape.size, loss),
				func(t *testing.T) {
					for seed := range seeds {
						n := lab(shape.workers)
						n.Jobs, n.Link.Loss = shape.jobs, loss
						exactlyOnce(t, n, segments(shape.jobs, shape.size, 0), integers, uint64(seed))
					}
				})
		}
	}
}

// TestP4INCMarks checks that windows larger than the segment collide in aggregators: the switch marks, windows shrink,
// and the sums stay exact.
func TestP4INCMarks(t *testing.T) {
	for seed := range uint64(20) {
		n := lab(4)
		exactlyOnce(t, n, segments(1, 2, 6), integers, seed)
	}
	j := Job{Layout: endpoint.Layout{Values: 4000, PerPacket: 4}, Updates: 3, Compute: 200 * olaf.Microsecond, Jitter: 0.5,
		Limit: olaf.Second}
	within, beyond := run(t, lab(4), j, segments(1, 16, 0), true, 1), run(t, lab(4), j, segments(1, 16, 64), true, 1)
	if n := within.Program.Of("asynchronous"); n != 0 {
		t.Errorf("%d fragments met although no window is longer than the segment", n)
	}
	if n := beyond.Program.Of("asynchronous"); n == 0 || beyond.Hung || beyond.Endpoints.Of("packets_inexact") != 0 {
		t.Errorf("%d fragments met, hung %v, %v", n, beyond.Hung, beyond.Endpoints)
	}
	if resent := beyond.Endpoints.Of("packets_resent"); resent < beyond.Program.Of("asynchronous") {
		t.Errorf("%d packets were sent again, of %d that were not added", resent, beyond.Program.Of("asynchronous"))
	}
}
