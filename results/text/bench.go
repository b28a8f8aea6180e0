// Package text prints result documents for people at a terminal: plain characters, no colour. The tables of the paper's
// experiments fit into 110 columns; a note below a table is one line, however long.
package text

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/paper"
)

// Bench prints a bench document: the paper's numbers beside ours, every configuration, the reductions of the Age of
// Model, the aggregation CDFs, what a reader must be told, and whether it is valid.
func Bench(w io.Writer, b *results.Bench) error {
	p := &printer{w: w}
	p.paper(b.Paper)
	p.rows(b.Rows)
	p.comparisons(b.Comparisons)
	p.cdfs(b.Rows)
	p.parts(b)
	p.validity(b)
	return p.err
}

// Paper prints published numbers beside ours, with basis and verdict each, what is to be known of it in a footnote, and below
// it what another assumption changes.
func Paper(w io.Writer, rows []results.PaperRow) error {
	p := &printer{w: w}
	p.paper(rows)
	return p.err
}

// printer keeps the first error, so that a page reads as a list of lines.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// table prints aligned rows of tab-separated cells.
func (p *printer) table(rows []string) {
	if p.err != nil {
		return
	}
	tw := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(tw, row)
	}
	p.err = tw.Flush()
}

func (p *printer) paper(rows []results.PaperRow) {
	if len(rows) == 0 {
		return
	}
	lines := []string{"ARTEFACT\t\t\tOURS\tPAPER\tDIFF\tBASIS\tVERDICT"}
	var notes footnotes
	for i := range rows {
		r := &rows[i]
		lines = append(lines, strings.Join([]string{
			paper.ExperimentOf(r.ID), r.Row, r.Column + unitSuffix(r.Unit), Rounded(&r.Ours, 1), Published(r), percent(r.DeviationPct),
			r.Basis, r.Verdict + notes.mark(r.Note),
		}, "\t"))
		for k := range r.Sensitivity {
			if s := &r.Sensitivity[k]; s.Verdict != r.Verdict {
				lines = append(lines, strings.Join([]string{"", "", "  " + s.Assumption, Rounded(&s.Ours, 1), "", "", "", s.Verdict}, "\t"))
			}
		}
	}
	p.table(lines)
	for i, note := range notes {
		p.printf("[%d] %s\n", i+1, note)
	}
	p.printf("\n")
}

// Published is what a paper prints or says: a number, or on which side of one it puts ours.
func Published(r *results.PaperRow) string {
	number := r.Published
	if !number.Known() {
		number = r.Than
	}
	side := map[string]string{"": "", "above": "> ", "below": "< "}[r.Side]
	return side + Number(number, -1)
}

// footnotes are remarks under a table, each said once.
type footnotes []string

// mark is the reference to a note, empty for none.
func (f *footnotes) mark(note string) string {
	if note == "" {
		return ""
	}
	at := slices.Index(*f, note)
	if at < 0 {
		at = len(*f)
		*f = append(*f, note)
	}
	return fmt.Sprintf(" [%d]", at+1)
}

func unitSuffix(unit string) string {
	if unit == "" {
		return ""
	}
	return ", " + unit
}

func (p *printer) rows(rows []results.Row) {
	columns := columnsOf(rows, func(m *metric.Metric) string { return m.Column })
	header := []string{"QUEUE", "OUT", "RUNS"}
	for _, c := range columns {
		header = append(header, c.header)
	}
	lines := []string{strings.Join(header, "\t")}
	for i := range rows {
		r := &rows[i]
		runs := strconv.Itoa(r.Runs)
		if r.InvalidRuns > 0 {
			runs += fmt.Sprintf("+%d invalid", r.InvalidRuns)
		}
		cells := []string{r.Queue, olaf.Rate(r.OutRateBPS).String(), runs}
		for _, c := range columns {
			cells = append(cells, short(c.metrics[0].Unit, r.Stats.Of(c.metrics[0].Name)))
		}
		lines = append(lines, strings.Join(cells, "\t"))
	}
	p.table(lines)
	p.printf("AoM is averaged over time, peak AoM over deliveries: traffic in bursts can make the peak the smaller one\n\n")
}

// column is a column of a table over rows: its header and the metrics that share it.
type column struct {
	header  string
	metrics []*metric.Metric
}

// columnsOf lists the columns to which the metrics of all rows belong. A column stands where the last of its metrics does.
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

// short is a statistic in few characters, as its unit asks for.
func short(unit string, s *results.Statistic) string {
	switch unit {
	case "ns":
		return Nanoseconds(s)
	case "%":
		return Interval(s, 1)
	case "":
		return Number(s.Mean, 3)
	}
	return Interval(s, 0)
}

func (p *printer) comparisons(comparisons []results.Comparison) {
	if len(comparisons) == 0 {
		return
	}
	lines := []string{"AOM REDUCTION\tOUT\tWORKER/CLUSTER *\tCLUSTER/CLUSTER (literal)\tWORKER/WORKER"}
	for i := range comparisons {
		c := &comparisons[i]
		lines = append(lines, strings.Join([]string{
			c.Queue + " under " + c.Versus, olaf.Rate(c.OutRateBPS).String(),
			share(&c.AoMReduction.WorkerCluster), share(&c.AoMReduction.ClusterCluster), share(&c.AoMReduction.WorkerWorker),
		}, "\t"))
	}
	p.table(lines)
	p.printf("* %s per worker, %s per cluster: the reading that fits the paper's figures\n\n",
		comparisons[0].Versus, comparisons[0].Queue)
}

// share prints a statistic of per cents.
func share(s *results.Statistic) string {
	if !s.Known() {
		return "–"
	}
	return Interval(s, 1) + " %"
}

// cdfSteps are the aggregation counts that the text plot shows.
var cdfSteps = []int{0, 1, 2, 3, 5, 7, 10, 15, 20, 30}

const cdfWidth = 18 // characters of a full bar

func (p *printer) cdfs(rows []results.Row) {
	var merging []*results.Row
	for i := range rows {
		if len(rows[i].CDF) > 1 {
			merging = append(merging, &rows[i])
		}
	}
	if len(merging) == 0 {
		return
	}
	p.printf("AGGREGATIONS PER OUTGOING UPDATE: share of frames with at most n merged into them\n  n")
	for _, r := range merging {
		p.printf("  %-*s", cdfWidth+5, r.Queue+" "+olaf.Rate(r.OutRateBPS).String())
	}
	p.printf("\n")
	for _, n := range cdfSteps {
		p.printf("%3d", n)
		all := 1.0
		for _, r := range merging {
			p.printf("  %-*s %.2f", cdfWidth, bar(At(r.CDF, n), cdfWidth), At(r.CDF, n))
			all = min(all, At(r.CDF, n))
		}
		p.printf("\n")
		if all == 1 {
			break
		}
	}
	p.printf("\n")
}

// At is the share of frames with at most n aggregations.
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

// bar draws share of width in eighths of a character.
func bar(share float64, width int) string {
	eighths := int(math.Round(share * float64(width) * 8))
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return s
}

// parts splits what the paper calls lost.
func (p *printer) parts(b *results.Bench) {
	columns := columnsOf(b.Rows, func(m *metric.Metric) string { return m.Part })
	header := []string{"LOST AS THE PAPER COUNTS IT", "OUT"}
	for _, c := range columns {
		header = append(header, c.header)
	}
	lines := []string{strings.Join(header, "\t")}
	for i := range b.Rows {
		r := &b.Rows[i]
		cells := []string{r.Queue, olaf.Rate(r.OutRateBPS).String()}
		for _, c := range columns {
			sum := results.Float(0)
			for _, m := range c.metrics {
				sum += r.Stats.Of(m.Name).Mean
			}
			cells = append(cells, Number(sum, 0))
		}
		lines = append(lines, strings.Join(cells, "\t"))
	}
	p.table(lines)
	p.printf("\n")
}

// Statistics prints every statistic of every row, with what each is.
func Statistics(w io.Writer, rows []results.Row) error {
	p := &printer{w: w}
	for i := range rows {
		r := &rows[i]
		lines := []string{r.Queue + " " + olaf.Rate(r.OutRateBPS).String() + "\tUNIT\tMEAN ± 95 %\tMIN\tMAX\tRUNS\tWHAT IT IS"}
		for k := range r.Stats {
			s := &r.Stats[k]
			unit := s.Unit
			if unit == "" {
				unit = "–"
			}
			lines = append(lines, strings.Join([]string{s.Name, unit, Rounded(&s.Statistic, 1), exact(s.Min), exact(s.Max), strconv.Itoa(s.N), s.Title}, "\t"))
		}
		p.table(lines)
		p.printf("\n")
	}
	return p.err
}

// exact prints a number as far as four significant digits go.
func exact(f results.Float) string {
	if !f.Known() {
		return "–"
	}
	return Decimal(float64(f), decimalsOf(float64(f), 4))
}

func (p *printer) validity(b *results.Bench) {
	for _, s := range b.Statements {
		p.printf("note: %s\n", s)
	}
	valid, total := 0, 0
	for i := range b.Rows {
		valid += b.Rows[i].Runs
		total += b.Rows[i].Runs + b.Rows[i].InvalidRuns
	}
	switch {
	case b.Partial:
		p.printf("PARTIAL: stopped after %d runs; every number above is over what was done\n", total)
	case valid == total:
		p.printf("valid: %d of %d runs, accounting identities exact in every run\n", valid, total)
	}
	if valid == total {
		return
	}
	p.printf("INVALID: %d of %d runs are left out:\n", total-valid, total)
	for i := range b.Rows {
		r := &b.Rows[i]
		for _, why := range r.Why() {
			p.printf("  %s %s, %s\n", r.Queue, olaf.Rate(r.OutRateBPS), why)
		}
	}
}

// Number prints f with the given decimals, as many as it has when they are negative, a dash where it is missing.
func Number(f results.Float, decimals int) string {
	if !f.Known() {
		return "–"
	}
	return strconv.FormatFloat(float64(f), 'f', decimals, 64)
}

// Interval prints mean ± half-width of the 95 % interval.
func Interval(s *results.Statistic, decimals int) string {
	switch {
	case !s.Known():
		return "–"
	case !s.CI95.Known():
		return Number(s.Mean, decimals)
	}
	return Number(s.Mean, decimals) + " ± " + Number(s.CI95, decimals)
}

// Rounded prints a mean, times by, as far as two digits of its half-width go and no further than five of its own; without a
// half-width, four.
func Rounded(s *results.Statistic, by float64) string {
	mean, half := RoundedParts(s, by)
	if half == "" {
		return mean
	}
	return mean + " ± " + half
}

// RoundedParts is Rounded in two columns; the half-width is empty where there is none.
func RoundedParts(s *results.Statistic, by float64) (mean, half string) {
	if !s.Known() {
		return "–", ""
	}
	m, h := float64(s.Mean)*by, float64(s.CI95)*by
	switch {
	case !s.CI95.Known():
		return Decimal(m, decimalsOf(m, 4)), ""
	case h == 0:
		return Decimal(m, decimalsOf(m, 4)), "0"
	}
	n := decimalsOf(h, 2)
	if m != math.Trunc(m) {
		n = min(n, decimalsOf(m, 5))
	}
	return Decimal(m, n), Decimal(h, n)
}

// decimalsOf is how many decimals show v with so many significant digits: none of a whole number.
func decimalsOf(v float64, significant int) int {
	if v == math.Trunc(v) {
		return 0
	}
	return max(0, significant-1-int(math.Floor(math.Log10(math.Abs(v)))))
}

// Decimal prints v with the given decimals and a true minus sign.
func Decimal(v float64, decimals int) string {
	return strings.Replace(strconv.FormatFloat(v, 'f', decimals, 64), "-", "−", 1)
}

// Nanoseconds prints a statistic of ns as the mean in a unit that suits it.
func Nanoseconds(s *results.Statistic) string {
	if !s.Known() {
		return "–"
	}
	ns := float64(s.Mean)
	for _, u := range []struct {
		worth float64
		name  string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if math.Abs(ns) >= u.worth {
			return strconv.FormatFloat(ns/u.worth, 'f', 2, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(ns, 'f', 0, 64) + " ns"
}

func percent(f results.Float) string {
	if !f.Known() {
		return "–"
	}
	if math.Abs(float64(f)) < 0.05 {
		return "0.0 %"
	}
	return fmt.Sprintf("%+.1f %%", float64(f))
}
