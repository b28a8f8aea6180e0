package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/text"
)

// TestPlannedBursts checks that bursts are called planned for senders in real time on this machine, and not for the
// twin, which keeps exact time.
func TestPlannedBursts(t *testing.T) {
	spec := usualSpec()
	spec.Runs, spec.Versus, spec.OutRates, spec.Workload.UpdatesPerWorker = 1, "", spec.OutRates[:1], 20
	m, err := MeasureSpec(t.Context(), spec, Options{})
	must(t, err)
	for _, here := range []bool{false, true} {
		if here {
			m.Outcome.Runs[0][0].LatenessNS = &olaf.Quantiles{Max: 1}
		}
		m, err := NewMeasurement(m.Outcome, nil)
		must(t, err)
		var b strings.Builder
		must(t, m.WriteText(&b, text.View{}))
		said := strings.Join(strings.Fields(b.String()), " ")
		noted := slices.ContainsFunc(m.Bench.Statements,
			func(s string) bool { return strings.HasPrefix(s, "bursts are planned at 100Gbps, but ") })
		if strings.Contains(said, "in bursts of 135 at 100Gbps") == here ||
			strings.Contains(said, "in bursts of 135 planned at 100Gbps") != here || noted != here {
			t.Errorf("senders of this machine %v: noted %v, %s", here, noted, said)
		}
	}
}
