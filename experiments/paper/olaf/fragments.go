package olaf

import (
	"context"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// splitUpdates returns an experiment that cuts the updates of a recorded training run into more and more frames. The
// paper does not quantify the cost (§10), so the experiment judges no claim.
func splitUpdates(set system.Set) experiments.Experiment {
	return experiments.Experiment{
		Name:     "olaf/fragments",
		Artefact: "§10",
		About: "updates of 2,205 values in 1 to 64 frames, where each frame's place is a separate cluster: " +
			"loss, ages, and models torn between mixtures",
		Needs: "10 s",
		Run:   experiments.On(set, runFragments),
	}
}

// fragmentsExpected states the expected results. It was written before the first run, but after single benches with 2
// and 8 frames of 256 bytes.
const fragmentsExpected = "expected before the first run, after a look at 2 and 8 frames of 256 bytes: with 8 slots for each " +
	"place of a frame loss falls as frames get short; with 8 slots in all OLAF loses most updates from 8 frames on, as places " +
	"do not merge with each other; torn updates rise to over half from 4 frames on, for FIFO above OLAF; a whole model is " +
	"between 1 and 2 times as old as its frames"

// fragmentValues is the number of values in an update of the trace lander8. fragmentCounts lists the numbers of frames
// into which an update is cut.
const fragmentValues = 2205

var fragmentCounts = []int{1, 2, 4, 8, 16, 32, 64}

// fragmentVariant is a queue with its number of slots.
type fragmentVariant struct {
	name, queue string
	perPlace    bool // 8 slots for each place of a frame, or 8 in all
}

// fragmentMetrics lists the metrics that are drawn over the number of frames.
var fragmentMetrics = []struct {
	name, unit string
	of         func(*results.Run) results.Float
}{
	{"torn updates", "%", func(r *results.Run) results.Float {
		if r.Model == nil { // a single frame is never torn
			return 0
		}
		return r.Model.Torn
	}},
	{"age of whole models", "µs", func(r *results.Run) results.Float {
		if r.Model == nil {
			return r.Metrics.Of("aom_cluster_ns") / 1e3
		}
		return r.Model.AoM / 1e3
	}},
	{"age of a frame's cluster", "µs", func(r *results.Run) results.Float { return r.Metrics.Of("aom_cluster_ns") / 1e3 }},
	{"lost frames", "%", func(r *results.Run) results.Float { return results.Float(lostPct(r.Counters)) }},
}

func runFragments(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	base := Table1(set)
	base.Runs, base.Seed = o.Seeds(5, 2)
	base.OutRates, base.Workload.UpdatesPerWorker = base.OutRates[:1], 100
	variants := []fragmentVariant{{"olaf, 8 slots a place", "olaf", true}, {"olaf, 8 slots", "olaf", false},
		{"fifo, 8 slots a place", "fifo", true}}
	f := experiments.NewResult("olaf/fragments", "updates in several frames", &o, base)
	for _, m := range fragmentMetrics {
		p := result.Panel{Name: m.name, XLabel: "frames of an update", YLabel: m.unit}
		for _, v := range variants {
			p.Series = append(p.Series, result.Series{Name: v.name})
		}
		f.Panels = append(f.Panels, p)
	}
	for i, frames := range fragmentCounts {
		for k, v := range variants {
			if err := addFragments(ctx, &o, f, base, frames, k, &v); err != nil {
				return nil, fmt.Errorf("%s with %d frames: %w", v.name, frames, err)
			}
		}
		o.ReportProgress(i+1, len(fragmentCounts))
	}
	f.Say("updates of %d values of builtin:lander8, cut into frames of equal length; 27 workers in 9 clusters, %d runs, %v out",
		fragmentValues, base.Runs, base.OutRates[0])
	f.Say("%s", fragmentsExpected)
	for _, e := range judgeFragments(f) {
		f.Say("%s: %s", map[bool]string{true: "came out", false: "missed"}[e.cameOut], e.what)
	}
	return f, nil
}

// fragmentsExpectation is one part of fragmentsExpected, together with the measured result.
type fragmentsExpectation struct {
	what    string
	cameOut bool
}

// judgeFragments compares the measured curves with the expectations in fragmentsExpected.
func judgeFragments(f *result.Result) []fragmentsExpectation {
	torn, whole, frame, lost := f.Panels[0].Series, f.Panels[1].Series, f.Panels[2].Series, f.Panels[3].Series
	olafPlace, olafAll, fifoPlace := 0, 1, 2
	at := func(s result.Series, frames int) float64 {
		return float64(s.Y[slices.Index(fragmentCounts, frames)].Mean)
	}
	last := fragmentCounts[len(fragmentCounts)-1]
	tearsMore, oldest := true, 0.0
	for i, frames := range fragmentCounts {
		if frames >= 4 {
			o, q := torn[olafPlace].Y[i].Mean, torn[fifoPlace].Y[i].Mean
			tearsMore = tearsMore && o > 50 && q > o
		}
		for k := range whole {
			oldest = max(oldest, float64(whole[k].Y[i].Mean/frame[k].Y[i].Mean))
		}
	}
	losesMost := !slices.ContainsFunc(fragmentCounts, func(frames int) bool { return frames >= 8 && at(lost[olafAll], frames) <= 50 })
	first, short := at(lost[olafPlace], 1), at(lost[olafPlace], last)
	return []fragmentsExpectation{
		{fmt.Sprintf("with 8 slots per place OLAF loses %.1f %% of whole updates, and %.1f %% of frames with %d "+
			"per update", first, short, last), short < first},
		{fmt.Sprintf("with 8 slots in all OLAF loses %.1f %% with 8 frames per update and %.1f %% with %d", at(lost[olafAll], 8),
			at(lost[olafAll], last), last), losesMost},
		{fmt.Sprintf("with 8 slots per place OLAF tears %.1f %% of updates with 4 frames and %.1f %% with %d, "+
			"FIFO %.1f and %.1f %%",
			at(torn[olafPlace], 4), at(torn[olafPlace], last), last, at(torn[fifoPlace], 4), at(torn[fifoPlace], last)), tearsMore},
		{fmt.Sprintf("a whole model is at most %.1f times as old as its frames", oldest), oldest <= 2},
	}
}

// addFragments measures a variant with the given number of frames per update, and adds the results to the figure.
func addFragments(ctx context.Context, o *experiments.Options, f *result.Result, base bench.Spec, frames, variant int,
	v *fragmentVariant) error {
	s := base
	s.Queue, s.Versus, s.Slots = v.queue, "", 8
	if v.perPlace {
		s.Slots *= frames
	}
	s.Workload.Size = olaf.FrameSize((fragmentValues + frames - 1) / frames)
	t, err := trace.NewTraffic(trace.Builtin+"lander8", &s.Workload)
	if err != nil {
		return err
	}
	t.MaxDeparture = 20 * olaf.Microsecond // 9 kB frames from several workers wait for each other
	if err := t.Split(&s.Workload, frames); err != nil {
		return err
	}
	s.Trace = t
	m, err := o.Measure(ctx, s, nil, nil)
	if err != nil {
		return err
	}
	if err := m.Err(); err != nil {
		f.Fail(fmt.Errorf("%s with %d frames: %w", v.name, frames, err))
	}
	for i, metric := range fragmentMetrics {
		var values []float64
		for r := range m.Outcome.Runs[0] {
			if run := &m.Outcome.Runs[0][r]; run.Valid() {
				values = append(values, float64(metric.of(run)))
			}
		}
		at := &f.Panels[i].Series[variant]
		at.X, at.Y = append(at.X, float64(frames)), append(at.Y, result.Describe(values))
	}
	return nil
}
