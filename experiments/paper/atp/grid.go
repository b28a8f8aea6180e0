package atp

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// Grid describes a set of settings that differ in how the switch's aggregators are shared, in their number, and in the
// loss.
type Grid struct {
	Setting
	Sharings []string  // columns
	Amounts  []string  // of aggregators, as parsed by Aggregators
	Losses   []float64 // shares of frames

	difference results.Statistic // for the last amount, the difference between the two ways to share, in per cent
	found      []*job.Outcome    // in the order of Cells
}

// Cell is one setting of a grid.
type Cell struct {
	Row     string // amount and loss, as in tables
	Sharing string
	Spec    *job.Spec
}

// Name returns a name that is unique in the grid.
func (c *Cell) Name() string { return c.Sharing + ", " + c.Row }

// Cells returns the settings in the grid, row by row. Errors are those of Aggregators and Setting.Spec.
func (g *Grid) Cells(set system.Set) (cells []Cell, err error) {
	for _, amount := range g.Amounts {
		n, err := aggregators(amount)
		if err != nil {
			return nil, err
		}
		for _, loss := range g.Losses {
			name := fmt.Sprintf("%s (%d)", amount, n)
			if len(g.Losses) > 1 || loss > 0 {
				name += fmt.Sprintf(", %g %% lost", 100*loss)
			}
			for _, sharing := range g.Sharings {
				c := g.Setting
				c.Sharing, c.Aggregators, c.Loss = sharing, n, loss
				spec, err := c.Spec(set)
				if err != nil {
					return nil, err
				}
				cells = append(cells, Cell{name, sharing, spec})
			}
		}
	}
	return cells, nil
}

// Outcomes returns the results of running the grid, in the order of Cells.
func (g *Grid) Outcomes() []*job.Outcome { return g.found }

// Config is the configuration of a grid as documents contain it.
type Config struct {
	System      string        `json:"system"`
	Profile     string        `json:"program_profile,omitempty"`
	Model       string        `json:"model"`
	Jobs        int           `json:"jobs"`
	Workers     int           `json:"workers"`
	Sharings    []string      `json:"sharing"`
	Amounts     []string      `json:"aggregators"`
	PTA         int           `json:"pta"`
	Window      int           `json:"window"`
	Fraction    float64       `json:"fraction"`
	Updates     uint32        `json:"updates"`
	Losses      []float64     `json:"loss"`
	Compute     olaf.Duration `json:"compute"`
	Rate        olaf.Rate     `json:"rate"`
	RoundTrip   olaf.Duration `json:"round_trip"`
	HostsPerSec float64       `json:"packets_per_second"`
	MarkedFrom  olaf.Size     `json:"marked_from"`
	Congestion  bool          `json:"congestion"`
	TimePerRun  olaf.Duration `json:"time_per_run"`
	RunsOfACell int           `json:"runs"`
	FirstSeed   uint64        `json:"seed"`
}

func (g *Grid) config(seeds []uint64) *Config {
	limit := cmp.Or(g.Limit, labLimit)
	return &Config{
		System: g.System, Profile: g.Options.Profile, Model: g.Model.Name, Jobs: g.Jobs, Workers: g.Workers,
		Sharings: g.Sharings, Amounts: g.Amounts,
		PTA: pta(), Window: g.Window, Fraction: g.Fraction, Updates: g.Updates, Losses: g.Losses, Compute: g.Compute, Rate: labRate,
		RoundTrip: roundTrip(), HostsPerSec: float64(olaf.Second) / float64(labFrame), MarkedFrom: labMark, Congestion: g.Options.Congestion,
		TimePerRun: limit, RunsOfACell: len(seeds), FirstSeed: seeds[0],
	}
}

// measure is one quantity that a grid shows. Its values for all cells are printed as a block.
type measure struct {
	name, unit string
	of         func(*job.Outcome) results.Statistic
}

// measures lists the quantities that a grid shows for each cell.
var measures = []measure{
	{"completion of a job", "ms", func(o *job.Outcome) results.Statistic { return results.Scale(o.Number("jct_ns"), 1e-6) }},
	{"gradients summed for a worker", "Gbit/s", func(o *job.Outcome) results.Statistic { return results.Scale(o.Number("goodput_bps"), 1e-9) }},
	{"packets at a server for each of a vector", "", func(o *job.Outcome) results.Statistic { return o.Number("served") }},
	{"collided, of packets of vectors", "%", func(o *job.Outcome) results.Statistic { return share(o.Program.Of("collided"), o) }},
	{"sent again, of packets of vectors", "%", func(o *job.Outcome) results.Statistic { return share(o.Endpoints.Of("packets_resent"), o) }},
}

// share returns n as a percentage of the packets that the workers sent for the first time, over all runs.
func share(n int64, o *job.Outcome) results.Statistic {
	first := o.Endpoints.Of("packets_sent")
	if o.Spec.System.Program != nil && o.Program.Index("released") >= 0 {
		first -= int64(o.Runs[0].Updates) * int64(o.Spec.Job.Packets()) * int64(len(o.Runs)*o.Spec.Network.Jobs) // acknowledgements
	}
	if first <= 0 {
		return results.Describe(nil, "no vector was sent")
	}
	return results.Exactly(100 * float64(n) / float64(first))
}

// over returns a statistic of the ratios, seed by seed, between the completion times in a and b. convert converts each
// ratio.
func over(a, b *job.Outcome, convert func(float64) float64) results.Statistic {
	var ratios []results.Float
	for i := range a.Runs {
		if !a.Runs[i].Hung && !b.Runs[i].Hung {
			ratios = append(ratios, results.Float(convert(float64(a.Runs[i].Completion/b.Runs[i].Completion))))
		}
	}
	return results.Describe(ratios, "no run of both finished")
}

// Fill runs the grid and adds its results to t. Each combination of amount and loss is a row, and each way of sharing
// is a column. Cells with hung runs are empty and are explained in a note.
func (g *Grid) Fill(ctx context.Context, set system.Set, t *result.Result, prefix string, seeds []uint64, done func()) error {
	cells, err := g.Cells(set)
	if err != nil {
		return err
	}
	if _, err := g.play(ctx, cells, seeds, done); err != nil {
		return err
	}
	g.addResults(cells, t, prefix)
	return nil
}

// play runs the cells and stores their outcomes in g.found. After an error, it stores only the complete cells or, if
// the first cell failed, that cell's finished runs. It returns the seeds of the stored runs.
func (g *Grid) play(ctx context.Context, cells []Cell, seeds []uint64, done func()) (whole []uint64, err error) {
	g.found = nil
	for i := range cells {
		o, some, err := job.RunUntil(ctx, cells[i].Spec, seeds, done)
		if err == nil {
			g.found = append(g.found, o)
			continue
		}
		if i > 0 {
			return seeds, err
		}
		if o != nil {
			g.found = append(g.found, o)
		}
		return some, err
	}
	return seeds, nil
}

// addResults adds the results of the cells to t. If the grid was interrupted, the last row may have empty cells.
func (g *Grid) addResults(cells []Cell, t *result.Result, prefix string) {
	blocks := make([]result.Block, len(measures))
	for i, m := range measures {
		blocks[i] = result.Block{Name: prefix + m.name, Unit: m.unit, Columns: g.Sharings}
	}
	ratio := result.Block{Name: prefix + "completion, static over dynamic", Columns: []string{"ratio"}}
	for row := range slices.Chunk(g.found, len(g.Sharings)) {
		name, loss := cells[0].Row, cells[0].Spec.Network.Link.Loss
		cells = cells[len(row):]
		for i, m := range measures {
			blocks[i].Rows = append(blocks[i].Rows, g.line(name, row, m))
		}
		if s, d := slices.Index(g.Sharings, system.Static), slices.Index(g.Sharings, system.Dynamic); min(s, d) >= 0 && max(s, d) < len(row) {
			ratio.Rows = append(ratio.Rows, result.Line{Name: name,
				Cells: []results.Statistic{over(row[s], row[d], func(r float64) float64 { return r })}})
			if loss == 0 {
				g.difference = over(row[s], row[d], func(r float64) float64 { return 100 * max(r-1, 1-r) })
			}
		}
		if err := job.Errs(row); err != nil {
			t.Say("%s: %s", name, err)
			t.Fail(err)
		}
	}
	if len(ratio.Rows) > 0 {
		blocks = append(blocks[:1], append([]result.Block{ratio}, blocks[1:]...)...)
	}
	t.Blocks = append(t.Blocks, blocks...)
}

// line returns a row with the values of one measure.
func (g *Grid) line(name string, row []*job.Outcome, m measure) result.Line {
	line := result.Line{Name: name}
	for _, o := range row {
		line.Cells = append(line.Cells, m.of(o))
	}
	for len(line.Cells) < len(g.Sharings) {
		line.Cells = append(line.Cells, results.Describe(nil, "left before its end"))
	}
	return line
}

// Runs returns the number of runs in the grid.
func (g *Grid) Runs(seeds int) int { return len(g.Sharings) * len(g.Amounts) * len(g.Losses) * seeds }

// table returns a table with the results of the grid.
func (g *Grid) table(cells []Cell, seeds []uint64) *result.Result {
	t := experiments.NewResult(LabName, "jobs that share a switch", &experiments.Options{}, g.config(seeds))
	t.Terms = g.terms()
	g.addResults(cells, t, "")
	g.basis(t)
	return t
}

// terms returns a description of the grid's jobs and settings.
func (g *Grid) terms() []string {
	profile := cmp.Or(g.Options.Profile, "p4ml")
	return []string{fmt.Sprintf("%s, profile %s: %s of %s each, %s gradients, %g %% of each.", g.System, profile,
		olaf.Plural(g.Jobs, "job"), olaf.Plural(g.Workers, "worker"), g.Model.Name, 100*g.Fraction)}
}

// basis adds statements to t about the assumptions behind the numbers.
func (g *Grid) basis(t *result.Result) {
	t.Say("assumed: 100 Gbps, a round trip of %s and %.0f million packets per second per host, from a "+
		"measurement of ATP's stack that A2TP published; so a job's peak throughput needs a window, and as many "+
		"aggregators, of PTA = %d",
		roundTrip(), float64(olaf.Second)/float64(labFrame)/1e6, pta())
	if g.Window == 0 {
		t.Say("a window is as large as the peak needs, or as the job's aggregators allow")
	}
	if g.Fraction < 1 {
		t.Say("%g %% of each gradient is simulated; --fraction 1 simulates all of it", 100*g.Fraction)
	}
}
