package olaf

import (
	"context"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results/result"
)

// fig8Shared is an experiment that trains Fig. 8's Olaf with one read port for both merges and output. It checks no
// claim, so 'reproduce' runs it only if it is named.
var fig8Shared = experiments.Experiment{
	Name:     "olaf/fig8-shared",
	Artefact: "Fig. 8",
	About: "the training runs of Fig. 8 if a merge occupies the output in proportion to its frame, next to " +
		"those with calibrated cycles",
	Needs: "30 min",
	Long:  true,
	Run:   runFig8Shared,
	Parts: trainings(fig8SharedSchemes, 5, 1),
}

// fig8SharedSchemes returns the schemes of Fig. 8 except the weighted one, and adds Olaf with one read port. FIFO
// merges nothing, so its profile does not matter. With two ports, a frame of 8,884 B takes 0.1 % longer than under
// ideal.
func fig8SharedSchemes(o *experiments.Options) []scheme {
	all := fig8Schemes(o)
	ideal, olaf40, fifo40, olaf20, fifo20 := all[0], all[1], all[2], all[3], all[4]
	shared := func(s scheme) scheme {
		s.Name += " shared"
		s.Config.Network.Profile = engine.MeasuredShared
		return s
	}
	return []scheme{ideal, olaf40, shared(olaf40), fifo40, olaf20, shared(olaf20), fifo20}
}

func runFig8Shared(ctx context.Context, o experiments.Options) (result.Report, error) {
	f, err := trainFig8(ctx, &o, "olaf/fig8-shared", "Fig. 8", fig8SharedSchemes(&o))
	if f == nil {
		return nil, err
	}
	for _, rate := range []string{"40G", "20G"} {
		for _, cycles := range []string{"", " shared"} {
			f.over(rate+cycles, "olaf "+rate+cycles, "fifo "+rate)
		}
	}
	f.Say("a merge of the paper's 9 kB frames may take one cycle, as in calibrated, or occupy the output for up " +
		"to 141 cycles, as with one read port: Fig. 8's result for Olaf depends on that choice")
	return f.Result, err
}
