package olaf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

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
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// MultiHopSchema heads the document of a multi-hop table.
const MultiHopSchema = "olafctl.multihop/v3"

// MultiHopConfig is everything that decides Tables 2 and 3 and Fig. 10. The paper gives the topology, the periods and the
// queues; docs/reference/topology-file.md says where the rest comes from and what it moves.
type MultiHopConfig struct {
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

// MultiHop is the configuration of Table 2; the others change one field each.
func MultiHop(runs int, seed uint64) MultiHopConfig {
	const ms = olaf.Millisecond
	c := MultiHopConfig{
		Period1: 100 * ms, Period2: 100 * ms, SW3: 848 * olaf.Kbps, Beta: 4.5, Alpha: 1, Slots: [3]int{5, 5, 8}, Update: 1000,
		Phase: netsim.Span{To: 54 * ms}, Jitter: 2 * ms, HopDelay: 50 * ms, Threshold: 50 * ms, Slope: tc.Urgency,
		Warmup: 5 * olaf.Second, Duration: 60 * olaf.Second,
	}
	for i := range runs {
		c.Seeds = append(c.Seeds, seed+uint64(i))
	}
	return c
}

// The inputs of Tables 2 and 3 and of Fig. 10.
const (
	period     = "time between a worker's updates"
	bottleneck = "rate of SW3"
	updateSize = "size of an update"
	hopDelay   = "delay of a hop"
)

var multiHopInputs = experiments.Tenth(bottleneck, period, updateSize, hopDelay)

// changedMultiHop returns the configuration with the changed input of the options.
func changedMultiHop(o *experiments.Options, runs int, seed uint64) MultiHopConfig {
	c := MultiHop(runs, seed)
	c.Period1, c.Period2 = experiments.Scale(o, period, c.Period1), experiments.Scale(o, period, c.Period2)
	c.SW3 = experiments.Scale(o, bottleneck, c.SW3)
	c.Update = experiments.Scale(o, updateSize, c.Update)
	c.HopDelay = experiments.Scale(o, hopDelay, c.HopDelay)
	return c
}

// variant is one row: a queue, and whether and how its workers control themselves.
type variant struct {
	name    string
	queue   string
	control netsim.Count // empty: off
}

var (
	fifoPlain   = variant{"fifo", "fifo", ""}
	olafPlain   = variant{"olaf", "olaf", ""}
	olafSenders = variant{"olaf tc (N = senders)", "olaf", netsim.CountSenders}
	olafN       = variant{"olaf tc (N = clusters)", "olaf", netsim.CountClusters}
)

func (c *MultiHopConfig) topology(v variant) (*netsim.Topology, error) {
	t, err := netsim.Preset(nil, "multihop", netsim.Scale{Interval: c.Period1, Interval2: c.Period2, Jitter: &c.Jitter})
	if err != nil {
		return nil, err
	}
	t.Queue, t.Update, t.Warmup, t.Duration = v.queue, c.Update, c.Warmup, c.Duration
	t.Control = netsim.Control{Enabled: v.control != "", Threshold: c.Threshold, Slope: c.Slope, Count: v.control, Window: t.Control.Window}
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

// GroupRow is one group of clusters, ages in ms.
type GroupRow struct {
	Group string        `json:"group"`
	Stats results.Stats `json:"*"`
}

// MultiHopRow is one variant over all seeds.
type MultiHopRow struct {
	Name        string        `json:"name"`
	Queue       string        `json:"queue"`
	Counts      netsim.Count  `json:"tc_counts,omitempty"` // empty without transmission control
	Runs        int           `json:"runs"`                // valid ones, which the statistics are over
	InvalidRuns int           `json:"invalid_runs,omitempty"`
	Stats       results.Stats `json:"*"`
	Groups      []GroupRow    `json:"groups"`
	seeds       []uint64
	runs        []*netsim.Result // valid ones
}

// MarshalJSON writes the statistics among the other members, here and below.
func (r MultiHopRow) MarshalJSON() ([]byte, error) {
	type plain MultiHopRow
	return metric.Inline(plain(r))
}
func (r GroupRow) MarshalJSON() ([]byte, error) { type plain GroupRow; return metric.Inline(plain(r)) }

// cell is a number of these tables: what it is called here, and where a run or a group has it.
type cell struct {
	name string
	of   func(metric.Values) results.Float
}

// The numbers of rows and of their groups, in the order of documents. A new one is a row here.
var (
	rowCells = []cell{
		named("window_sent"),
		{"withheld_pct", func(v metric.Values) results.Float {
			return 100 * v.Of("window_withheld") / max(v.Of("window_generated"), 1)
		}},
		named("window_delivered_frames"), named("loss_packets_pct"), named("loss_updates_pct"),
		{"replaced_pct", func(v metric.Values) results.Float { return v.Of("loss_replaced_pct") }},
		named("jain"), named("jain_worker_means"), named("jain_workers"), named("never_delivered"),
	}
	groupCells = []cell{perCluster.age, perWorker.age, named("never_delivered")}
)

// The ages of groups.
const aomCluster, aomWorker = "aom_cluster_ms", "aom_worker_ms"

// reading says to whom an age belongs.
type reading struct {
	name string
	age  cell
}

var (
	perCluster = reading{"per cluster", inMS(aomCluster, "aom_cluster_ns")}
	perWorker  = reading{"per worker", inMS(aomWorker, "aom_worker_ns")}
)

func named(name string) cell {
	return cell{name, func(v metric.Values) results.Float { return v.Of(name) }}
}

func inMS(name, ns string) cell {
	return cell{name, func(v metric.Values) results.Float { return v.Of(ns) / 1e6 }}
}

// over describes numbers of every run.
func over(runs []*netsim.Result, cells []cell, part func(*netsim.Result) metric.Values) (stats results.Stats) {
	for _, c := range cells {
		values := make([]float64, 0, len(runs))
		for _, r := range runs {
			values = append(values, float64(c.of(part(r))))
		}
		stats = append(stats, results.Stat{Metric: &metric.Metric{Name: c.name}, Statistic: result.Describe(values)})
	}
	return stats
}

// summarise makes the row of a variant from its valid runs, of which there is at least one.
func summarise(v variant, seeds []uint64, runs []*netsim.Result, invalid int) MultiHopRow {
	row := MultiHopRow{
		seeds: seeds, runs: runs,
		Name: v.name, Queue: v.queue, Counts: v.control, Runs: len(runs), InvalidRuns: invalid,
		Stats: over(runs, rowCells, func(r *netsim.Result) metric.Values { return r.Values }),
	}
	for g := range runs[0].Groups {
		stats := over(runs, groupCells, func(r *netsim.Result) metric.Values { return r.Groups[g].Values })
		row.Groups = append(row.Groups, GroupRow{runs[0].Groups[g].Group, stats})
	}
	return row
}

// merges says whether a frame may hold updates of several workers, as Olaf's do and FIFO's do not.
func (r *MultiHopRow) merges() bool {
	discipline, _ := engine.Describe(r.Queue)
	return discipline.Merges
}

// readings are the one that the paper's numbers fit, FIFO's ages per worker and Olaf's per cluster, and the other.
func (r *MultiHopRow) readings() (published, other reading) {
	if r.merges() {
		return perCluster, perWorker
	}
	return perWorker, perCluster
}

// published is a group's age under the reading that fits.
func (r *MultiHopRow) published(group int) results.Statistic {
	fits, _ := r.readings()
	return *r.Groups[group].Stats.Of(fits.age.name)
}

// other is the same under the reading that published does not pick.
func (r *MultiHopRow) other(group int) results.Statistic {
	_, other := r.readings()
	return *r.Groups[group].Stats.Of(other.age.name)
}

// bySeed are a group's ages under a reading, seed by seed; missing of a seed without a valid run.
func (r *MultiHopRow) bySeed(group int, by reading) []results.Float {
	values := make([]results.Float, len(r.seeds))
	for i, seed := range r.seeds {
		values[i] = results.Missing()
		if at := slices.IndexFunc(r.runs, func(run *netsim.Result) bool { return run.Seed == seed }); at >= 0 {
			values[i] = by.age.of(r.runs[at].Groups[group].Values)
		}
	}
	return values
}

// publishedBySeed are those of published.
func (r *MultiHopRow) publishedBySeed(group int) []results.Float {
	fits, _ := r.readings()
	return r.bySeed(group, fits)
}

// MultiHopReport is Table 2 or 3.
type MultiHopReport struct {
	Schema     string             `json:"schema"`
	Experiment string             `json:"experiment"`
	Artefact   string             `json:"artefact"`
	Config     MultiHopConfig     `json:"config"`
	Quick      bool               `json:"quick,omitempty"`
	Partial    bool               `json:"partial,omitempty"`
	Rows       []MultiHopRow      `json:"rows"`
	Statements []string           `json:"statements"`
	PaperRows  []results.PaperRow `json:"paper"`
	simulated  *bench.Simulated
}

// Document is the JSON form.
func (r *MultiHopReport) Document() any { return r }

// report is r, or nothing where an interrupt came before every variant had finished a seed.
func (r *MultiHopReport) report() bench.Report {
	if len(r.Rows) == 0 {
		return nil
	}
	return r
}

// Simulated is what the report is over.
func (r *MultiHopReport) Simulated() *bench.Simulated { return r.simulated }

// Paper compares with the published table.
func (r *MultiHopReport) Paper() []results.PaperRow { return r.PaperRows }

// Err is nil when every run was valid and none is missing.
func (r *MultiHopReport) Err() error { return r.simulated.Err() }

func (r *MultiHopReport) say(format string, args ...any) {
	r.Statements = append(r.Statements, fmt.Sprintf(format, args...))
}

// Table lists every statistic of every row.
func (r *MultiHopReport) Table() (header []string, rows [][]string) {
	header = []string{"row", "group", "metric", "mean", "ci95", "min", "max", "runs"}
	add := func(row, group string, stats results.Stats) {
		for i := range stats {
			s := &stats[i]
			rows = append(rows, []string{row, group, s.Name, text.Exact(s.Mean), text.Exact(s.CI95), text.Exact(s.Min), text.Exact(s.Max), strconv.Itoa(s.N)})
		}
	}
	for i := range r.Rows {
		m := &r.Rows[i]
		add(m.Name, "", m.Stats)
		for k := range m.Groups {
			add(m.Name, m.Groups[k].Group, m.Groups[k].Stats)
		}
	}
	return header, rows
}

// WriteText prints the table, both readings, and every published cell beside ours.
func (r *MultiHopReport) WriteText(w io.Writer, v text.View) error {
	quick := ""
	if r.Quick {
		quick = " (quick: fewer seeds than the table's own)"
	}
	p := text.NewPage(w, v)
	p.Say("", "%s: %s, %s%s", r.Experiment, r.Artefact, olaf.Plural(len(r.Config.Seeds), "seed"), quick)
	p.Printf("\n")
	p.Grid(r.grid())
	if v.Explain {
		p.Say("", "never: workers of whom nothing arrived; ages and Jain's index are per cluster and per worker")
	}
	p.Printf("\n")
	p.Paper(r.PaperRows)
	for _, s := range r.Statements {
		p.Say("- ", "%s", s)
	}
	p.Say("", "%s", r.simulated.Validity())
	return p.Err()
}

// grid is two lines a row: losses in packets and in updates, ages and Jain's index per cluster and per worker.
func (r *MultiHopReport) grid() *table.Grid {
	g := &table.Grid{Keys: 1, Columns: []table.GridColumn{{Header: "QUEUE"}, {Header: "DROPPED, %", Right: true}, {Header: "OF"}, {Header: "REPLACED, %", Right: true, Spare: 2},
		{Header: "NEVER OF 100", Right: true, Spare: 1}, {Header: "AOM S1, ms", Right: true}, {Header: "AOM S2, ms", Right: true}, {Header: "JAIN", Right: true}, {Header: "PER"}}}
	cell := func(stats results.Stats, name string) string { return text.Rounded(stats.Of(name), 1) }
	for i := range r.Rows {
		m := &r.Rows[i]
		first, second := m.Groups[0].Stats, m.Groups[1].Stats
		queue, control, _ := strings.Cut(strings.TrimSuffix(m.Name, ")"), " (")
		g.Add(queue, cell(m.Stats, "loss_packets_pct"), "packets", cell(m.Stats, "replaced_pct"), cell(m.Stats, "never_delivered"),
			cell(first, aomCluster), cell(second, aomCluster), cell(m.Stats, "jain"), "cluster")
		g.Add(control, cell(m.Stats, "loss_updates_pct"), "updates", "", "",
			cell(first, aomWorker), cell(second, aomWorker), cell(m.Stats, "jain_worker_means"), "worker")
	}
	return g
}

// simulateVariants runs some variants, each under a configuration of its own, and makes their rows; of variants without
// a valid run there are none. After an interrupt the rows are over the seeds that all have finished.
func simulateVariants(ctx context.Context, experiment string, o *experiments.Options, seeds []uint64, points []point) (*bench.Simulated, []MultiHopRow, error) {
	s := &bench.Simulation{Experiment: experiment, Seeds: seeds}
	for _, p := range points {
		t, err := p.config.topology(p.variant)
		if err != nil {
			return nil, nil, err
		}
		s.Networks = append(s.Networks, bench.Network{Name: p.name, Topology: t})
	}
	out, err := bench.Simulate(ctx, s, bench.SimulateOptions{Stream: o.Stream})
	if out == nil {
		return nil, nil, err
	}
	var rows []MultiHopRow
	for i, valid := range out.Results {
		if len(valid) == 0 {
			return out, nil, errors.Join(err, out.Err())
		}
		rows = append(rows, summarise(points[i].variant, seeds, valid, len(out.Runs[i])-len(valid)))
	}
	return out, rows, err
}

// point is one network of an experiment.
type point struct {
	name    string
	variant variant
	config  MultiHopConfig
}

// runVariants fills the rows of a report.
func (r *MultiHopReport) runVariants(ctx context.Context, o *experiments.Options, variants ...variant) (err error) {
	var points []point
	for _, v := range variants {
		points = append(points, point{v.name, v, r.Config})
	}
	if r.simulated, r.Rows, err = simulateVariants(ctx, r.Experiment, o, r.Config.Seeds, points); r.simulated != nil {
		r.Partial = r.simulated.Partial
	}
	return err
}

// ours takes the cells of one row of the tables. Beside each stands the other reading of the same runs, and where workers
// control themselves, the row in which N counts otherwise.
func (r *MultiHopReport) ours(ours paper.Ours, name string, m, senders *MultiHopRow) {
	loss := paper.Of(*m.Stats.Of("loss_packets_pct"))
	if m.merges() {
		loss.Others = []paper.Other{{Assumption: "by updates", Statistic: *m.Stats.Of("loss_updates_pct"), Judged: true}}
	}
	jain := paper.Of(*m.Stats.Of("jain"))
	jain.Others = []paper.Other{{Assumption: perWorker.name, Statistic: *m.Stats.Of("jain_worker_means"), Judged: true}}
	cells := map[string]paper.Measured{"loss_pct": loss, "jain": jain}
	for g := range m.Groups {
		_, other := m.readings()
		age := paper.Of(m.published(g))
		age.Others = []paper.Other{{Assumption: other.name, Statistic: m.other(g)}}
		cells[fmt.Sprintf("aom_s%d", g+1)] = age
	}
	if senders != nil {
		for cell, s := range map[string]results.Statistic{"loss_pct": *senders.Stats.Of("loss_packets_pct"), "aom_s1": senders.published(0),
			"aom_s2": senders.published(1), "jain": *senders.Stats.Of("jain")} {
			c := cells[cell]
			c.Others = append(c.Others, countingSenders(paper.Of(s)))
			cells[cell] = c
		}
	}
	for cell, c := range cells {
		ours[r.Experiment+"."+name+"."+cell] = c
	}
}

// countingSenders is a number under the N that is not the paper's.
func countingSenders(m paper.Measured) paper.Other {
	return paper.Other{Assumption: "N = senders", Statistic: m.Statistic, Breaks: m.Breaks, Judged: true}
}

// sayReadings states what every multi-hop table must be read with.
func (r *MultiHopReport) sayReadings() {
	r.say("the parameters that the paper does not give were fitted to these numbers (docs/reference/topology-file.md): agreement is a fit, not a prediction")
	r.say("the comparison takes FIFO's age per worker and Olaf's per cluster, the only reading that fits, and Jain's index over clusters; the table shows both")
	r.say("N of transmission control counts the active clusters, as in the paper's text; where counting senders gives another verdict, it stands below the number")
	r.say("loss counts dropped packets over updates sent; by updates, a dropped packet counts for everything merged into it; replaced updates are neither")
	r.say("drop-tail locks the phases of periodic senders: FIFO's ages depend on the seed, so the interval belongs to the number")
}
