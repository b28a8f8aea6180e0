package olaf

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// cycles returns an experiment that compares the costs of merges under all profiles: the fitted ones and those of the
// hardware logic. It checks no claim, so 'reproduce' runs it only if it is named.
func cycles(set system.Set) experiments.Experiment {
	return experiments.Experiment{
		Name:     "olaf/cycles",
		Artefact: cyclesArtefact,
		About:    "the same traffic under calibrated, ideal and measured cycles, with two read ports and with one",
		Needs:    "2 min",
		Long:     true,
		Run:      experiments.On(set, runCycles),
	}
}

const cyclesArtefact = "Table 1, Fig. 6 and the networks of Figs. 7 and 8"

// cyclesConfig is the configuration of the experiment olaf/cycles.
type cyclesConfig struct {
	Profiles []string   `json:"profiles"`
	Table1   bench.Spec `json:"table1"`
	Fig8     bench.Spec `json:"fig8"` // only its network, with the traffic of Table 1
	Fig7     fig7Config `json:"fig7"`
	Refit    refit      `json:"refit"`
}

// cyclesCells lists the counts in Table 1 that depend on the engine's cycles. FIFO's counts, which do not depend on
// them, are included for comparison.
var cyclesCells = []struct {
	name, queue string
	rate        olaf.Rate
	counter     string
}{
	{"fifo.40g.received", "fifo", 40 * olaf.Gbps, "received"}, {"fifo.20g.received", "fifo", 20 * olaf.Gbps, "received"},
	{"olaf.40g.received", "olaf", 40 * olaf.Gbps, "received"}, {"olaf.40g.aggregated", "olaf", 40 * olaf.Gbps, "aggregated"},
	{"olaf.20g.received", "olaf", 20 * olaf.Gbps, "received"}, {"olaf.20g.aggregated", "olaf", 20 * olaf.Gbps, "aggregated"},
}

func runCycles(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	runs, seed := o.Seeds(10, 2)
	c := cyclesConfig{Profiles: engine.ProfileNames(), Table1: Fig6(set), Fig7: Fig7(min(runs, 3), seed)}
	c.Table1.Experiment, c.Table1.Versus, c.Table1.Runs, c.Table1.Seed = "olaf/cycles", "fifo", runs, seed
	c.Fig8 = c.Table1
	c.Fig8.Workload.Workers, c.Fig8.Workload.Clusters, c.Fig8.Workload.Size = 24, 12, olaf.FrameSize(rl.Params)
	c.Fig8.Workload.UpdatesPerWorker, c.Fig8.OutRates = 100, []olaf.Rate{40 * olaf.Gbps, 20 * olaf.Gbps}
	c.Fig7.OutRates, c.Fig7.Updates = []olaf.Rate{40 * olaf.Gbps, 20 * olaf.Gbps}, 50
	c.Refit = refit{Bursts: []int{64, 100, 120, 128, 135, 142, 150, 200}, Sigmas: []float64{0, 0.5, 1, 1.5, 2, 3},
		Runs: min(runs, 3), Seed: seed + 1000}
	t := &cyclesTable{Result: experiments.NewResult("olaf/cycles", cyclesArtefact, &o, &c), o: &o, cells: map[string]map[string]float64{}}
	for i, name := range c.Profiles {
		if err := t.profile(ctx, &c, engine.Profile(name)); err != nil {
			return nil, fmt.Errorf("olaf/cycles, %s: %w", name, err)
		}
		o.ReportProgress(i+1, len(c.Profiles))
	}
	t.conclude()
	return t.Result, nil
}

// cyclesTable is the result of the experiment olaf/cycles. Every block has one row per profile.
type cyclesTable struct {
	*result.Result
	o     *experiments.Options
	cells map[string]map[string]float64 // mean deviation from the paper in per cent, by profile and cell
	refit []string                      // results of fitting the traffic again
}

// line adds a row to the block with the given name. It creates the block for its first row.
func (t *cyclesTable) line(block, unit, row string, columns []string, cells []results.Statistic) {
	for i := range t.Blocks {
		if t.Blocks[i].Name == block {
			t.Blocks[i].Rows = append(t.Blocks[i].Rows, result.Line{Name: row, Cells: cells})
			return
		}
	}
	t.Blocks = append(t.Blocks, result.Block{Name: block, Unit: unit, Columns: columns, Rows: []result.Line{{Name: row, Cells: cells}}})
}

func (t *cyclesTable) profile(ctx context.Context, c *cyclesConfig, p engine.Profile) error {
	c.Table1.Profile, c.Fig8.Profile, c.Fig7.Profile = p, p, p
	m, err := bench.MeasureSpec(ctx, c.Table1, bench.Options{Device: t.o.Device, Access: t.o.Access})
	if err != nil {
		return err
	}
	t.table1(m.Outcome, p)
	t.fig6(m.Outcome, p)
	if m, err = bench.MeasureSpec(ctx, c.Fig8, bench.Options{Device: t.o.Device, Access: t.o.Access}); err != nil {
		return err
	}
	t.fig8(m.Outcome, p)
	if err := t.fig7(ctx, c, p); err != nil {
		return err
	}
	return t.fitAgain(ctx, c, p)
}

// counts returns a statistic of one counter in a configuration over all seeds.
func counts(out *bench.Outcome, queue string, rate olaf.Rate, of func(*results.Run) float64) results.Statistic {
	return results.Describe(listValues(out, queue, rate, of), "no run reached this point")
}

func counter(name string) func(*results.Run) float64 {
	return func(r *results.Run) float64 { return float64(r.Counters.Of(name)) }
}

// cellsOfTable1 returns the cells of Table 1 with the paper's numbers, our numbers, and the deviation in per cent.
func cellsOfTable1(out *bench.Outcome) (columns []string, printed, ours, off []results.Statistic) {
	published := paper.ClaimsByID()
	for _, cell := range cyclesCells {
		value := published["olaf/table1."+cell.name].Value
		s := counts(out, cell.queue, cell.rate, counter(cell.counter))
		columns, ours = append(columns, cell.name), append(ours, s)
		printed = append(printed, result.Describe([]float64{value}))
		off = append(off, result.Describe([]float64{100 * (float64(s.Mean)/value - 1)}))
	}
	return columns, printed, ours, off
}

func (t *cyclesTable) table1(out *bench.Outcome, p engine.Profile) {
	columns, printed, ours, off := cellsOfTable1(out)
	t.cells[string(p)] = map[string]float64{}
	for i, name := range columns {
		t.cells[string(p)][name] = float64(off[i].Mean)
	}
	if len(t.Blocks) == 0 {
		t.line("Table 1", "updates", "paper", columns, printed)
	}
	t.line("Table 1", "updates", string(p), columns, ours)
	t.line("Table 1, off the paper", "%", string(p), columns, off)
}

func (t *cyclesTable) fig6(out *bench.Outcome, p engine.Profile) {
	var columns []string
	var cells []results.Statistic
	for _, rate := range out.Plan.Spec.OutRates {
		columns = append(columns, fmt.Sprintf("olaf %v", rate))
		cells = append(cells, counts(out, "olaf", rate, func(r *results.Run) float64 {
			return float64(r.Counters.Of("aggregated")) / float64(r.Counters.Of("received"))
		}))
	}
	t.line("Fig. 6, aggregations per frame", "", string(p), columns, cells)
}

func (t *cyclesTable) fig8(out *bench.Outcome, p engine.Profile) {
	var columns []string
	var cells []results.Statistic
	for _, rate := range out.Plan.Spec.OutRates {
		for _, name := range []string{"received", "aggregated"} {
			columns = append(columns, fmt.Sprintf("%v %s", rate, name))
			cells = append(cells, counts(out, "olaf", rate, counter(name)))
		}
	}
	t.line(fmt.Sprintf("Fig. 8's network, frames of %v through Olaf", out.Plan.Spec.Workload.Size), "updates", string(p), columns, cells)
}

// fig7 measures the speed-up in every curve of Fig. 7, for the figure's frames and for long frames.
func (t *cyclesTable) fig7(ctx context.Context, c *cyclesConfig, p engine.Profile) error {
	recording, err := loadTrace(c.Fig7.Trace)
	if err != nil {
		return err
	}
	for _, variant := range c.Fig7.variants() {
		var columns []string
		var cells []results.Statistic
		for _, size := range []olaf.Size{256, olaf.MaxFrame} {
			run := c.Fig7
			run.Frame = size
			for _, rate := range run.OutRates {
				values, err := run.speedups(ctx, recording, variant, rate)
				if err != nil {
					return err
				}
				columns = append(columns, fmt.Sprintf("%v %v", size, rate))
				cells = append(cells, result.Describe(values))
			}
		}
		t.line(fmt.Sprintf("Fig. 7, FIFO's time over Olaf's for %d updates, %s", c.Fig7.Updates,
			c.Fig7.name(variant)), "", string(p), columns, cells)
	}
	return nil
}

// speedups returns the speed-ups of one curve at an output rate, one per seed.
func (c *fig7Config) speedups(ctx context.Context, recording *trace.Recording, v fig7Variant,
	rate olaf.Rate) (values []float64, err error) {
	for _, seed := range c.Seeds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		point, err := c.replay(recording, v, rate, seed)
		if err != nil {
			return nil, fmt.Errorf("fig7, %s, %v out, seed %d: %w", c.name(v), rate, seed, err)
		}
		values = append(values, point.speedup)
	}
	return values, nil
}

// conclude states which structure is close to the paper without a fitted number, and which conclusions depend on the
// fit.
func (t *cyclesTable) conclude() {
	worst := func(profile string, cells ...string) float64 {
		most := 0.0
		for _, c := range cells {
			most = max(most, t.cells[profile][c], -t.cells[profile][c])
		}
		return most
	}
	at40, at20 := []string{"olaf.40g.received", "olaf.40g.aggregated"}, []string{"olaf.20g.received", "olaf.20g.aggregated"}
	for _, p := range engine.ProfileNames() {
		t.Say("%s: Olaf's counts are within %.1f %% of the paper's at 40 Gbps and within %.1f %% at 20 Gbps", p,
			worst(p, at40...), worst(p, at20...))
	}
	t.Say("calibrated has two numbers that were fitted to these very counts; the model with one read port, " +
		"shared by merges and output, has none, and there a merge takes time in proportion to its frame")
	t.Say("the bursts and cluster weights were fitted with the calibrated cycles, which puts the others at a " +
		"disadvantage: this is evidence for the shared port, but not proof")
	for _, found := range t.refit {
		t.Say("sensitivity, used nowhere else: %s", found)
	}
	t.Say("calibrated charges one cycle for a merge of 9 kB, as for 256 B; with one port it takes up to 141 " +
		"cycles, so results for 9 kB frames depend on the profile")
}
