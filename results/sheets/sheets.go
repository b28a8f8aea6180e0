// Package sheets converts a result to a book of tables with charts. The tables are README, Summary, the experiment's
// own sheets, Statistics, Comparisons, Reduction, Clusters, CDF, Loss, Speedup, Sawtooth, Runs and a sample of events.
// Exporters decide only how the tables look.
package sheets

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// Result contains all data about one experiment that exporters need.
type Result struct {
	Bench *results.Bench
	Runs  []results.Run
	// Samples are some of the delivered frames, in the order of their runs. Delivered is the number of all delivered
	// frames.
	Samples   []Sample
	Delivered int64
	// RawRows describes where all frames can be found.
	RawRows string
	// DocumentOnly is set if there are no individual runs. Invalid then contains the reasons why the document must not
	// be used.
	DocumentOnly bool
	Invalid      []string
	// Own contains the sheets that the experiment lays out itself, with their figures.
	Own []table.Sheet
}

// Sample is a delivered frame with the run that it belongs to.
type Sample struct {
	Queue       string
	OutRateBPS  int64
	Run         int
	Observation olaf.Observation
}

// Book returns the sheets of r, first those of the experiment and then the common ones. Sheets without rows are
// omitted.
func Book(r *Result) *table.Book {
	title := "olafctl " + r.Bench.Experiment
	book := &table.Book{Title: title}
	own := r.Own
	if len(own) == 0 {
		own = []table.Sheet{PublishedSheet(r.Bench)}
	}
	for _, s := range slices.Concat([]table.Sheet{Readme(r), Summary(r.Bench)}, own, []table.Sheet{Statistics(r.Bench), Comparisons(r.Bench), Reductions(r.Bench),
		twinSheet(r.Bench), Clusters(r.Bench), CDF(r.Bench), loss(r.Bench), Speedup(r.Bench), Sawtooths(r.Samples), Runs(r.Runs), events(r)}) {
		if len(s.Rows) > 0 {
			s.Command = strings.Join(r.Bench.Provenance.Command, " ")
			book.Sheets = append(book.Sheets, s)
		}
	}
	addFormulas(book, r)
	return book
}

// configuration returns the name of a configuration, such as "olaf 40Gbps".
func configuration(queue string, rateBPS int64) string {
	return queue + " " + olaf.Rate(rateBPS).String()
}

// naming returns a function that names rows in a figure. The names do not contain the rate if all rows have the same
// rate and their queues differ.
func naming(rows []results.Row) func(r *results.Row) string {
	queues, rates := map[string]bool{}, map[int64]bool{}
	for i := range rows {
		queues[rows[i].Queue], rates[rows[i].OutRateBPS] = true, true
	}
	if len(rates) == 1 && len(queues) == len(rows) && len(rows) > 1 {
		return func(r *results.Row) string { return r.Queue }
	}
	return func(r *results.Row) string { return configuration(r.Queue, r.OutRateBPS) }
}

// minimumSeeds is the minimum number of runs for which a figure shows an interval. With two runs, the interval is often
// wider than the value.
const minimumSeeds = 3

// Half returns the half-width of a statistic's interval as a cell for a figure.
func Half(st *results.Statistic) table.Cell {
	if st.N < minimumSeeds {
		return table.Missing("an interval needs three runs")
	}
	return number(st.CI95, "")
}

// Readme returns a sheet that describes the result in words, with its origin.
func Readme(r *Result) table.Sheet {
	b := r.Bench
	s := table.Sheet{Name: "README", Title: "What this is and how it came about", Columns: []table.Column{{Header: "item"}, {Header: "value"}}}
	add := func(item, value string) {
		if value != "" {
			s.Rows = append(s.Rows, []table.Cell{table.S(item), table.S(value)})
		}
	}
	p := &b.Provenance
	add("experiment", b.Experiment)
	add("valid", r.Validity())
	for _, said := range Real(b) {
		add(said[0], said[1])
	}
	for _, statement := range slices.Concat(b.Terms, b.Statements) {
		add("note", statement)
	}
	add("age of model averaged over", b.Window)
	add("command", strings.Join(p.Command, " "))
	add("device", p.Device)
	add("register map", p.RegisterMap)
	add("tool", strings.TrimSpace(p.Tool+" "+p.Version))
	commit := p.Commit
	if p.Dirty {
		commit += " with local changes"
	}
	add("built from commit", commit)
	add("Go", p.Go)
	add("host", strings.TrimSpace(p.Host+" "+p.System))
	add("started", p.Started)
	add("finished", p.Finished)
	for _, d := range p.Digests {
		add("SHA-256 of "+d.Name, d.SHA256)
	}
	for _, kv := range results.ListLeaves(b.Config) {
		add("config "+kv[0], kv[1])
	}
	return s
}

// Real returns texts about the quality of runs in real time, each with its topic and row. The list is empty for other
// runs.
func Real(b *results.Bench) (list [][2]string) {
	for i := range b.Rows {
		r := &b.Rows[i]
		for _, said := range text.Real(r) {
			list = append(list, [2]string{said.About + ", " + configuration(r.Queue, r.OutRateBPS), said.Text})
		}
	}
	return list
}

// Valid reports whether the result is valid and may be used.
func (r *Result) Valid() bool { return r.Bench.Valid() && len(r.Invalid) == 0 }

// Validity returns a sentence about whether the result is valid, with the reasons if it is not.
func (r *Result) Validity() string {
	b := r.Bench
	switch {
	case r.DocumentOnly && r.Valid():
		return "yes: every part was carried out to its end"
	case len(r.Invalid) > 0:
		return "no: " + strings.Join(r.Invalid, "; ")
	}
	if b.Valid() && b.Provenance.Device == "" { // simulations do not capture frames
		return "yes: every run kept the accounting identities"
	}
	if b.Valid() {
		return "yes: every run kept the accounting identities and lost nothing in the capture"
	}
	var why []string
	if b.Partial {
		why = append(why, "stopped before all runs were done")
	}
	for i := range b.Rows {
		if r := &b.Rows[i]; !r.Valid {
			why = append(why, fmt.Sprintf("%s: %d runs left out (%s)", configuration(r.Queue, r.OutRateBPS), r.InvalidRuns, strings.Join(r.ExclusionReasons(), "; ")))
		}
	}
	return "no: " + strings.Join(why, "; ")
}

// Summary returns a sheet that compares our results with the paper's numbers.
func Summary(b *results.Bench) table.Sheet {
	s := table.Sheet{Name: "Summary", Title: "Ours beside the published numbers", Columns: []table.Column{
		{Header: "artefact"}, {Header: "row"}, {Header: "column"}, {Header: "unit"},
		{Header: "ours", Format: table.General}, {Header: "95 % ±", Format: table.General}, {Header: "runs", Format: table.Integer},
		{Header: "paper", Format: table.General}, {Header: "difference", Unit: "%", Format: table.Fixed1},
		{Header: "basis"}, {Header: "kind"}, {Header: "verdict"}, {Header: "expected"}, {Header: "note"}, {Header: "source"}}}
	for i := range b.Paper {
		p := &b.Paper[i]
		s.Rows = append(s.Rows, []table.Cell{table.S(p.Artefact), table.S(p.Row), table.S(p.Column), table.S(p.Unit),
			number(p.Ours.Mean, p.Ours.Reason), number(p.Ours.CI95, ""), table.I(int64(p.Ours.N)), number(p.Published, ""),
			number(p.DeviationPct, ""), table.S(p.Basis), table.S(p.Kind), table.S(p.Verdict), table.S(p.Expected), table.S(p.Note), table.S(p.Source)})
	}
	s.Notes = slices.Concat(b.Terms, b.Statements)
	return s
}

// Mean returns a cell with the mean of a statistic, or with the reason why it is missing.
func Mean(st *results.Statistic) table.Cell { return number(st.Mean, st.Reason) }

func number(f results.Float, why string) table.Cell {
	if !f.Known() {
		return table.Missing(why)
	}
	return table.N(float64(f))
}

// statisticColumns returns the columns for a statistic. statisticCells returns the cells in these columns.
func statisticColumns(format table.Format) []table.Column {
	return []table.Column{{Header: "mean", Format: format}, {Header: "sd", Format: format}, {Header: "95 % ±", Format: format},
		{Header: "min", Format: format}, {Header: "max", Format: format}, {Header: "runs", Format: table.Integer}}
}

func statisticCells(st *results.Statistic) []table.Cell {
	return []table.Cell{number(st.Mean, st.Reason), number(st.SD, ""), number(st.CI95, ""), number(st.Min, ""), number(st.Max, ""), table.I(int64(st.N))}
}

// Statistics returns a sheet with every metric of every configuration over its runs.
func Statistics(b *results.Bench) table.Sheet {
	s := table.Sheet{Name: "Statistics", Title: "Every metric over the runs of each configuration"}
	s.Columns = append([]table.Column{{Header: "queue"}, {Header: "output rate"}, {Header: "metric"}, {Header: "name"}, {Header: "unit"}}, statisticColumns(table.General)...)
	for i := range b.Rows {
		r := &b.Rows[i]
		for k := range r.Stats {
			m := &r.Stats[k]
			cells := []table.Cell{table.S(r.Queue), table.S(olaf.Rate(r.OutRateBPS).String()), table.S(m.Title), table.S(m.Name), table.S(m.Unit)}
			s.Rows = append(s.Rows, append(cells, statisticCells(&m.Statistic)...))
		}
	}
	return s
}

// Comparisons returns a sheet with the Age-of-Model reductions under each reading, and the speed-ups.
func Comparisons(b *results.Bench) table.Sheet {
	s := table.Sheet{Name: "Comparisons", Title: "One queue against another, run by run over equal seeds"}
	s.Columns = append([]table.Column{{Header: "queue"}, {Header: "against"}, {Header: "output rate"}, {Header: "comparison"}, {Header: "unit"}}, statisticColumns(table.Fixed1)...)
	for i := range b.Comparisons {
		c := &b.Comparisons[i]
		for _, line := range []struct {
			name, unit string
			value      *results.Statistic
		}{
			{"AoM reduction, both per cluster (literal)", "%", &c.AoMReduction.ClusterCluster},
			{"AoM reduction, both per worker", "%", &c.AoMReduction.WorkerWorker},
			{"AoM reduction, " + c.Versus + " per worker, " + c.Queue + " per cluster", "%", publishedMixed(b, c)},
			{"speed-up to N updates per worker", "x", &c.Speedup},
		} {
			if line.value == nil {
				continue
			}
			cells := []table.Cell{table.S(c.Queue), table.S(c.Versus), table.S(olaf.Rate(c.OutRateBPS).String()), table.S(line.name), table.S(line.unit)}
			s.Rows = append(s.Rows, append(cells, statisticCells(line.value)...))
		}
	}
	return s
}

// publishedMixed returns the reduction with the mixed reading of ages, or nil if the paper has no number that it is
// compared with. The mixed reading was chosen because it fits the published numbers.
func publishedMixed(b *results.Bench, c *results.Comparison) *results.Statistic {
	if results.FindMixedReduction(b.Paper, c) == nil {
		return nil
	}
	return &c.AoMReduction.WorkerCluster
}

// loss returns a sheet that divides the loss, as the paper defines it, by cause.
func loss(b *results.Bench) table.Sheet {
	s := table.Sheet{Name: "Loss", Title: "Lost as the paper counts it (sent − received − aggregated), by what happened; means over runs",
		Columns: []table.Column{{Header: "configuration"}, {Header: "lost", Unit: "%", Format: table.Fixed1}, {Header: "lost ±", Unit: "%", Format: table.Fixed1}, {Header: "lost", Unit: "updates", Format: table.Fixed1}}}
	chart := table.Chart{Kind: table.Stacked, Title: "Lost updates by what happened", YTitle: "lost [% of sent]"}
	named := naming(b.Rows)
	parts := slices.DeleteFunc(results.MetricsIn(b.Rows), func(m *metric.Metric) bool { return m.Part == "" })
	for _, part := range parts {
		name := strings.ToLower(part.Title)
		chart.Series = append(chart.Series, table.Series{Name: name, Column: len(s.Columns)})
		s.Columns = append(s.Columns, table.Column{Header: name, Unit: "%", Format: table.Fixed1})
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		share, lost, sent := r.Stats.Of("lost_pct"), r.Stats.Of("lost"), r.Stats.Of("sent")
		cells := []table.Cell{table.S(named(r)), number(share.Mean, share.Reason), Half(share), number(lost.Mean, lost.Reason)}
		for _, part := range parts {
			cells = append(cells, number(100*r.Stats.Of(part.Name).Mean/sent.Mean, ""))
		}
		s.Rows = append(s.Rows, cells)
	}
	chart.Series = slices.DeleteFunc(chart.Series, func(one table.Series) bool {
		return !slices.ContainsFunc(s.Rows, func(row []table.Cell) bool { return row[one.Column].Number != 0 })
	})
	if last := len(chart.Series) - 1; last >= 0 && len(b.Rows) <= mostBars {
		chart.Series[last].ErrorColumn = 2
		s.Charts = []table.Chart{chart}
	}
	return s
}

// mostBars is the maximum number of configurations whose losses are drawn as bars. Experiments with more
// configurations, such as Fig. 10, have separate figures.
const mostBars = 20

// Runs returns a sheet with a row for each run.
func Runs(runs []results.Run) table.Sheet {
	s := table.Sheet{Name: "Runs", Title: "One row a run", Columns: []table.Column{{Header: "queue"}, {Header: "output rate"},
		{Header: "run", Format: table.Integer}, {Header: "seed"}, {Header: "valid"}}}
	real := slices.ContainsFunc(runs, func(r results.Run) bool { return r.LatenessNS != nil })
	if real {
		s.Columns = append(s.Columns, realColumns...)
	}
	metrics := results.MetricsOf(runs)
	for _, m := range metrics {
		s.Columns = append(s.Columns, table.Column{Header: m.Title, Unit: m.Unit, Format: formatOf(m.Unit)})
	}
	for i := range runs {
		r := &runs[i]
		valid := "yes"
		if !r.Valid() {
			valid = "no: " + strings.Join(r.Invalid, "; ")
		}
		cells := []table.Cell{table.S(r.Queue), table.S(olaf.Rate(r.OutRateBPS).String()), table.I(int64(r.Index)), table.U(r.Seed), table.S(valid)}
		if real {
			cells = append(cells, realCells(r)...)
		}
		for _, m := range metrics {
			cells = append(cells, number(r.Value(m), r.Missing[m.Name]))
		}
		s.Rows = append(s.Rows, cells)
	}
	return s
}

// realColumns lists the columns of the runs' sheet that only runs in real time have.
var realColumns = []table.Column{
	{Header: "decisions", Format: table.Integer}, {Header: "as the engine's", Format: table.Integer},
	{Header: "late, p50", Unit: "ns", Format: table.Integer}, {Header: "late, p99", Unit: "ns", Format: table.Integer}, {Header: "late, most", Unit: "ns", Format: table.Integer},
	{Header: "rate inside bursts", Unit: "bit/s", Format: table.General}, {Header: "ages withheld"},
}

func realCells(r *results.Run) []table.Cell {
	cells := make([]table.Cell, len(realColumns))
	if d := r.Decisions; d != nil {
		cells[0], cells[1] = table.I(d.Checked), table.I(d.Equal)
	}
	if l := r.LatenessNS; l != nil {
		cells[2], cells[3], cells[4] = table.I(l.P50), table.I(l.P99), table.I(l.Max)
	}
	if r.BurstRate > 0 {
		cells[5] = number(r.BurstRate, "")
	}
	cells[6] = table.S(r.Withheld)
	return cells
}

func formatOf(unit string) table.Format {
	switch unit {
	case "updates", "frames", "workers":
		return table.Integer
	case "":
		return table.Fixed3
	}
	return table.Fixed1
}

// Clusters returns a sheet with the Age of Model of every cluster under both readings. It has a column for each
// configuration.
func Clusters(b *results.Bench) table.Sheet {
	s := table.Sheet{Name: "Clusters", Title: "Mean age of model of every cluster, its own and that of its workers: mean over runs with the 95 % half-width", Columns: []table.Column{{Header: "cluster"}}}
	readings := []struct {
		suffix string
		of     func(*results.ClusterRow) *results.Statistic
		chart  table.Chart
	}{
		{"", func(c *results.ClusterRow) *results.Statistic { return &c.AoM }, table.Chart{Kind: table.Bars, Title: "Age of model per cluster", XTitle: "cluster", YTitle: "mean AoM [ns]"}},
		{" per worker", func(c *results.ClusterRow) *results.Statistic { return &c.AoMWorker }, table.Chart{Kind: table.Bars, Title: "Age of model per worker, mean of its cluster", XTitle: "cluster", YTitle: "mean AoM [ns]"}},
	}
	named := naming(b.Rows)
	index := map[int]int{}
	for i := range b.Rows {
		r := &b.Rows[i]
		name := named(r)
		for _, c := range r.Clusters {
			if _, ok := index[c.Cluster]; !ok {
				index[c.Cluster] = len(s.Rows)
				cells := make([]table.Cell, len(s.Columns))
				cells[0] = table.S(fmt.Sprint(c.Cluster))
				s.Rows = append(s.Rows, cells)
			}
		}
		for m := range readings {
			reading := &readings[m]
			reading.chart.Series = append(reading.chart.Series, table.Series{Name: name, Column: len(s.Columns), ErrorColumn: len(s.Columns) + 1})
			s.Columns = append(s.Columns, table.Column{Header: name + reading.suffix, Unit: "ns", Format: table.Fixed1}, table.Column{Header: name + reading.suffix + " ±", Unit: "ns", Format: table.Fixed1})
			for k := range s.Rows {
				s.Rows[k] = append(s.Rows[k], table.Cell{}, table.Cell{})
			}
			for k := range r.Clusters {
				st := reading.of(&r.Clusters[k])
				row := s.Rows[index[r.Clusters[k].Cluster]]
				row[len(row)-2], row[len(row)-1] = number(st.Mean, ""), Half(st)
			}
		}
	}
	const mostClusters, mostConfigurations = 64, 2 * table.MostSeries
	if len(s.Rows) > 0 && len(s.Rows) <= mostClusters && len(b.Rows) <= mostConfigurations {
		s.Charts = []table.Chart{readings[0].chart, readings[1].chart}
	}
	return s
}

// CDF returns a sheet with the distribution of aggregations per outgoing update. It has a column for each configuration
// that aggregates.
func CDF(b *results.Bench) table.Sheet {
	s := table.Sheet{Name: "CDF", Title: "Share of outgoing updates with at most n aggregations (Fig. 6), over all runs",
		Columns: []table.Column{{Header: "aggregations", Format: table.Integer}}}
	chart := table.Chart{Kind: table.Steps, Title: "Aggregations per outgoing update", XTitle: "aggregations", YTitle: "share of outgoing updates", YMax: 1}
	length := 0
	named := naming(b.Rows)
	for i := range b.Rows {
		if r := &b.Rows[i]; len(r.CDF) > 1 {
			length = max(length, len(r.CDF))
			chart.Series = append(chart.Series, table.Series{Name: named(r), Column: len(s.Columns)})
			s.Columns = append(s.Columns, table.Column{Header: named(r), Format: table.Fixed3})
		}
	}
	for le := range length {
		cells := []table.Cell{table.I(int64(le))}
		for i := range b.Rows {
			switch cdf := b.Rows[i].CDF; {
			case len(cdf) <= 1:
			case le < len(cdf):
				cells = append(cells, number(cdf[le].P, ""))
			default:
				cells = append(cells, table.N(1))
			}
		}
		s.Rows = append(s.Rows, cells)
	}
	if length > 0 {
		s.Charts = []table.Chart{chart}
	}
	return s
}

// events returns a sheet with a sample of the delivered frames.
func events(r *Result) table.Sheet {
	s := table.Sheet{Name: "Events", Title: "A sample of the delivered frames", RawRows: r.RawRows, Columns: []table.Column{{Header: "queue"}, {Header: "output rate"},
		{Header: "run", Format: table.Integer}, {Header: "delivered at", Unit: "ps"}, {Header: "cluster", Format: table.Integer}, {Header: "newest worker", Format: table.Integer},
		{Header: "sequence", Format: table.Integer}, {Header: "updates inside", Format: table.Integer}, {Header: "generated", Unit: "ns"},
		{Header: "age", Unit: "ns", Format: table.Fixed1}, {Header: "in the queue", Unit: "ns", Format: table.Fixed1}, {Header: "workers inside"}}}
	for i := range r.Samples {
		m := &r.Samples[i]
		o, u := &m.Observation, &m.Observation.Update
		queued := table.Missing("not measured")
		if o.Queued >= 0 {
			queued = table.N(o.Queued.NS())
		}
		s.Rows = append(s.Rows, []table.Cell{table.S(m.Queue), table.S(olaf.Rate(m.OutRateBPS).String()), table.I(int64(m.Run)), table.S(fmt.Sprint(int64(o.At))),
			table.I(int64(u.Cluster)), table.I(int64(u.Worker)), table.I(int64(u.Seq)), table.I(int64(u.Count)), table.U(u.GenNS),
			table.N(results.AgeOf(o).NS()), queued, table.S(contributors(o))})
	}
	if more := r.Delivered - int64(len(r.Samples)); more > 0 && len(s.Rows) > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d frames are shown; for all of them: %s", len(r.Samples), r.Delivered, r.RawRows))
	}
	return s
}

func contributors(o *olaf.Observation) string {
	names := make([]string, len(o.Contributors))
	for i, c := range o.Contributors {
		names[i] = fmt.Sprint(c.Worker)
	}
	return strings.Join(names, " ")
}

// maxSawteeth is the maximum number of deliveries that a plotted age sawtooth shows.
const maxSawteeth = 30

// Sawtooths returns a sheet with the age of one cluster over time in the sampled frames, and a pair of columns for each
// configuration. The cluster is the smallest that is delivered at least twice in the sample of every configuration.
func Sawtooths(samples []Sample) table.Sheet {
	order, frames := firstRuns(samples)
	cluster, ok := commonCluster(len(order), func(i int) []olaf.Observation { return frames[order[i]] })
	if !ok {
		return table.Sheet{}
	}
	s := table.Sheet{Name: "Sawtooth", Title: fmt.Sprintf("Age of Model of cluster %d over time, first run, first deliveries of the sample", cluster)}
	charts := map[int64]int{}     // index in s.Charts of the chart for each rate
	ends := map[int64]olaf.Time{} // the charts for a rate end where the shortest of their lines ends
	for _, c := range order {
		vertices := results.SawtoothCorners(frames[c], cluster)
		last := vertices[min(len(vertices), 2*maxSawteeth)-1].At
		if end, ok := ends[c.rate]; !ok || last < end {
			ends[c.rate] = last
		}
	}
	for _, c := range order {
		name := configuration(c.queue, c.rate)
		at := len(s.Columns)
		s.Columns = append(s.Columns, table.Column{Header: name + " time", Unit: "ns", Format: table.Fixed1}, table.Column{Header: name + " age", Unit: "ns", Format: table.Fixed1})
		for k, v := range results.SawtoothCorners(frames[c], cluster) {
			if v.At > ends[c.rate] {
				break
			}
			for k >= len(s.Rows) {
				s.Rows = append(s.Rows, nil)
			}
			s.Rows[k] = append(pad(s.Rows[k], at), table.N(olaf.Duration(v.At).NS()), table.N(v.Age.NS()))
		}
		if _, ok := charts[c.rate]; !ok {
			charts[c.rate] = len(s.Charts)
			s.Charts = append(s.Charts, table.Chart{Kind: table.Lines, Title: fmt.Sprintf("Age of model of cluster %d at %s", cluster, olaf.Rate(c.rate)), XTitle: "time [ns]", YTitle: "age [ns]"})
		}
		chart := &s.Charts[charts[c.rate]]
		chart.Series = append(chart.Series, table.Series{Name: c.queue, X: at, Column: at + 1})
	}
	for k := range s.Rows {
		s.Rows[k] = pad(s.Rows[k], len(s.Columns))
	}
	return s
}

// sampled identifies a run of a configuration in a sample.
type sampled struct {
	queue string
	rate  int64
	run   int
}

// firstRuns returns the first run of each configuration in a sample, with the frames of these runs.
func firstRuns(samples []Sample) (order []sampled, frames map[sampled][]olaf.Observation) {
	frames = map[sampled][]olaf.Observation{}
	for i := range samples {
		m := &samples[i]
		c := sampled{m.Queue, m.OutRateBPS, m.Run}
		if frames[c] == nil {
			order = append(order, c)
		}
		frames[c] = append(frames[c], m.Observation)
	}
	seen := map[string]bool{}
	order = slices.DeleteFunc(order, func(c sampled) bool {
		name := configuration(c.queue, c.rate)
		again := seen[name]
		seen[name] = true
		return again
	})
	return order, frames
}

// pad appends empty cells until there are n cells.
func pad(cells []table.Cell, n int) []table.Cell {
	for len(cells) < n {
		cells = append(cells, table.Cell{})
	}
	return cells
}

// commonCluster returns the smallest cluster that is delivered at least twice in each of n samples. It returns false if
// there is none.
func commonCluster(n int, sample func(int) []olaf.Observation) (olaf.ClusterID, bool) {
	delivered := map[olaf.ClusterID]int{}
	for i := range n {
		times := map[olaf.ClusterID]int{}
		for _, o := range sample(i) {
			if times[o.Update.Cluster]++; times[o.Update.Cluster] == 2 {
				delivered[o.Update.Cluster]++
			}
		}
	}
	var common []olaf.ClusterID
	for cluster, samples := range delivered {
		if samples == n {
			common = append(common, cluster)
		}
	}
	if len(common) == 0 {
		return 0, false
	}
	return slices.Min(common), true
}

// Reductions returns a sheet with the reduction of ages by one queue compared with another, under each reading of an
// age.
func Reductions(b *results.Bench) table.Sheet {
	s := table.Sheet{Name: "Reduction", Title: "Mean age of model: by how much it is lower, run by run over equal seeds, under each reading of what an age belongs to",
		Columns: []table.Column{{Header: "queues"}}}
	chart := table.Chart{Kind: table.Bars, Title: "Lower age of model, by what an age belongs to", YTitle: "lower by [%]"}
	type reading struct {
		name string
		of   func(*results.AoMReduction) *results.Statistic
	}
	readings := []reading{
		{"both per cluster", func(r *results.AoMReduction) *results.Statistic { return &r.ClusterCluster }},
		{"both per worker", func(r *results.AoMReduction) *results.Statistic { return &r.WorkerWorker }},
	}
	ages := b.CompareAges()
	if slices.ContainsFunc(ages, func(c results.Comparison) bool { return publishedMixed(b, &c) != nil }) {
		readings = append(readings, reading{"first per cluster, other per worker (fits the paper)", func(r *results.AoMReduction) *results.Statistic { return &r.WorkerCluster }})
	}
	for _, reading := range readings {
		chart.Series = append(chart.Series, table.Series{Name: reading.name, Column: len(s.Columns), ErrorColumn: len(s.Columns) + 1})
		s.Columns = append(s.Columns, table.Column{Header: reading.name, Unit: "%", Format: table.Fixed1}, table.Column{Header: reading.name + " ±", Unit: "%", Format: table.Fixed1})
	}
	for i := range ages {
		c := &ages[i]
		cells := []table.Cell{table.S(c.Queue + " under " + c.Versus + ", " + olaf.Rate(c.OutRateBPS).String())}
		for _, reading := range readings {
			st := reading.of(&c.AoMReduction)
			cells = append(cells, Mean(st), Half(st))
		}
		s.Rows = append(s.Rows, cells)
	}
	if len(s.Rows) > 0 {
		s.Charts = []table.Chart{chart}
	}
	return s
}

// Speedup returns a sheet with the speed-up as a function of the output rate (Fig. 7). It has a line for each pair of
// queues.
func Speedup(b *results.Bench) table.Sheet {
	s := table.Sheet{Name: "Speedup", Title: "How much earlier every worker has N updates through, over the output rate", Columns: []table.Column{
		{Header: "output rate", Unit: "Gbps", Format: table.Fixed1}}}
	chart := table.Chart{Kind: table.Lines, Title: "Speed-up to N updates of every worker", XTitle: "output rate [Gbps]", YTitle: "speed-up"}
	column := map[string]int{}
	comparisons := slices.Clone(b.Comparisons)
	slices.SortStableFunc(comparisons, func(x, y results.Comparison) int { return cmp.Compare(x.OutRateBPS, y.OutRateBPS) })
	for i := range comparisons {
		c := &comparisons[i]
		if !c.Speedup.Known() {
			continue
		}
		name := c.Queue + " over " + c.Versus
		if column[name] == 0 {
			column[name] = len(s.Columns)
			chart.Series = append(chart.Series, table.Series{Name: name, Column: len(s.Columns), ErrorColumn: len(s.Columns) + 1})
			s.Columns = append(s.Columns, table.Column{Header: name, Format: table.Fixed3}, table.Column{Header: name + " ±", Format: table.Fixed3})
		}
		row := append(pad([]table.Cell{table.N(float64(c.OutRateBPS) / 1e9)}, column[name]), number(c.Speedup.Mean, ""), Half(&c.Speedup))
		s.Rows = append(s.Rows, row)
	}
	for k := range s.Rows {
		s.Rows[k] = pad(s.Rows[k], len(s.Columns))
	}
	if len(s.Rows) > 1 {
		s.Charts = []table.Chart{chart}
	}
	return s
}
