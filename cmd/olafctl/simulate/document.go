package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// EarlierSchema is the schema name, without the version number, of simulation documents from earlier versions.
const EarlierSchema = "olafctl.simulate"

// lostPct is the metric for the share of updates that were lost, according to the counts of the whole run.
var lostPct = result.NewMetric("lost_pct", "Lost, whole run", "%")

// Reductions of ages by the first network compared with another network, over pairs with equal seeds.
var (
	reducedPerCluster = result.NewMetric("aom_reduction_cluster_pct", "Reduced by the first network, per cluster", "%")
	reducedPerWorker  = result.NewMetric("aom_reduction_worker_pct", "Reduced by the first network, per worker", "%")
)

// Document returns the JSON document. It has a row per network with its single runs, or the curves and the phase map of
// a sweep.
func (s *simulation) Document() any {
	r := result.New(cli.SimulateName, "", s.Config)
	r.Provenance, r.Seeds, r.Partial = &s.Provenance, s.Seeds, s.Partial
	r.Title = s.subject()
	r.Found = slices.DeleteFunc(s.headlines(), func(line string) bool { return line == "" })
	r.Statements = slices.Concat([]string{}, s.Remarks, s.Invalid)
	if s.Sweep != nil {
		s.Sweep.addTo(r)
		return r
	}
	d := &document{r}
	row := d.network(s.topology, s.topology.Title(), s.Runs)
	row.Invalid, row.Reasons = len(s.Invalid), s.Invalid
	if s.Waiting != nil {
		d.addWaiting(&row, s.Waiting)
	}
	r.Rows = append(r.Rows, row)
	for i := range s.Versus {
		v := &s.Versus[i]
		row := d.network(s.others[i], v.Name, v.Runs)
		row.Config = v.Config
		for _, c := range []struct {
			*metric.Metric
			of *results.Statistic
		}{
			{reducedPerCluster, &v.Comparison.AoMReduction.ClusterCluster}, {reducedPerWorker, &v.Comparison.AoMReduction.WorkerWorker},
		} {
			d.declare(c.Metric)
			row.Stats = append(row.Stats, results.Stat{Metric: c.Metric, Statistic: *c.of})
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

// document is a simulation's document while it is being built.
type document struct{ *result.Result }

// declare adds the metrics that the document does not have yet.
func (d *document) declare(metrics ...*metric.Metric) {
	for _, m := range metrics {
		if !slices.ContainsFunc(d.Metrics, func(one *metric.Metric) bool { return one.Name == m.Name }) {
			plain := *m
			plain.Column = "" // the bench beside the document draws its charts
			d.Metrics = append(d.Metrics, &plain)
		}
	}
}

// network returns a row with the runs of a network.
func (d *document) network(t *netsim.Topology, name string, runs []*netsim.Result) result.Row {
	row := result.Row{Name: name, Runs: len(runs), Stats: results.Stats{}}
	if len(runs) == 0 {
		return row
	}
	metrics := append(slices.Clone(netsim.StatisticsOf(t)), lostPct)
	if l := runs[0].Totals.Ledger(); l != nil {
		for i := range l.Counters {
			if c := metric.CountOf(&l.Counters[i]); !slices.ContainsFunc(metrics, func(m *metric.Metric) bool { return m.Name == c.Name }) {
				metrics = append(metrics, c)
			}
		}
	}
	d.declare(metrics...)
	d.declare(netsim.PartStatistics()...)
	d.declare(netsim.PortStatistics()...)
	var values [][]metric.Float
	for _, run := range runs {
		if sent := run.Background[0]; sent > 0 {
			if row.Totals == nil {
				row.Totals = map[string]int64{}
			}
			row.Totals["background_sent"] += int64(sent)
			row.Totals["background_delivered"] += int64(run.Background[1])
		}
		one := make([]metric.Float, len(metrics))
		for i, m := range metrics {
			switch {
			case m == lostPct:
				one[i] = run.LostPct
			case run.Values.Has(m.Name):
				one[i] = run.Of(m.Name)
			default:
				one[i] = metric.Float(run.Totals.Of(m.Name))
			}
		}
		values = append(values, one)
		row.BySeed = append(row.BySeed, result.Run{Seed: run.Seed, Numbers: metric.NewValues(metrics,
			func(i int) metric.Float { return one[i] }), Parts: parts(run)})
	}
	row.Stats = result.Metrics(metrics).Stats(values, "no run had it")
	return row
}

// parts returns the results for each group, each cluster and each port in a run. Groups and clusters are measured
// within the window, ports over the whole run.
func parts(run *netsim.Result) (all []result.Part) {
	for i := range run.Groups {
		g := &run.Groups[i]
		all = append(all, result.Part{Kind: "group", Name: g.Group, Numbers: g.Values})
	}
	for i := range run.Clusters {
		c := &run.Clusters[i]
		all = append(all, result.Part{Kind: "cluster", Name: strconv.Itoa(c.Cluster), Of: c.Group, Numbers: c.Values})
	}
	for i := range run.Ports {
		p := &run.Ports[i]
		all = append(all, result.Part{Kind: "port", Name: p.Port, Of: fmt.Sprintf("%s, %d slots", p.Queue, p.Slots), Numbers: p.Values})
	}
	return all
}

// addWaiting adds the results of workers that wait for answers to a row.
func (d *document) addWaiting(row *result.Row, w *job.Clustered) {
	stats := w.Stats()
	for i := range stats {
		d.declare(stats[i].Metric)
	}
	row.Stats = append(row.Stats, stats...)
	for name, n := range w.Totals() {
		if row.Totals == nil {
			row.Totals = map[string]int64{}
		}
		row.Totals[name] = n
	}
}

// addTo adds the figures of a parameter sweep: its curves, and the share of updates that arrive at each phase.
func (s *sweepDocument) addTo(r *result.Result) {
	r.Artefact = "Sweep"
	for _, panel := range sweepPanels {
		p := result.Panel{Name: panel.name, Group: s.Parameter, XLabel: s.Parameter + " [ms]", YLabel: panel.unit}
		for _, one := range panel.series {
			curve := result.Series{Name: one.name}
			for i := range s.Points {
				st := *s.Points[i].Stats.Of(one.statistic)
				for _, part := range []*results.Float{&st.Mean, &st.SD, &st.CI95, &st.Min, &st.Max} {
					*part /= panel.per
				}
				curve.X, curve.Y = append(curve.X, s.Points[i].ValueNS/1e6), append(curve.Y, st)
			}
			p.Series = append(p.Series, curve)
		}
		r.Panels = append(r.Panels, p)
	}
	b := result.Block{Name: "phases", Unit: "% of sent", Map: s.Parameter + " [ms]", XLabel: "phase of the worker [% of its period]"}
	for bin := range cells.PhaseBins {
		b.Columns = append(b.Columns, strconv.Itoa(bin*100/cells.PhaseBins))
	}
	for i := range s.Points {
		line := result.Line{Name: strconv.FormatFloat(s.Points[i].ValueNS/1e6, 'g', -1, 64)}
		for _, share := range s.Points[i].Delivered {
			line.Cells = append(line.Cells, results.Describe([]results.Float{100 * share}, "no worker has the phase"))
		}
		b.Rows = append(b.Rows, line)
	}
	r.Blocks = append(r.Blocks, b)
}

// sweepPanels lists the panels of a parameter sweep and the statistics that they show.
var sweepPanels = []struct {
	name, unit string
	per        results.Float // divisor for the document's values
	series     []sweepSeries
}{
	{"Dropped packets", "dropped [% of updates sent]", 1, []sweepSeries{{"dropped", "loss_packets_pct"}}},
	{"Age of model", "mean AoM [ms]", 1e6, []sweepSeries{{"per cluster", "aom_cluster_ns"},
		{"per worker", "aom_worker_ns"}, {"oldest worker", "aom_worker_max_ns"}}},
	{"Fairness over workers", "Jain's index", 1, []sweepSeries{{"Jain", "jain_workers"}}},
	{"Workers without an age", "workers with fewer than two deliveries", 1, []sweepSeries{{"never", "never_delivered"}}},
}

type sweepSeries struct{ name, statistic string }

// ReadEarlier reads a simulation document from an earlier version. The document contains only a sweep, because earlier
// versions stored single runs in other files.
func ReadEarlier(raw []byte) (*result.Result, error) {
	var kept struct {
		Partial bool           `json:"partial"`
		Sweep   *sweepDocument `json:"sweep"`
	}
	if err := json.Unmarshal(raw, &kept); err != nil {
		return nil, fmt.Errorf("read a simulation: %w", err)
	}
	r := result.New(cli.SimulateName, "", nil)
	if r.Partial = kept.Partial; kept.Sweep != nil && len(kept.Sweep.Points) > 0 {
		kept.Sweep.addTo(r)
		r.Found = []string{kept.Sweep.brief()}
	}
	return r, nil
}

// brief summarises a sweep in one line.
func (s *sweepDocument) brief() string {
	var ages []*results.Statistic
	for i := range s.Points {
		if age := s.Points[i].Stats.Of("aom_cluster_ns"); age.Known() {
			ages = append(ages, age)
		}
	}
	brief := olaf.Plural(len(s.Points), s.Parameter)
	if len(ages) > 0 {
		byMean := func(a, b *results.Statistic) int { return cmp.Compare(a.Mean, b.Mean) }
		brief += ", AoM " + text.Age(slices.MinFunc(ages, byMean)) + " to " + text.Age(slices.MaxFunc(ages, byMean))
	}
	return brief
}
