package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/results"
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

func writeRun(b *strings.Builder, r *netsim.Result) {
	rows := [][]string{
		{"", "", "", "", "", "", "LOSS %", "", "REPLACED", "AOM ms", "", "", "NEVER"},
		{"GROUP", "CLUSTERS", "WORKERS", "SENT", "DELIVERED", "AGGREGATED", "PACKETS", "UPDATES", "%", "CLUSTER", "WORKER", "PEAK", "DELIVERED"},
	}
	row := func(name string, clusters, workers int, c *netsim.Counts, l *netsim.Loss, a *netsim.Ages) {
		rows = append(rows, []string{name, strconv.Itoa(clusters), strconv.Itoa(workers), strconv.FormatUint(c.Sent, 10), strconv.FormatUint(c.DeliveredFrames, 10),
			strconv.FormatUint(c.Aggregated, 10), scaled(l.Packets, 1, 2), scaled(l.Updates, 1, 2), scaled(l.Replaced, 1, 2),
			msCell(a.Cluster), msCell(a.Worker), msCell(a.Peak), strconv.Itoa(a.NeverDelivered)})
	}
	clusters, workers := 0, 0
	for i := range r.Groups {
		g := &r.Groups[i]
		row(g.Group, g.Clusters, g.Workers, &g.Counts, &g.Loss, &g.Ages)
		clusters, workers = clusters+g.Clusters, workers+g.Workers
	}
	row("all", clusters, workers, &r.Counts, &r.Loss, &r.Ages)
	align(b, rows)
	fmt.Fprintf(b, "\nJain's index: %s over clusters, %s over the clusters' mean worker ages, %s over workers\n",
		scaled(r.Fairness.Cluster, 1, 4), scaled(r.Fairness.WorkerMeans, 1, 4), scaled(r.Fairness.Workers, 1, 4))
	if r.Withheld > 0 {
		fmt.Fprintf(b, "transmission control withheld %d of %d updates (%.1f %%)\n", r.Withheld, r.Generated, 100*float64(r.Withheld)/float64(r.Generated))
	}
	if r.Background[0] > 0 {
		fmt.Fprintf(b, "background: %d of %d packets arrived\n", r.Background[1], r.Background[0])
	}
	ports := [][]string{{"PORT", "QUEUE", "SLOTS", "IN", "AGGREGATED", "REPLACED", "DROPPED", "LEFT", "PEAK", "UTILISATION"}}
	for i := range r.Ports {
		if p := &r.Ports[i]; p.In > 0 {
			ports = append(ports, []string{p.Port, p.Queue, strconv.Itoa(p.Slots), strconv.FormatUint(p.In, 10), strconv.FormatUint(p.Aggregated, 10),
				strconv.FormatUint(p.Replaced, 10), strconv.FormatUint(p.Dropped, 10), strconv.FormatUint(p.Left, 10), strconv.Itoa(p.Peak), scaled(p.Utilisation, 100, 1) + " %"})
		}
	}
	if len(ports) > 1 {
		b.WriteString("\n")
		align(b, ports)
	}
}

// runColumns are the numbers of a run that lists over runs show.
var runColumns = []struct {
	name   string
	digits int
	of     func(*netsim.Result) results.Float
}{
	{"sent", 0, func(r *netsim.Result) results.Float { return results.Float(r.Sent) }},
	{"delivered", 0, func(r *netsim.Result) results.Float { return results.Float(r.DeliveredFrames) }},
	{"loss_packets_pct", 2, func(r *netsim.Result) results.Float { return r.Loss.Packets }},
	{"loss_updates_pct", 2, func(r *netsim.Result) results.Float { return r.Loss.Updates }},
	{"aom_cluster_ms", 2, func(r *netsim.Result) results.Float { return r.Ages.Cluster / 1e6 }},
	{"aom_worker_ms", 2, func(r *netsim.Result) results.Float { return r.Ages.Worker / 1e6 }},
	{"jain", 4, func(r *netsim.Result) results.Float { return r.Fairness.Cluster }},
	{"jain_workers", 4, func(r *netsim.Result) results.Float { return r.Fairness.Workers }},
	{"never_delivered", 0, func(r *netsim.Result) results.Float { return results.Float(r.Ages.NeverDelivered) }},
}

func writeRuns(b *strings.Builder, runs []*netsim.Result) {
	header := []string{"SEED"}
	mean := []string{"mean"}
	interval := []string{"± 95 %"}
	for _, c := range runColumns {
		header = append(header, strings.ToUpper(strings.ReplaceAll(c.name, "_", " ")))
		var values []results.Float
		for _, r := range runs {
			values = append(values, c.of(r))
		}
		s := results.Describe(values, "")
		mean = append(mean, scaled(s.Mean, 1, c.digits+1))
		interval = append(interval, scaled(s.CI95, 1, c.digits+1))
	}
	rows := [][]string{header}
	for _, r := range runs {
		row := []string{strconv.FormatUint(r.Seed, 10)}
		for _, c := range runColumns {
			row = append(row, scaled(c.of(r), 1, c.digits))
		}
		rows = append(rows, row)
	}
	align(b, append(rows, mean, interval))
}

// shades draw a share from none to all.
const shades = " .:-=+*#%@"

func (s *sweepDocument) write(b *strings.Builder) {
	rows := [][]string{{strings.ToUpper(s.Parameter), "LOSS %", "AOM ms CLUSTER", "WORKER", "OLDEST WORKER", "JAIN WORKERS", "NEVER DELIVERED"}}
	oldest := 0.0
	for i := range s.Points {
		p := &s.Points[i]
		rows = append(rows, []string{p.Value.String(), scaled(p.LossPct.Mean, 1, 2), msCell(p.AoMCluster.Mean), msCell(p.AoMWorker.Mean) + plusMinus(p.AoMWorker.CI95, 1e-6),
			msCell(p.AoMWorkerMax.Mean), scaled(p.JainWorkers.Mean, 1, 3), scaled(p.NeverDelivered.Mean, 1, 1) + plusMinus(p.NeverDelivered.CI95, 1)})
		if v := p.AoMWorker.Mean; v.Known() {
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
		bar := 0
		if oldest > 0 && p.AoMWorker.Mean.Known() {
			bar = int(math.Round(30 * float64(p.AoMWorker.Mean) / oldest))
		}
		fmt.Fprintf(b, "| %s %s ms\n", strings.Repeat("o", bar), scaled(p.AoMWorker.Mean, 1e-6, 0))
	}
}

func plusMinus(f results.Float, by float64) string {
	if !f.Known() {
		return ""
	}
	return " ± " + scaled(f, by, 1)
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
	header = []string{"seed", "cluster", "group", "generated", "withheld", "sent", "delivered_frames", "delivered_updates", "aggregated", "replaced", "dropped_frames", "dropped_updates",
		"aom_cluster_ns", "aom_worker_ns", "peak_aom_ns", "never_delivered"}
	for _, r := range s.Runs {
		for i := range r.Clusters {
			c := &r.Clusters[i]
			row := []string{strconv.FormatUint(r.Seed, 10), strconv.Itoa(c.Cluster), c.Group}
			for _, n := range []uint64{c.Generated, c.Withheld, c.Sent, c.DeliveredFrames, c.DeliveredUpdates, c.Aggregated, c.Counts.Replaced, c.DroppedFrames, c.DroppedUpdates} {
				row = append(row, strconv.FormatUint(n, 10))
			}
			rows = append(rows, append(row, plain(c.Ages.Cluster), plain(c.Ages.Worker), plain(c.Ages.Peak), strconv.Itoa(c.NeverDelivered)))
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
	header = []string{s.Parameter + "_ns", "loss_packets_pct", "aom_cluster_ns", "aom_worker_ns", "aom_worker_ci95_ns", "aom_worker_max_ns", "jain_workers", "never_delivered"}
	for i := range s.Points {
		p := &s.Points[i]
		rows = append(rows, []string{strconv.FormatFloat(p.ValueNS, 'f', -1, 64), plain(p.LossPct.Mean), plain(p.AoMCluster.Mean), plain(p.AoMWorker.Mean), plain(p.AoMWorker.CI95),
			plain(p.AoMWorkerMax.Mean), plain(p.JainWorkers.Mean), plain(p.NeverDelivered.Mean)})
	}
	return header, rows
}
