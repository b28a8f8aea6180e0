package result

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// Row contains the statistics of one configuration over its runs.
type Row struct {
	Name   string `json:"name"`
	Config any    `json:"config,omitempty"` // the part of the configuration that differs
	// Runs is the number of valid runs. The statistics are over these runs.
	Runs    int              `json:"runs"`
	Invalid int              `json:"invalid_runs"`
	Reasons []string         `json:"invalid_reasons,omitempty"`
	Stats   results.Stats    `json:"statistics"`
	Groups  []Group          `json:"groups,omitempty"`
	BySeed  []Run            `json:"by_seed,omitempty"`
	Totals  map[string]int64 `json:"totals,omitempty"` // counters over all runs
}

// Group is a part of a row, such as the clusters connected to one switch.
type Group struct {
	Name  string        `json:"name"`
	Stats results.Stats `json:"statistics"`
}

// Run contains the numbers of one run in a row.
type Run struct {
	Seed    uint64        `json:"seed"`
	Invalid []string      `json:"invalid,omitempty"`
	Numbers metric.Values `json:"numbers"`
	Parts   []Part        `json:"parts,omitempty"`
}

// Part contains the numbers of one group, cluster, worker or port in a run.
type Part struct {
	Kind    string        `json:"kind"`
	Name    string        `json:"name"`
	Of      string        `json:"of,omitempty"` // for a cluster its group, for a port its queue
	Numbers metric.Values `json:"numbers"`
}

// Metrics declares the numbers in a document, in order. Documents contain their names, titles and units. Comparisons
// omit metrics that count events.
type Metrics []*metric.Metric

// declared is the form of a metric in JSON documents.
type declared struct {
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	Unit  string `json:"unit,omitempty"`
	Count bool   `json:"count,omitempty"`
	Chart bool   `json:"chart,omitempty"`
}

// MarshalJSON encodes those properties of the metrics that readers of a document need.
func (m Metrics) MarshalJSON() ([]byte, error) {
	all := make([]declared, len(m))
	for i, one := range m {
		all[i] = declared{one.Name, one.Title, one.Unit, one.IsCount(), one.Column != ""}
	}
	return json.Marshal(all)
}

// UnmarshalJSON decodes metrics. They may be metrics that this build does not know.
func (m *Metrics) UnmarshalJSON(raw []byte) error {
	var all []declared
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	*m = nil
	for _, one := range all {
		if one.Count {
			*m = append(*m, NewCounter(one.Name, one.Title, one.Unit))
		} else {
			*m = append(*m, NewMetric(one.Name, one.Title, one.Unit))
		}
		if one.Chart {
			(*m)[len(*m)-1].Column = one.Title
		}
	}
	return nil
}

// NewMetric returns the declaration of a metric whose value is computed by the caller.
func NewMetric(name, title, unit string) *metric.Metric {
	return &metric.Metric{Name: name, Title: title, Unit: unit, Of: func(*metric.Measured) metric.Float { return metric.Missing() }}
}

// NewCounter returns the declaration of a metric that counts events. Comparisons omit such metrics.
func NewCounter(name, title, unit string) *metric.Metric {
	return &metric.Metric{Name: name, Title: title, Unit: unit, Counter: name}
}

// Stats returns the statistics of metrics over several runs. runs[k][i] is the value of metric i in run k. why is the
// reason given for a missing statistic.
func (m Metrics) Stats(runs [][]metric.Float, why string) (stats results.Stats) {
	for i := range m {
		values := make([]metric.Float, len(runs))
		for k := range runs {
			values[k] = runs[k][i]
		}
		stats = append(stats, results.Stat{Metric: m[i], Statistic: results.Describe(values, why)})
	}
	return stats
}

// find returns the metric with the given name. If there is none, it returns a metric with only this name.
func (m Metrics) find(name string) *metric.Metric {
	if i := slices.IndexFunc(m, func(one *metric.Metric) bool { return one.Name == name }); i >= 0 {
		return m[i]
	}
	return &metric.Metric{Name: name}
}

// declare sets the metric of each statistic in a document that was read.
func (r *Result) declare() {
	under := func(stats results.Stats) {
		for i := range stats {
			stats[i].Metric = r.Metrics.find(stats[i].Name)
		}
	}
	for i := range r.Rows {
		under(r.Rows[i].Stats)
		for k := range r.Rows[i].Groups {
			under(r.Rows[i].Groups[k].Stats)
		}
	}
}

// Configurations returns the rows in the form in which they are checked against expectations.
func (r *Result) Configurations() (rows []results.Row) {
	for i := range r.Rows {
		row := &r.Rows[i]
		rows = append(rows, results.Row{Queue: row.Name, Runs: row.Runs, InvalidRuns: row.Invalid, Reasons: row.Reasons, Stats: row.Stats})
	}
	return rows
}

// Runs returns the single runs for comparisons. Counters are omitted, because only measurements are compared.
func (r *Result) Runs() (runs []results.Run) {
	d := &metric.Declaration{Metrics: slices.DeleteFunc(slices.Clone(r.Metrics), (*metric.Metric).IsCount)}
	for i := range r.Rows {
		for k := range r.Rows[i].BySeed {
			one := &r.Rows[i].BySeed[k]
			runs = append(runs, results.Run{Queue: r.Rows[i].Name, Index: k, Seed: one.Seed, Declared: d, Invalid: one.Invalid,
				Metrics: metric.NewValues(d.Metrics, func(m int) metric.Float { return one.Numbers.Of(d.Metrics[m].Name) })})
		}
	}
	return runs
}

// line contains one number for all rows.
type line struct {
	group  string
	metric *metric.Metric
	stats  []*results.Statistic // one entry for each row
}

// lines returns a line for each number that at least one row has, followed by the lines for the rows' groups.
func (r *Result) lines() (all []line) {
	for _, m := range r.Metrics {
		if l, ok := r.line("", m, func(row *Row) results.Stats { return row.Stats }); ok {
			all = append(all, l)
		}
	}
	if len(r.Rows) == 0 {
		return all
	}
	for k := range r.Rows[0].Groups {
		for _, m := range r.Metrics {
			if l, ok := r.line(r.Rows[0].Groups[k].Name, m, func(row *Row) results.Stats { return row.group(k) }); ok {
				all = append(all, l)
			}
		}
	}
	return all
}

// group returns the statistics of the row's group with index k, or none if the row does not have it.
func (row *Row) group(k int) results.Stats {
	if k >= len(row.Groups) {
		return nil
	}
	return row.Groups[k].Stats
}

// line returns the line for one number. ok is false if no row has this number.
func (r *Result) line(group string, m *metric.Metric, of func(*Row) results.Stats) (l line, ok bool) {
	l = line{group: group, metric: m}
	for i := range r.Rows {
		stats := of(&r.Rows[i])
		ok = ok || slices.ContainsFunc(stats, func(s results.Stat) bool { return s.Name == m.Name })
		l.stats = append(l.stats, stats.Of(m.Name))
	}
	return l, ok
}

// title returns a line's title for display.
func (l *line) title() string {
	title := l.metric.Title
	if l.metric.Unit == "%" || l.metric.Unit == "ms" {
		title += ", " + l.metric.Unit
	}
	if l.group != "" {
		title = l.group + ": " + title
	}
	return title
}

// isShown reports whether the line is printed. This is the case for measurements, and for counters that are not 0 in
// all rows.
func (l *line) isShown() bool {
	return !l.metric.IsCount() || slices.ContainsFunc(l.stats, func(s *results.Statistic) bool { return s.Max > 0 })
}

// printRows prints a table of the rows, with a line for each number and a column for each row. If an update of the
// weights is not the same amount of work in all rows, numbers about such updates are omitted.
func (r *Result) printRows(p *text.Page) {
	lines := r.lines()
	if len(lines) == 0 {
		return
	}
	same, heading := results.SameWork(r.Configurations()), ""
	if slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Runs+row.Invalid > 1 }) {
		heading = "MEAN OF A RUN"
	}
	lines = slices.DeleteFunc(lines, func(l line) bool { return (l.metric.PerUpdate || l.metric.Age) && !same || !l.isShown() })
	p.Printf("\n")
	if len(r.Rows) > mostColumns {
		p.Grid(r.down(heading, lines))
	} else {
		p.Grid(r.across(heading, lines))
	}
	if !same {
		p.Say("- ", "updates hold more gradients in some rows than in others: ages and numbers per update are left out")
	}
	if heading != "" {
		p.Say("- ", "numbers and counts are those of one run: means over the runs that came to their end, ± half of their 95 %% interval, and over all runs where none did")
	}
}

// mostColumns is the maximum number of rows that are printed side by side.
const mostColumns = 5

// across returns a table in which each number has a line and each row of the result has a column.
func (r *Result) across(heading string, lines []line) *table.Grid {
	g := &table.Grid{Keys: 1, Columns: []table.GridColumn{{Header: heading}}}
	for i := range r.Rows {
		g.Columns = append(g.Columns, table.GridColumn{Header: strings.ToUpper(r.Rows[i].Name), Right: true})
	}
	for _, l := range lines {
		cells := []string{l.title()}
		for _, s := range l.stats {
			cells = append(cells, Cell(l.metric.Unit, s))
		}
		g.Add(cells...)
	}
	return g
}

// down returns a table in which each row of the result has a line and each number has a column. Each column has one
// unit.
func (r *Result) down(heading string, lines []line) *table.Grid {
	g := &table.Grid{Keys: 1, Columns: []table.GridColumn{{Header: heading}}}
	for i := range r.Rows {
		g.Add(r.Rows[i].Name)
	}
	for _, l := range lines {
		by, unit := text.ScaleOf(l.metric.Unit, l.stats...)
		header := l.title()
		if unit == "%" {
			unit = ""
		}
		g.Columns = append(g.Columns, table.GridColumn{Header: strings.TrimSuffix(header+", "+unit, ", "), Right: true, Prose: true})
		for i, s := range l.stats {
			g.Rows[i] = append(g.Rows[i], text.FormatRounded(s, by))
		}
	}
	return g
}

// Cell returns a statistic as text in a suitable unit.
func Cell(unit string, s *results.Statistic) string {
	if !s.Known() {
		return text.Missing
	}
	by, shown := 1.0, ""
	switch unit {
	case "ns", "bit/s":
		by, shown = text.ScaleOf(unit, s)
	case "B":
		by, shown = 1e-6, "MB"
	}
	mean, half := text.FormatRoundedParts(s, by)
	if half != "" && half != "0" { // without an interval, nothing depends on the seed
		mean += " ± " + half
	}
	return strings.TrimSpace(mean + " " + shown)
}

// rowSheets returns sheets for the rows of the result. One has a line for each number and two columns for each row. The
// others have a chart for each metric that has a column.
func (r *Result) rowSheets() []table.Sheet {
	lines := r.lines()
	if len(lines) == 0 {
		return nil
	}
	s := table.Sheet{Name: "Numbers", Title: "What was measured, mean and 95 % interval over seeds",
		Columns: []table.Column{{Header: "number"}, {Header: "unit"}}}
	for i := range r.Rows {
		s.Columns = append(s.Columns, table.Column{Header: r.Rows[i].Name, Format: table.General}, table.Column{Header: r.Rows[i].Name + " ±", Format: table.General})
	}
	for _, l := range lines {
		name := l.metric.Name
		if l.group != "" {
			name = l.group + " " + name
		}
		cells := []table.Cell{table.S(name), table.S(l.metric.Unit)}
		for _, one := range l.stats {
			cells = append(cells, sheets.Mean(one), sheets.Half(one))
		}
		s.Rows = append(s.Rows, cells)
	}
	return append([]table.Sheet{s}, r.charts(lines)...)
}

// charts returns a chart for each metric that has a column and more than one value. A chart has a group of bars for
// each row, and a series for each group of the row. Ages and numbers per update of the weights are omitted if an update
// is not the same amount of work in all rows.
func (r *Result) charts(lines []line) (all []table.Sheet) {
	same := results.SameWork(r.Configurations())
	for _, m := range r.Metrics {
		if m.Column == "" || (m.PerUpdate || m.Age) && !same || !differs(m, lines) {
			continue
		}
		b := Block{Name: m.Title, Unit: m.Unit}
		for i := range r.Rows {
			b.Rows = append(b.Rows, Line{Name: r.Rows[i].Name})
		}
		for _, l := range lines {
			if l.metric != m {
				continue
			}
			b.Columns = append(b.Columns, cmp.Or(l.group, m.Title))
			for i := range r.Rows {
				b.Rows[i].Cells = append(b.Rows[i].Cells, *l.stats[i])
			}
		}
		sheet := b.sheet()
		sheet.Name = sheetName(r.Experiment, r.Artefact, strings.ReplaceAll(m.Name, "_", " "))
		all = append(all, sheet)
	}
	return all
}

// differs reports whether a chart of m has something to show, which requires known values that are not all equal.
func differs(m *metric.Metric, lines []line) bool {
	first, known := 0.0, false
	for _, l := range lines {
		for _, s := range l.stats {
			switch mean := float64(s.Mean); {
			case l.metric != m || !s.Known():
			case !known:
				first, known = mean, true
			case mean != first:
				return true
			}
		}
	}
	return false
}

// rowBrief returns the first known number of each row in one line.
func (r *Result) rowBrief() string {
	var parts []string
	for i := range r.Rows {
		row, part := &r.Rows[i], r.Rows[i].Name
		if k := slices.IndexFunc(row.Stats, func(s results.Stat) bool { return s.Known() && s.Unit != "updates" }); k >= 0 {
			part += ": " + Cell(row.Stats[k].Unit, &row.Stats[k].Statistic)
		}
		if row.Invalid > 0 {
			part += fmt.Sprintf(", %d of %d runs invalid", row.Invalid, row.Runs+row.Invalid)
		}
		parts = append(parts, part)
	}
	return few(parts, " · ")
}
