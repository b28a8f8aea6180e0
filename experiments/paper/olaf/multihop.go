package olaf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// EarlierSchema is the schema, without its version, with which earlier versions wrote Tables 2 and 3.
const EarlierSchema = "olafctl.multihop"

// multiHopConfig is the configuration of Tables 2 and 3 and Fig. 10. The topology, the periods and the queues are from
// the paper; docs/reference/topology-file.md gives the source of the other values and their effect.
type multiHopConfig struct {
	Period1   olaf.Duration `json:"period_s1"`
	Period2   olaf.Duration `json:"period_s2"`
	SW3       olaf.Rate     `json:"sw3_rate"`
	Beta      float64       `json:"beta"`  // rates of SW1 and SW2 over SW3's
	Alpha     float64       `json:"alpha"` // rate of SW1 over SW2's
	Slots     [3]int        `json:"slots"`
	Update    olaf.Size     `json:"update"`
	Phase     netsim.Span   `json:"phase"`
	Jitter    olaf.Duration `json:"jitter"`
	HopDelay  olaf.Duration `json:"hop_delay"`
	Threshold olaf.Duration `json:"tc_threshold"`
	Slope     tc.Slope      `json:"tc_slope"`
	Warmup    olaf.Duration `json:"warmup"`
	Duration  olaf.Duration `json:"duration"`
	Seeds     []uint64      `json:"seeds"`
}

// multiHop returns the configuration of Table 2. The other experiments change one field each.
func multiHop(runs int, seed uint64) multiHopConfig {
	const ms = olaf.Millisecond
	return multiHopConfig{
		Period1: 100 * ms, Period2: 100 * ms, SW3: 848 * olaf.Kbps, Beta: 4.5, Alpha: 1, Slots: [3]int{5, 5, 8}, Update: 1000,
		Phase: netsim.Span{To: 54 * ms}, Jitter: 2 * ms, HopDelay: 50 * ms, Threshold: 50 * ms, Slope: tc.Urgency,
		Warmup: 5 * olaf.Second, Duration: 60 * olaf.Second, Seeds: experiments.SeedsFrom(seed, runs),
	}
}

// The inputs of Tables 2 and 3 and of Fig. 10.
const (
	period     = "time between a worker's updates"
	bottleneck = "rate of SW3"
	updateSize = "size of an update"
	hopDelay   = "delay of a hop"
)

var multiHopInputs = experiments.InputsByTenth(bottleneck, period, updateSize, hopDelay)

// changedMultiHop returns the configuration with the changed input from the options.
func changedMultiHop(o *experiments.Options, runs int, seed uint64) multiHopConfig {
	c := multiHop(runs, seed)
	c.Period1, c.Period2 = experiments.ScaleInput(o, period, c.Period1), experiments.ScaleInput(o, period, c.Period2)
	c.SW3 = experiments.ScaleInput(o, bottleneck, c.SW3)
	c.Update = experiments.ScaleInput(o, updateSize, c.Update)
	c.HopDelay = experiments.ScaleInput(o, hopDelay, c.HopDelay)
	return c
}

// variant is one row of a table: a queue, and the transmission control at its workers.
type variant struct {
	name    string
	queue   string
	control netsim.Count  // empty: off
	law     tc.LawName    // empty: the paper's
	ack     tc.AckContent // empty: three numbers
}

var (
	fifoPlain   = variant{"fifo", "fifo", "", "", ""}
	olafPlain   = variant{"olaf", "olaf", "", "", ""}
	olafSenders = variant{"olaf tc (N = senders)", "olaf", netsim.CountSenders, "", ""}
	olafN       = variant{"olaf tc (N = clusters)", "olaf", netsim.CountClusters, "", ""}
)

func (c *multiHopConfig) topology(v variant) (*netsim.Topology, error) {
	t, err := netsim.Preset(nil, "multihop", netsim.Scale{Interval: c.Period1, Interval2: c.Period2, Jitter: &c.Jitter})
	if err != nil {
		return nil, err
	}
	t.Queue, t.Update, t.Warmup, t.Duration = v.queue, c.Update, c.Warmup, c.Duration
	t.Control = netsim.Control{Enabled: v.control != "", Threshold: c.Threshold, Slope: c.Slope, Count: v.control,
		Window: t.Control.Window, Law: v.law, Ack: v.ack}
	x2 := c.Beta * float64(c.SW3)
	for i, rate := range []olaf.Rate{olaf.Rate(c.Alpha * x2), olaf.Rate(x2), c.SW3} {
		t.Switches[i].Slots = c.Slots[i]
		t.Links[i].Rate, t.Links[i].Delay = rate, c.HopDelay
	}
	for i := range t.Clusters {
		t.Clusters[i].Phase = c.Phase
		t.Clusters[i].Access.Delay = c.HopDelay
	}
	return t, nil
}

// multiHopRow contains the results of one variant over all seeds.
type multiHopRow struct {
	result.Row
	queue string
	seeds []uint64
	runs  []*netsim.Result // valid ones
}

// cell is one number in the tables, with a function that computes it for a run or a group.
type cell struct {
	*metric.Metric
	of func(metric.Values) results.Float
}

// The numbers of rows and of their groups, in the order in which documents list them. To add a number, add a row here.
var (
	rowCells = []cell{
		namedCell("window_sent", "Updates sent", ""),
		{result.NewMetric("withheld_pct", "Withheld", "%"), func(v metric.Values) results.Float {
			return 100 * v.Of("window_withheld") / max(v.Of("window_generated"), 1)
		}},
		namedCell("window_delivered_frames", "Frames delivered", ""), chartedCell("loss_packets_pct", "Dropped, packets", "%"), namedCell("loss_updates_pct", "Dropped, updates", "%"),
		{result.NewMetric("replaced_pct", "Replaced", "%"), func(v metric.Values) results.Float { return v.Of("loss_replaced_pct") }},
		chartedCell("jain", "Jain's index per cluster", ""), chartedCell("jain_worker_means", "Jain's index per worker", ""), namedCell("jain_workers", "Jain's index of all workers", ""), namedCell("never_delivered", "Workers without an age", ""),
	}
	groupCells = []cell{perCluster.age, perWorker.age, namedCell("never_delivered", "Workers without an age", "")}
)

// multiHopMetrics returns the metrics of rows and groups.
func multiHopMetrics() (all result.Metrics) {
	for _, c := range rowCells {
		all = append(all, c.Metric)
	}
	return append(all, perCluster.age.Metric, perWorker.age.Metric)
}

// aomCluster and aomWorker are the names of the metrics for the ages of groups.
const aomCluster, aomWorker = "aom_cluster_ms", "aom_worker_ms"

// reading selects whether an age is measured per cluster or per worker.
type reading struct {
	name string
	age  cell
}

var (
	perCluster = reading{"per cluster", inMS(aomCluster, "AoM per cluster", "aom_cluster_ns")}
	perWorker  = reading{"per worker", inMS(aomWorker, "AoM per worker", "aom_worker_ns")}
)

func namedCell(name, title, unit string) cell {
	return cell{result.NewMetric(name, title, unit), func(v metric.Values) results.Float { return v.Of(name) }}
}

// chartedCell returns a cell whose number is drawn in a chart.
func chartedCell(name, title, unit string) cell {
	c := namedCell(name, title, unit)
	c.Column = title
	return c
}

func inMS(name, title, ns string) cell {
	c := chartedCell(name, title, "ms")
	c.of = func(v metric.Values) results.Float { return v.Of(ns) / 1e6 }
	return c
}

// over returns statistics of the cells' numbers over all runs.
func over(runs []*netsim.Result, cells []cell, part func(*netsim.Result) metric.Values) (stats results.Stats) {
	for _, c := range cells {
		values := olaf.Map(runs, func(r *netsim.Result) float64 { return float64(c.of(part(r))) })
		stats = append(stats, results.Stat{Metric: c.Metric, Statistic: result.Describe(values)})
	}
	return stats
}

// summarise returns the row of a variant from its valid runs. There must be at least one.
func summarise(v variant, seeds []uint64, runs []*netsim.Result, invalid int) multiHopRow {
	row := multiHopRow{queue: v.queue, seeds: seeds, runs: runs, Row: result.Row{
		Name: v.name, Config: variantConfig{v.queue, v.control, v.law, v.ack}, Runs: len(runs), Invalid: invalid,
		Stats: over(runs, rowCells, func(r *netsim.Result) metric.Values { return r.Values }),
	}}
	for g := range runs[0].Groups {
		stats := over(runs, groupCells, func(r *netsim.Result) metric.Values { return r.Groups[g].Values })
		row.Groups = append(row.Groups, result.Group{Name: runs[0].Groups[g].Group, Stats: stats})
	}
	return row
}

// variantConfig is the configuration of a variant as documents contain it.
type variantConfig struct {
	Queue  string        `json:"queue"`
	Counts netsim.Count  `json:"tc_counts,omitempty"` // empty without transmission control
	Law    tc.LawName    `json:"tc_law,omitempty"`    // empty for the paper's
	Ack    tc.AckContent `json:"tc_ack,omitempty"`    // empty for three numbers
}

// merges reports whether a frame may contain updates from several workers. It may with Olaf, but not with FIFO.
func (r *multiHopRow) merges() bool {
	discipline, _ := engine.FindDiscipline(r.queue)
	return discipline.Merges
}

// readings returns the reading of ages that agrees with the paper's numbers, which is per worker for FIFO and per
// cluster for Olaf, and the other reading.
func (r *multiHopRow) readings() (published, other reading) {
	if r.merges() {
		return perCluster, perWorker
	}
	return perWorker, perCluster
}

// publishedAge returns a group's age under the reading that agrees with the paper.
func (r *multiHopRow) publishedAge(group int) results.Statistic {
	fits, _ := r.readings()
	return *r.Groups[group].Stats.Of(fits.age.Name)
}

// otherAge returns a group's age under the reading that does not agree with the paper.
func (r *multiHopRow) otherAge(group int) results.Statistic {
	_, other := r.readings()
	return *r.Groups[group].Stats.Of(other.age.Name)
}

// bySeed returns a group's ages by seed, under the given reading. The age is missing for a seed without a valid run.
func (r *multiHopRow) bySeed(group int, by reading) []results.Float {
	values := make([]results.Float, len(r.seeds))
	for i, seed := range r.seeds {
		values[i] = results.Missing()
		if at := slices.IndexFunc(r.runs, func(run *netsim.Result) bool { return run.Seed == seed }); at >= 0 {
			values[i] = by.age.of(r.runs[at].Groups[group].Values)
		}
	}
	return values
}

// publishedBySeed returns a group's ages by seed, under the reading that agrees with the paper.
func (r *multiHopRow) publishedBySeed(group int) []results.Float {
	fits, _ := r.readings()
	return r.bySeed(group, fits)
}

// multiHopTable is Table 2 or 3 while it is being filled.
type multiHopTable struct {
	*result.Result
	config    multiHopConfig
	rows      []multiHopRow
	simulated *bench.Simulated
}

// newMultiHopTable returns an empty table for an experiment.
func newMultiHopTable(name, artefact string, o *experiments.Options) *multiHopTable {
	runs, seed := o.Seeds(100, 10)
	r := &multiHopTable{config: changedMultiHop(o, runs, seed)}
	r.Result = experiments.NewResult(name, artefact, o, &r.config)
	r.Metrics = multiHopMetrics()
	r.sayReadings()
	return r
}

// report returns the table. It returns nil if the experiment was interrupted before every variant had finished a seed.
func (r *multiHopTable) report() result.Report {
	if len(r.rows) == 0 {
		return nil
	}
	for _, row := range r.rows {
		r.Rows = append(r.Rows, row.Row)
	}
	return bench.OverSimulation(r.Result, r.simulated)
}

// simulateVariants runs variants with their configurations and returns one row per variant. If a variant has no valid
// run, it returns no rows and an error. After an interrupt, rows cover the seeds that all variants have finished.
func simulateVariants(ctx context.Context, experiment string, o *experiments.Options, seeds []uint64, points []point) (*bench.Simulated, []multiHopRow, error) {
	s := &bench.Simulation{Experiment: experiment, Seeds: seeds}
	for _, p := range points {
		t, err := p.config.topology(p.variant)
		if err != nil {
			return nil, nil, err
		}
		s.Networks = append(s.Networks, bench.Network{Name: p.name, Topology: t})
	}
	out, err := bench.SimulateAll(ctx, s, bench.SimulateOptions{Stream: o.Stream})
	if out == nil {
		return nil, nil, err
	}
	var rows []multiHopRow
	for i, valid := range out.Results {
		if len(valid) == 0 {
			return out, nil, errors.Join(err, out.Err())
		}
		rows = append(rows, summarise(points[i].variant, seeds, valid, len(out.Runs[i])-len(valid)))
	}
	return out, rows, err
}

// point is one simulated network in an experiment: a variant with its configuration.
type point struct {
	name    string
	variant variant
	config  multiHopConfig
}

// runVariants runs the variants and fills the rows of the table.
func (r *multiHopTable) runVariants(ctx context.Context, o *experiments.Options, variants ...variant) (err error) {
	points := olaf.Map(variants, func(v variant) point { return point{v.name, v, r.config} })
	r.simulated, r.rows, err = simulateVariants(ctx, r.Experiment, o, r.config.Seeds, points)
	return err
}

// storeCells stores the cells of one row of the tables. It adds the other reading of the ages in the same runs and, for
// a row with transmission control, the row with the other meaning of N.
func (r *multiHopTable) storeCells(storeCells paper.Ours, name string, m, senders *multiHopRow) {
	loss := paper.Of(*m.Stats.Of("loss_packets_pct"))
	if m.merges() {
		loss.Others = []paper.Other{{Assumption: "by updates", Statistic: *m.Stats.Of("loss_updates_pct"), Judged: true}}
	}
	jain := paper.Of(*m.Stats.Of("jain"))
	jain.Others = []paper.Other{{Assumption: perWorker.name, Statistic: *m.Stats.Of("jain_worker_means"), Judged: true}}
	cells := map[string]paper.Measured{"loss_pct": loss, "jain": jain}
	for g := range m.Groups {
		_, other := m.readings()
		age := paper.Of(m.publishedAge(g))
		age.Others = []paper.Other{{Assumption: other.name, Statistic: m.otherAge(g)}}
		cells[fmt.Sprintf("aom_s%d", g+1)] = age
	}
	if senders != nil {
		for cell, s := range map[string]results.Statistic{"loss_pct": *senders.Stats.Of("loss_packets_pct"), "aom_s1": senders.publishedAge(0),
			"aom_s2": senders.publishedAge(1), "jain": *senders.Stats.Of("jain")} {
			c := cells[cell]
			c.Others = append(c.Others, countingSenders(paper.Of(s)))
			cells[cell] = c
		}
	}
	for cell, c := range cells {
		storeCells[r.Experiment+"."+name+"."+cell] = c
	}
}

// countingSenders returns m as the number obtained if N counts senders, which is not the paper's meaning of N.
func countingSenders(m paper.Measured) paper.Other {
	return paper.Other{Assumption: "N = senders", Statistic: m.Statistic, Breaks: m.Breaks, Judged: true}
}

// sayReadings adds the statements that every multi-hop table contains.
func (r *multiHopTable) sayReadings() {
	r.Say("the parameters that the paper does not give were fitted to these numbers (docs/reference/topology-file.md): agreement is a fit, not a prediction")
	r.Say("the comparison uses FIFO's age per worker and Olaf's per cluster, the only reading that fits, and " +
		"Jain's index over clusters; the table shows both readings")
	r.Say("N of transmission control counts the active clusters, as in the paper's text; if counting senders " +
		"gives another verdict, it is printed below the number")
	r.Say("loss is dropped packets over updates sent; counted by updates, a dropped packet counts for everything " +
		"merged into it; replaced updates count in neither")
	r.Say("drop-tail locks the phases of periodic senders, so FIFO's ages depend on the seed; read each number " +
		"with its interval")
}

// ReadEarlier reads a Table 2 or 3 that an earlier version wrote.
func ReadEarlier(document []byte) (*result.Result, error) {
	var d struct {
		result.Result
		Rows []json.RawMessage `json:"rows"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("read a multi-hop table: %w", err)
	}
	r := &d.Result
	r.Metrics = multiHopMetrics()
	for _, raw := range d.Rows {
		var row struct {
			result.Row
			Groups []json.RawMessage `json:"groups"`
		}
		if err := errors.Join(json.Unmarshal(raw, &row), json.Unmarshal(raw, &row.Row.Stats)); err != nil {
			return nil, fmt.Errorf("read a multi-hop table: %w", err)
		}
		for _, part := range row.Groups {
			var name struct {
				Group string `json:"group"`
			}
			var group result.Group
			if err := errors.Join(json.Unmarshal(part, &name), json.Unmarshal(part, &group.Stats)); err != nil {
				return nil, fmt.Errorf("read a multi-hop table: %w", err)
			}
			group.Name = name.Group
			row.Row.Groups = append(row.Row.Groups, group)
		}
		r.Rows = append(r.Rows, row.Row)
	}
	return r, nil
}
