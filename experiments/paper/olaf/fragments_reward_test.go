package olaf

import (
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results/result"
)

// TestTornModelsAreCounted trains shortly with models in 1 to 64 frames: one frame is never torn, several are, and the
// curves have a reward for each number of frames.
func TestTornModelsAreCounted(t *testing.T) {
	report, err := runTornTraining(t.Context(), experiments.Options{Runs: 1, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	panels := report.(*result.Result).Panels
	for k, queue := range tornQueues {
		for i, frames := range tornFrames {
			reward, torn := panels[0].Series[k].Y[i].Mean, panels[2].Series[k].Y[i].Mean
			if reward == 0 || (torn > 0) != (frames > 1) || torn > 100 {
				t.Errorf("%s in %d frames: reward %v, and %v %% of the models torn", queue, frames, reward, torn)
			}
		}
	}
}
