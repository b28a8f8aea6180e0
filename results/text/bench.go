package text

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/table"
)

// Bench prints a bench document. It begins with the findings in a few sentences, the configuration (about), and the
// published numbers compared with ours. Then follow every configuration, comparisons of ages under the same reading,
// aggregations, losses, and validity.
func Bench(w io.Writer, v View, b *results.Bench, about ...string) error {
	p := NewPage(w, v)
	for _, line := range headlines(b) {
		p.Say("", "%s", line)
	}
	p.Printf("\n")
	for _, line := range about {
		p.Say("", "%s", line)
	}
	for _, line := range b.Terms {
		p.Say("  ", "%s", line)
	}
	if len(about)+len(b.Terms) > 0 {
		p.Printf("\n")
	}
	p.Paper(b.Paper)
	p.rows(b.Rows)
	p.printBeside(b.Rows)
	p.comparisons(b)
	p.cdfs(b.Rows)
	p.parts(b)
	if v.Explain {
		p.statistics(b.Rows)
	}
	p.real(b.Rows)
	p.validity(b)
	return p.Err()
}

// printBeside prints measured ages and those of the twin. The first two columns differ because of the senders, and the
// last two because of the output.
func (p *Page) printBeside(rows []results.Row) {
	g := &table.Grid{Keys: 3, Columns: []table.GridColumn{{Header: "AGES"}, {Header: "QUEUE"}, {Header: "OUT"}, {Header: "PLAN", Right: true},
		{Header: "TWIN", Right: true}, {Header: "MEASURED", Right: true}, {Header: "MEASURED/TWIN, %", Right: true, Spare: 1}}}
	for i := range rows {
		r := &rows[i]
		for k := range r.Stats {
			s := &r.Stats[k]
			if s.TwinComparison == nil || s.Column == "" || s.Unit != "ns" {
				continue
			}
			g.Add(s.Column, r.Queue, olaf.Rate(r.OutRateBPS).String(), Duration(s.Plan), Duration(s.Twin), Duration(s.Measured), FormatSigned(s.OutputPct()))
		}
	}
	if len(g.Rows) == 0 {
		return
	}
	p.Grid(g)
	p.Say("", "plan: the twin's ages for planned arrivals; twin: for logged arrivals. The senders make the first "+
		"two differ, the output makes twin and measured differ")
	p.Printf("\n")
}

// Duration returns a time in nanoseconds as text in a suitable unit.
func Duration(ns results.Float) string {
	if !ns.Known() {
		return Missing
	}
	s := results.Statistic{Mean: ns, N: 1}
	by, unit := ScaleOf("ns", &s)
	return Single(float64(ns)*by) + " " + unit
}

// Rate returns a measured rate as text with its unit.
func Rate(bps results.Float) string {
	r, unit := olaf.Rate(bps), olaf.Rate(1)
	for r/unit >= 1000 {
		unit *= 10
	}
	return ((r + unit/2) / unit * unit).String()
}

// FormatSigned returns a difference in per cent as text with its sign.
func FormatSigned(percent results.Float) string {
	if !percent.Known() {
		return Missing
	}
	return fmt.Sprintf("%+.1f", float64(percent))
}

// real prints the quality of runs in real time.
func (p *Page) real(rows []results.Row) {
	for i := range rows {
		r := &rows[i]
		name := r.Queue + " " + olaf.Rate(r.OutRateBPS).String()
		for _, said := range Real(r) {
			p.Say("", "%s: %s", name, said.Text)
		}
	}
}

// headColumns is the number of columns that are printed at any page width.
const headColumns = 7

func (p *Page) rows(rows []results.Row) {
	if len(rows) == 0 {
		return
	}
	columns := columnsOf(rows, columnIn(rows))
	g := &table.Grid{Keys: 2, Columns: []table.GridColumn{{Header: "QUEUE"}, {Header: "OUT"}}}
	scales := make([]float64, len(columns))
	for k, c := range columns {
		m := c.metrics[0]
		var all []*results.Statistic
		for i := range rows {
			all = append(all, rows[i].Stats.Of(m.Name))
		}
		by, unit := ScaleOf(m.Unit, all...)
		scales[k] = by
		column := table.GridColumn{Header: c.header, Right: true, Spare: max(0, k-headColumns+1)}
		if m.Unit == "ns" {
			column.Header += ", " + unit
		}
		g.Columns = append(g.Columns, column)
	}
	g.Columns = append(g.Columns, table.GridColumn{Header: "RUNS", Right: true, Spare: len(columns) + 1})
	for i := range rows {
		r := &rows[i]
		cells := []string{r.Queue, olaf.Rate(r.OutRateBPS).String()}
		for k, c := range columns {
			cells = append(cells, FormatRounded(r.Stats.Of(c.metrics[0].Name), scales[k]))
		}
		g.Add(append(cells, strconv.Itoa(r.Runs))...)
	}
	p.Grid(g)
	if p.Explain {
		p.Say("", "AoM is averaged over time, peak AoM over deliveries, so bursts can make the mean peak smaller "+
			"than the mean")
	}
	p.Printf("\n")
}

// columnIn returns a function that returns the header of a metric in the first table, or "" if it has no column there.
// If updates are not the same work in all rows, counters of updates have no column, and the time per gradient replaces
// the time per iteration. If ages are only known above the fastest path, other ages have no column.
func columnIn(rows []results.Row) func(*metric.Metric) string {
	same := results.SameWork(rows)
	isKnown := func(name string) bool {
		return slices.ContainsFunc(rows, func(r results.Row) bool { return r.Stats.Of(name).Known() })
	}
	abovePath := isKnown(results.AbovePath)
	return func(m *metric.Metric) string {
		if abovePath && m.Age && !isKnown(m.Name) {
			return ""
		}
		if m.PerUpdate && !same || m.Name == "gradient_ns" && same {
			return ""
		}
		return m.Column
	}
}

// column is a column of a table over rows. It consists of its header and the metrics that share the column.
type column struct {
	header  string
	metrics []*metric.Metric
}

// columnsOf returns the columns for the metrics of all rows. A column is at the position of the last of its metrics.
func columnsOf(rows []results.Row, header func(*metric.Metric) string) (columns []column) {
	for _, m := range results.MetricsIn(rows) {
		name := header(m)
		if name == "" {
			continue
		}
		c := column{header: name}
		if at := slices.IndexFunc(columns, func(c column) bool { return c.header == name }); at >= 0 {
			c = columns[at]
			columns = slices.Delete(columns, at, at+1)
		}
		c.metrics = append(c.metrics, m)
		columns = append(columns, c)
	}
	return columns
}

// comparisons prints comparisons of ages under the same reading, first per cluster and then per worker. Reductions with
// the mixed reading are printed only with the published numbers, with a note.
func (p *Page) comparisons(b *results.Bench) {
	ages := b.CompareAges()
	if len(ages) == 0 {
		return
	}
	g := &table.Grid{Keys: 2, Columns: []table.GridColumn{{Header: "AOM REDUCTION, %"}, {Header: "OUT"}, {Header: "PER CLUSTER", Right: true}, {Header: "PER WORKER", Right: true}}}
	var published []string
	for i := range ages {
		c := &ages[i]
		g.Add(c.Queue+" under "+c.Versus, olaf.Rate(c.OutRateBPS).String(), FormatRounded(&c.AoMReduction.ClusterCluster, 1), FormatRounded(&c.AoMReduction.WorkerWorker, 1))
		if r := results.FindMixedReduction(b.Paper, c); r != nil {
			published = append(published, Exact(r.Published))
		}
	}
	p.Grid(g)
	if c := &ages[0]; len(published) > 0 {
		p.Say("", "The published %s %% are compared with %s per worker and %s per cluster, because no other "+
			"reading comes near them.",
			strings.Join(published, " and "), c.Versus, c.Queue)
	}
	p.Printf("\n")
}

// cdfSteps lists the numbers of aggregations at which the distribution is printed.
var cdfSteps = []int{0, 1, 2, 3, 5, 7, 10, 15, 20, 30}

const (
	cdfWidth  = 18 // characters of a full bar
	cdfColumn = cdfWidth + 5
)

func (p *Page) cdfs(rows []results.Row) {
	var merging []*results.Row
	for i := range rows {
		if steps(rows[i].CDF) {
			merging = append(merging, &rows[i])
		}
	}
	if len(merging) == 0 {
		return
	}
	p.Say("", "AGGREGATIONS PER UPDATE: share of frames with at most n merged into them")
	for part := range slices.Chunk(merging, max(1, (p.Columns()-3)/(cdfColumn+2))) {
		p.cdf(part)
	}
	p.Printf("\n")
}

// steps reports whether a distribution has more than one step, that is, whether frames contain different numbers of
// merged updates.
func steps(cdf []results.CDFPoint) bool {
	return slices.ContainsFunc(cdf, func(p results.CDFPoint) bool { return p.P > 0 && p.P < 1 })
}

func (p *Page) cdf(merging []*results.Row) {
	line := "  n"
	for _, r := range merging {
		line += fmt.Sprintf("  %-*s", cdfColumn, r.Queue+" "+olaf.Rate(r.OutRateBPS).String())
	}
	p.Printf("%s\n", strings.TrimRight(line, " "))
	for _, n := range cdfSteps {
		p.Printf("%3d", n)
		all := 1.0
		for _, r := range merging {
			p.Printf("  %-*s %.2f", cdfWidth, bar(At(r.CDF, n), cdfWidth), At(r.CDF, n))
			all = min(all, At(r.CDF, n))
		}
		p.Printf("\n")
		if all == 1 {
			break
		}
	}
}

// At returns the share of frames with at most n aggregations.
func At(cdf []results.CDFPoint, n int) float64 {
	share := 0.0
	for _, point := range cdf {
		if point.LE > n {
			break
		}
		share = float64(point.P)
	}
	return share
}

// bar returns a bar that covers the given share of width, with a resolution of an eighth of a character.
func bar(share float64, width int) string {
	eighths := int(math.Round(share * float64(width) * 8))
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return s
}

// parts prints the loss, as the paper defines it, divided by those causes that occurred.
func (p *Page) parts(b *results.Bench) {
	g := &table.Grid{Keys: 2, Columns: []table.GridColumn{{Header: "LOST UPDATES"}, {Header: "OUT"}}}
	rows := make([][]string, len(b.Rows))
	for i := range b.Rows {
		rows[i] = []string{b.Rows[i].Queue, olaf.Rate(b.Rows[i].OutRateBPS).String()}
	}
	for _, c := range columnsOf(b.Rows, func(m *metric.Metric) string { return m.Part }) {
		cells := make([]string, len(b.Rows))
		some := false
		for i := range b.Rows {
			sum, known := 0.0, false
			for _, m := range c.metrics { // a row has the metrics that its system declares
				if mean := b.Rows[i].Stats.Of(m.Name).Mean; mean.Known() {
					sum, known = sum+float64(mean), true
				}
			}
			some = some || sum != 0
			cells[i] = Missing
			if known {
				cells[i] = Decimal(sum, 0)
			}
		}
		if !some {
			continue
		}
		g.Columns = append(g.Columns, table.GridColumn{Header: c.header, Right: true})
		for i := range rows {
			rows[i] = append(rows[i], cells[i])
		}
	}
	if len(g.Columns) == 2 {
		return
	}
	g.Rows = rows
	p.Grid(g)
	p.Printf("\n")
}

// statistics prints every statistic of every row with its title.
func (p *Page) statistics(rows []results.Row) {
	for i := range rows {
		r := &rows[i]
		g := &table.Grid{Columns: []table.GridColumn{{Header: r.Queue + " " + olaf.Rate(r.OutRateBPS).String()}, {Header: "UNIT"}, {Header: "MEAN ± 95 %", Right: true},
			{Header: "MIN", Right: true, Spare: 2}, {Header: "MAX", Right: true, Spare: 3}, {Header: "RUNS", Right: true, Spare: 1}, {Header: "WHAT IT IS", Prose: true}}}
		for k := range r.Stats {
			s := &r.Stats[k]
			by, unit := ScaleOf(s.Unit, &s.Statistic)
			g.Add(s.Name, unit, FormatRounded(&s.Statistic, by), Single(float64(s.Min)*by), Single(float64(s.Max)*by),
				strconv.Itoa(s.N), s.Title)
		}
		p.Grid(g)
		p.Printf("\n")
	}
}

func (p *Page) validity(b *results.Bench) {
	for _, s := range b.Statements {
		p.Say("note: ", "%s", s)
	}
	valid, total := 0, 0
	for i := range b.Rows {
		valid += b.Rows[i].Runs
		total += b.Rows[i].Runs + b.Rows[i].InvalidRuns
	}
	switch {
	case b.Partial:
		p.Say("", "PARTIAL: stopped after %d runs; all numbers above cover only these runs", total)
	case valid == total:
		p.Say("", "valid: %d of %d runs, accounting identities exact in every run", valid, total)
	}
	if valid == total {
		return
	}
	p.Say("", "INVALID: %d of %d runs are excluded:", total-valid, total)
	for i := range b.Rows {
		r := &b.Rows[i]
		for _, why := range r.ExclusionReasons() {
			p.Say("  ", "%s %s, %s", r.Queue, olaf.Rate(r.OutRateBPS), why)
		}
	}
}
