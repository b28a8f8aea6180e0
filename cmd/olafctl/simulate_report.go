package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

const simulateSchema = "olafctl.simulate/v1"

// simulation is the document of simulate: one or more runs of a topology, or a sweep over it.
type simulation struct {
	Schema     string             `json:"schema"`
	Provenance results.Provenance `json:"provenance"`
	Config     any                `json:"config"` // the topology, as its file would hold it
	Seeds      []uint64           `json:"seeds"`
	Runs       []*netsim.Result   `json:"runs,omitempty"`
	Sweep      *sweepDocument     `json:"sweep,omitempty"`
	// Invalid says why runs were left out.
	Invalid []string `json:"invalid,omitempty"`
	Partial bool     `json:"partial"`

	topology  *netsim.Topology
	simulated *bench.Simulated // nil of a sweep and of an imported trace
}

type sweepDocument struct {
	Parameter string              `json:"parameter"`
	Points    []netsim.SweepPoint `json:"points"`
}

// take takes the runs of what was simulated, which may be nil. Of a first run that was ended early there is something to
// show where there is nothing else.
func (s *simulation) take(of *bench.Simulated) {
	if s.simulated = of; of == nil {
		return
	}
	s.Runs, s.Partial = of.Results[0], of.Partial
	if len(s.Runs) == 0 && of.Stopped != nil {
		s.Runs = []*netsim.Result{of.Stopped}
	}
	for i := range of.Runs[0] {
		if r := &of.Runs[0][i]; !r.Valid() {
			s.Invalid = append(s.Invalid, fmt.Sprintf("seed %d: %s", r.Seed, r.Invalid[0]))
		}
	}
}

// linesOf is the text of the report over what was simulated.
func (s *simulation) linesOf(of *bench.Simulated) []string {
	report := *s
	report.take(of)
	var page bytes.Buffer
	_ = report.WriteText(&page) // a buffer takes everything
	return lines(&page)
}

// whole says that there is something worth keeping: a run that came to its end, or what has no runs.
func (s *simulation) whole() bool {
	if s.simulated == nil {
		return s.Sweep != nil || len(s.Runs) > 0
	}
	return len(s.simulated.Runs[0]) > 0
}

// empty says that there is nothing to print.
func (s *simulation) empty() bool { return len(s.Runs) == 0 && s.Sweep == nil }

// Document is the JSON form.
func (s *simulation) Document() any { return s }

// Simulated is what the document is over.
func (s *simulation) Simulated() *bench.Simulated { return s.simulated }

// Paper is empty: nothing was published for just any network.
func (s *simulation) Paper() []results.PaperRow { return nil }

// Err is nil when every run was valid and none is missing.
func (s *simulation) Err() error {
	if s.simulated == nil {
		return nil
	}
	return s.simulated.Err()
}

// WriteText prints one run in full, several as a list with their means, a sweep as table and map.
func (s *simulation) WriteText(w io.Writer) error {
	var b strings.Builder
	control := "off"
	if s.topology.Control.Enabled {
		control = "on"
	}
	name := s.topology.Name
	if name == "" {
		name = "network without a name"
	}
	fmt.Fprintf(&b, "%s: queue %s, transmission control %s, seed %d", cli.OnTerminal(name), s.topology.Queue, control, s.Seeds[0])
	if len(s.Seeds) > 1 {
		fmt.Fprintf(&b, " to %d", s.Seeds[len(s.Seeds)-1])
	}
	window := s.topology.Window().String()
	if s.Partial && len(s.Runs) == 1 {
		window = s.Runs[0].Window // it may have ended early
	}
	fmt.Fprintf(&b, ", ages over %s\n\n", window)
	switch {
	case s.Sweep != nil:
		s.Sweep.write(&b)
	case len(s.Runs) == 1:
		writeRun(&b, s.Runs[0])
	default:
		writeRuns(&b, s.Runs)
	}
	if s.simulated != nil && s.whole() {
		fmt.Fprintf(&b, "\n%s\n", s.simulated.Validity())
	} else if s.Partial {
		b.WriteString("\npartial: interrupted before the end\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func align(b *strings.Builder, rows [][]string) {
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(tw, strings.TrimRight(strings.Join(r, "\t"), "\t"))
	}
	_ = tw.Flush() // into memory
}

// msCell prints ns as ms, finer where little of it would be left.
func msCell(f results.Float) string {
	if f < 1e7 {
		return scaled(f, 1e-6, 4)
	}
	return scaled(f, 1e-6, 2)
}

func scaled(f results.Float, by float64, digits int) string {
	if !f.Known() {
		return "–"
	}
	return strconv.FormatFloat(float64(f)*by, 'f', digits, 64)
}

// inUnit prints a value of a metric as its unit asks for, ages in ms; means are a digit finer.
func inUnit(m *metric.Metric, v results.Float, finer int) string {
	switch {
	case whole(m):
		return scaled(v, 1, finer)
	case m.Unit == "ns":
		return msCell(v)
	case m.Unit == "%":
		return scaled(v, 1, 2+finer)
	}
	return scaled(v, 1, 4)
}

// whole says that a metric counts something.
func whole(m *metric.Metric) bool {
	return m.Counted() || !slices.Contains([]string{"ns", "%", ""}, m.Unit)
}

// exact prints a value for programs.
func exact(m *metric.Metric, v results.Float) string {
	if whole(m) && v.Known() {
		return strconv.FormatFloat(float64(v), 'f', -1, 64)
	}
	return plain(v)
}

// withColumn lists those metrics that a terminal shows.
func withColumn(rows []*metric.Metric) []*metric.Metric {
	return slices.DeleteFunc(slices.Clone(rows), func(m *metric.Metric) bool { return m.Column == "" })
}

// heads are two lines of column headers: what stands before the slash of several is said once.
func heads(first []string, rows []*metric.Metric) [][]string {
	upper, lower, before := make([]string, len(first)), slices.Clone(first), ""
	for _, m := range rows {
		head, name, two := strings.Cut(m.Column, "/")
		unit := map[string]string{"ns": " ms", "%": " %"}[m.Unit]
		switch {
		case !two:
			head, name = "", head+unit
		case head == before:
			head = ""
		default:
			before, head = head, head+unit
		}
		upper, lower = append(upper, head), append(lower, name)
	}
	return [][]string{upper, lower}
}

func writeRun(b *strings.Builder, r *netsim.Result) {
	shown := withColumn(netsim.PartStatistics())
	rows := heads([]string{"GROUP", "CLUSTERS", "WORKERS"}, shown)
	row := func(name string, clusters, workers int, v metric.Values) {
		cells := []string{name, strconv.Itoa(clusters), strconv.Itoa(workers)}
		for _, m := range shown {
			cells = append(cells, inUnit(m, v.Of(m.Name), 0))
		}
		rows = append(rows, cells)
	}
	clusters, workers := 0, 0
	for i := range r.Groups {
		g := &r.Groups[i]
		row(g.Group, g.Clusters, g.Workers, g.Values)
		clusters, workers = clusters+g.Clusters, workers+g.Workers
	}
	row("all", clusters, workers, r.Values)
	align(b, rows)
	b.WriteString("\n")
	for _, m := range withColumn(netsim.RunStatistics())[len(shown):] {
		fmt.Fprintf(b, "%s: %s\n", m.Title, inUnit(m, r.Of(m.Name), 0))
	}
	if withheld, generated := r.Of("withheld"), r.Of("generated"); withheld > 0 {
		fmt.Fprintf(b, "transmission control withheld %.0f of %.0f updates (%.1f %%)\n", withheld, generated, 100*withheld/generated)
	}
	if r.Background[0] > 0 {
		fmt.Fprintf(b, "background: %d of %d packets arrived\n", r.Background[1], r.Background[0])
	}
	writePorts(b, r.Ports)
}

// writePorts lists the ports that anything reached.
func writePorts(b *strings.Builder, ports []netsim.PortResult) {
	shown := withColumn(netsim.PortStatistics())
	rows := heads([]string{"PORT", "QUEUE", "SLOTS"}, shown)[1:]
	for i := range ports {
		p := &ports[i]
		if p.Values.Of("in") == 0 {
			continue
		}
		row := []string{p.Port, p.Queue, strconv.Itoa(p.Slots)}
		for _, m := range shown {
			row = append(row, inUnit(m, p.Values.Of(m.Name), 0))
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		b.WriteString("\n")
		align(b, rows)
	}
}

func writeRuns(b *strings.Builder, runs []*netsim.Result) {
	shown := withColumn(netsim.RunStatistics())
	rows := heads([]string{"SEED"}, shown)
	for _, r := range runs {
		row := []string{strconv.FormatUint(r.Seed, 10)}
		for _, m := range shown {
			row = append(row, inUnit(m, r.Of(m.Name), 0))
		}
		rows = append(rows, row)
	}
	mean, interval := []string{"mean"}, []string{"± 95 %"}
	for _, m := range shown {
		var values []results.Float
		for _, r := range runs {
			values = append(values, r.Of(m.Name))
		}
		s := results.Describe(values, "")
		mean, interval = append(mean, inUnit(m, s.Mean, 1)), append(interval, inUnit(m, s.CI95, 1))
	}
	align(b, append(rows, mean, interval))
}

// shades draw a share from none to all.
const shades = " .:-=+*#%@"

func (s *sweepDocument) write(b *strings.Builder) {
	var rows [][]string
	oldest := 0.0
	for i := range s.Points {
		p := &s.Points[i]
		if rows == nil {
			rows = heads([]string{strings.ToUpper(s.Parameter)}, metricsOf(p.Stats))
		}
		row := []string{p.Value.String()}
		for k := range p.Stats {
			row = append(row, meanCell(&p.Stats[k]))
		}
		rows = append(rows, row)
		if v := p.Stats.Of("aom_worker_ns").Mean; v.Known() {
			oldest = math.Max(oldest, float64(v))
		}
	}
	align(b, rows)
	fmt.Fprintf(b, "\nshare of updates that arrive, by the worker's phase in its period (left: 0, right: the whole period), and worker AoM\n")
	fmt.Fprintf(b, "none [%s] all, blank beyond the phases in use\n\n", shades)
	for i := range s.Points {
		p := &s.Points[i]
		fmt.Fprintf(b, "%10s |", p.Value)
		for _, share := range p.Delivered {
			b.WriteByte(shade(share))
		}
		bar, age := 0, p.Stats.Of("aom_worker_ns").Mean
		if oldest > 0 && age.Known() {
			bar = int(math.Round(30 * float64(age) / oldest))
		}
		fmt.Fprintf(b, "| %s %s ms\n", strings.Repeat("o", bar), scaled(age, 1e-6, 0))
	}
}

func metricsOf(stats results.Stats) (rows []*metric.Metric) {
	for i := range stats {
		rows = append(rows, stats[i].Metric)
	}
	return rows
}

// meanCell prints a mean, and its interval where there is one.
func meanCell(s *results.Stat) string {
	mean := inUnit(s.Metric, s.Mean, 1)
	if !s.CI95.Known() {
		return mean
	}
	if s.Unit == "ns" {
		return mean + " ± " + scaled(s.CI95, 1e-6, 1)
	}
	return mean + " ± " + inUnit(s.Metric, s.CI95, 1)
}

// shade is blank where no worker has the phase; a share of 0 is visible.
func shade(share results.Float) byte {
	if !share.Known() {
		return shades[0]
	}
	return shades[1+int(math.Min(float64(share), 0.999)*float64(len(shades)-1))]
}

// Table lists clusters of every run, or the points of the sweep.
func (s *simulation) Table() (header []string, rows [][]string) {
	if s.Sweep != nil {
		return s.Sweep.table()
	}
	header = []string{"seed", "cluster", "group"}
	for _, m := range netsim.PartStatistics() {
		header = append(header, m.Name)
	}
	for _, r := range s.Runs {
		for i := range r.Clusters {
			c := &r.Clusters[i]
			row := []string{strconv.FormatUint(r.Seed, 10), strconv.Itoa(c.Cluster), c.Group}
			for m, v := range c.Values.All {
				row = append(row, exact(m, v))
			}
			rows = append(rows, row)
		}
	}
	return header, rows
}

func plain(f results.Float) string {
	if !f.Known() {
		return ""
	}
	return strconv.FormatFloat(float64(f), 'g', -1, 64)
}

func (s *sweepDocument) table() (header []string, rows [][]string) {
	header = []string{s.Parameter + "_ns"}
	for i := range s.Points {
		p := &s.Points[i]
		row := []string{strconv.FormatFloat(p.ValueNS, 'f', -1, 64)}
		for k := range p.Stats {
			if i == 0 {
				header = append(header, p.Stats[k].Name, intervalName(p.Stats[k].Name))
			}
			row = append(row, plain(p.Stats[k].Mean), plain(p.Stats[k].CI95))
		}
		rows = append(rows, row)
	}
	return header, rows
}

// intervalName names the interval of a metric: its unit stays at the end.
func intervalName(name string) string {
	for _, unit := range []string{"_ns", "_pct"} {
		if short, ok := strings.CutSuffix(name, unit); ok {
			return short + "_ci95" + unit
		}
	}
	return name + "_ci95"
}
