package xagg

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// loadExpected states the expected results. It was written before the first run.
const loadExpected = "expected before the first run: a server with a tenth of its link makes an iteration " +
	"several times longer, because all workers wait for the slowest; after its children have moved to the root, " +
	"an iteration takes less than twice as long as without load"

// The job of the experiment: as many values as in a thousand packets, and a burst of load on S1 after the second
// iteration.
const (
	loadUpdates = 12
	loadValues  = 256_000
	loadAt      = 550 * olaf.Microsecond
	loadEvery   = 275 * olaf.Microsecond // an iteration without load
)

// loadRates lists the rates that other traffic leaves free on S1's link of 100 Gbps.
var loadRates = []olaf.Rate{50 * olaf.Gbps, 20 * olaf.Gbps, 10 * olaf.Gbps, 5 * olaf.Gbps}

// runLoad puts load on S1 in the testbed during a job. It does so with and without the management that moves the
// children of S1 after an iteration (§V, discussion). The paper prints no number for this case.
func runLoad(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	f := experiments.NewResult("xagg/load", "§V", &o, loadRates)
	block := result.Block{Name: "S1 loaded after the second iteration: mean time of an iteration", Unit: "µs",
		Columns: []string{"children stay", "children move to the root"}}
	line := func(name string, loads ...*closedloop.Load) error {
		l := result.Line{Name: name}
		for _, load := range loads {
			us, err := iterationUnderLoad(ctx, set, load)
			if err != nil {
				return err
			}
			l.Cells = append(l.Cells, results.Exactly(us))
		}
		block.Rows = append(block.Rows, l)
		return nil
	}
	if err := line("no load", nil); err != nil {
		return nil, err
	}
	block.Rows[0].Cells = append(block.Rows[0].Cells, results.Describe(nil, "nothing to move"))
	for _, rate := range loadRates {
		stay := closedloop.Load{Server: 1, At: loadAt, Rate: rate}
		move := stay
		move.Every = loadEvery
		if err := line(fmt.Sprintf("%v left of 100 Gbps", rate), &stay, &move); err != nil {
			return nil, err
		}
	}
	f.Blocks = []result.Block{block}
	f.Say("%s", loadExpected)
	f.Say("all workers are synchronous, so an iteration takes as long as its slowest worker")
	return f, nil
}

// iterationUnderLoad returns the mean time per iteration in µs while a server's link is loaded.
func iterationUnderLoad(ctx context.Context, set system.Set, load *closedloop.Load) (float64, error) {
	out, err := run(ctx, set, "xagg", variant{}, func(s *system.System, _ *system.Parts) (closedloop.Network, closedloop.Job) {
		net, j := BuildTestbed(s, Models()[0])
		net.Tree.Load = load
		j.Layout.Values, j.Updates = loadValues, loadUpdates
		return net, j
	})
	if err != nil {
		return 0, err
	}
	return float64(out.Number("iteration_ns").Mean) / 1000, nil
}
