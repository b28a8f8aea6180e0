package bench

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/results"
)

// idle is the number of runs that confirm the pacer's thresholds (docs/notes/kernel.md).
var idle = flag.Int("idle", 0, "runs of an idle machine, to confirm when ages are withheld")

// idleAgePct is the accepted deviation of a run's mean age from the twin's for the same arrivals.
const idleAgePct = 5

// TestIdleRuns measures real packets and the twin on an idle machine, and prints for every run how late frames were and
// how far its ages are from the twin's. The thresholds are confirmed if no run with ages deviates by more than
// idleAgePct, and if at least nine of ten runs have ages.
func TestIdleRuns(t *testing.T) {
	if *idle == 0 {
		t.Skip("needs an idle machine: -idle 30")
	}
	spec := usualSpec()
	w := &spec.Workload
	w.MeanRate, w.LineRate, w.BurstPackets, w.UpdatesPerWorker = 8*olaf.Mbps, 8*olaf.Mbps, 1, 400
	spec.OutRates, spec.Runs, spec.Versus = []olaf.Rate{3 * olaf.Mbps}, *idle, ""
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("load before: %s", strings.TrimSpace(string(load)))
	began := time.Now()
	m, err := MeasureSpec(t.Context(), spec, Options{Device: "xdp:",
		Access: testbed.Access{Devices: testbed.Devices{backends.KernelDevice()}},
		Twin:   true})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	told := tellIdle(t, m.Outcome.Runs[0], olaf.Duration(float64(w.Size.Bits())/3e6*1e12))
	t.Logf("%d of %d runs tell their ages; %v in all", told, *idle, time.Since(began).Round(time.Second))
	if 10*told < 9**idle {
		t.Errorf("only %d of %d runs tell their ages", told, *idle)
	}
}

// tellIdle prints a line per run, and returns how many have ages.
func tellIdle(t *testing.T, runs []results.Run, service olaf.Duration) (told int) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "run\tlate p50\tp99\tmax\tp99, % of service\tage over twin's, %\t\t")
	var shares, offs []float64
	for i := range runs {
		r := &runs[i]
		share := 100 * float64(r.LatenessNS.P99) / float64(service/olaf.Nanosecond)
		shares = append(shares, share)
		b := r.TwinComparisons["aom_cluster_ns"]
		off, say := b.OutputPct(), r.Withheld
		if off.Known() {
			told++
			offs = append(offs, math.Abs(float64(off)))
			say = fmt.Sprintf("%+.2f", float64(off))
			if math.Abs(float64(off)) > idleAgePct {
				t.Errorf("run %d tells ages that are %s %% off the twin's", i, say)
			}
		}
		fmt.Fprintf(table, "%d\t%v\t%v\t%v\t%.1f\t%s\t\n", i, time.Duration(r.LatenessNS.P50), time.Duration(r.LatenessNS.P99),
			time.Duration(r.LatenessNS.Max), share, say)
	}
	table.Flush()
	slices.Sort(shares)
	slices.Sort(offs)
	ages := "nobody tells its age"
	if told > 0 {
		ages = fmt.Sprintf("ages: median %.2f %%, worst %.2f %% off the twin's", offs[told/2], offs[told-1])
	}
	t.Logf("\n%sp99 lateness: median %.1f %%, worst %.1f %% of the service time; %s", text.String(), shares[len(shares)/2],
		shares[len(shares)-1], ages)
	return told
}
