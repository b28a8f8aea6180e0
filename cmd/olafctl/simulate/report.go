package simulate

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
	"github.com/olafctl/olaf/tui"
)

// newSimulation returns an empty document for the given number of runs. The first run uses the topology's seed, and the
// seed increases by one for each further run.
func newSimulation(t *netsim.Topology, runs int) (*simulation, error) {
	s := &simulation{topology: t, Seeds: experiments.SeedsFrom(t.Seed, runs)}
	var err error
	s.Config, err = t.Document()
	return s, err
}

// simulation is the document of the command simulate. It contains one or more runs of a topology, or a sweep over it.
type simulation struct {
	Provenance results.Provenance
	Config     any // the topology as in its file
	Seeds      []uint64
	Runs       []*netsim.Result
	Sweep      *sweepDocument
	// Waiting contains the results of a system whose workers wait for answers.
	Waiting *job.Clustered
	// Invalid gives the reasons why runs were left out.
	Invalid []string
	// Versus lists the same network with other systems, and their comparison with the first.
	Versus []versusNetwork
	// Remarks explain numbers that could be misread.
	Remarks []string
	Partial bool

	topology  *netsim.Topology
	others    []*netsim.Topology // networks from --versus
	simulated *bench.Simulated   // nil for a sweep or an imported trace
}

// versusNetwork is a network with which the first network is compared.
type versusNetwork struct {
	Name       string
	Config     any
	Runs       []*netsim.Result
	Comparison results.Comparison
}

// addOthers adds the networks with which the first network is compared.
func (s *simulation) addOthers(others []*netsim.Topology) error {
	s.others = others
	for _, t := range others {
		config, err := t.Document()
		if err != nil {
			return err
		}
		s.Versus = append(s.Versus, versusNetwork{Name: t.Title(), Config: config})
	}
	return nil
}

// networkRows returns the statistics of every network, starting with the first one.
func (s *simulation) networkRows() (rows []results.Row) {
	for i := range s.simulated.Runs {
		rows = append(rows, networkRow(s.simulated, i))
	}
	return rows
}

type sweepDocument struct {
	Parameter string               `json:"parameter"`
	Points    []cells.NetworkPoint `json:"points"`
}

// addRuns adds the simulated runs; of may be nil. A run that was stopped early is used only if there is no complete
// run.
func (s *simulation) addRuns(of *bench.Simulated) {
	if s.simulated = of; of == nil {
		return
	}
	s.Runs, s.Partial = of.Results[0], of.Partial
	if len(s.Runs) == 0 && of.Stopped != nil {
		s.Runs = []*netsim.Result{of.Stopped}
	}
	if len(s.Runs) > 0 && s.Runs[0].Waited != nil {
		if waiting, err := job.OfClusters(s.topology, s.Runs); err == nil { // they ran
			s.Waiting = waiting
		}
	}
	for i := range of.Runs[0] {
		if r := &of.Runs[0][i]; !r.Valid() {
			s.Invalid = append(s.Invalid, fmt.Sprintf("seed %d: %s", r.Seed, r.Invalid[0]))
		}
	}
	for i := range s.Versus {
		v := &s.Versus[i]
		v.Runs, v.Comparison = of.Results[i+1], results.CompareRuns(of.Runs[0], of.Runs[i+1])
	}
	s.addRemarks()
}

// addRemarks adds remarks if updates were due after the end of the run or if nothing was delivered.
func (s *simulation) addRemarks() {
	s.Remarks = nil
	if late, all := s.topology.LateSends(); late > 0 {
		s.Remarks = append(s.Remarks, fmt.Sprintf("%d of %d sends of %s are at or after the end, %v, and were not "+
			"simulated", late, all, s.topology.Sends, s.topology.Warmup+s.topology.Duration))
	}
	if len(s.Runs) == 0 || slices.ContainsFunc(s.Runs,
		func(r *netsim.Result) bool { return r.Totals.SumOffered() == 0 || r.Totals.SumOutput() > 0 }) {
		return
	}
	line := fmt.Sprintf("nothing was delivered within %v", s.Runs[0].Time)
	if way, err := s.topology.ShortestWay(); err == nil && way > 0 { // the network ran
		line += "; the path takes " + text.Duration(results.Float(way.NS()))
	}
	s.Remarks = append(s.Remarks, line)
}

// reportOf returns a report on the simulated runs for a dashboard.
func (s *simulation) reportOf(of *bench.Simulated) *tui.Report {
	report := *s
	report.addRuns(of)
	return watch.NewReport(report.WriteText)
}

// isWhole reports whether there is a result to store: a complete run or a sweep.
func (s *simulation) isWhole() bool {
	if s.simulated == nil {
		return s.Sweep != nil || len(s.Runs) > 0
	}
	return len(s.simulated.Runs[0]) > 0
}

// isEmpty reports whether there is nothing to print.
func (s *simulation) isEmpty() bool { return len(s.Runs) == 0 && s.Sweep == nil }

// Simulation returns the runs in the document.
func (s *simulation) Simulation() *bench.Simulated { return s.simulated }

// Paper returns nil, because there are no published numbers for an arbitrary network.
func (s *simulation) Paper() []results.PaperRow { return nil }

// Err returns an error if a run is invalid or missing.
func (s *simulation) Err() error {
	if s.simulated == nil {
		return nil
	}
	if err := s.simulated.Err(); err != nil || s.Waiting == nil {
		return err
	}
	return s.Waiting.Err()
}

// WriteText prints the headlines. It then prints a single run in full, several runs as a list with means, or a sweep as
// a table and a map.
func (s *simulation) WriteText(w io.Writer, v text.View) error {
	p := text.NewPage(w, v)
	for _, line := range s.headlines() {
		p.Say("", "%s", line)
	}
	p.Say("", "%s", s.subject())
	for _, line := range s.Remarks {
		p.Say("- ", "%s", line)
	}
	p.Printf("\n")
	switch {
	case s.Sweep != nil:
		s.Sweep.print(p, len(s.Seeds))
	case len(s.Runs) == 1:
		printRun(p, s.Runs[0], withColumn(netsim.StatisticsOf(s.topology)))
	case len(s.Runs) > 1: // an interrupted simulation may have none
		printRuns(p, s.Runs, withColumn(netsim.StatisticsOf(s.topology)))
	}
	s.printVersus(p)
	if s.Waiting != nil {
		for _, line := range s.Waiting.Lines() {
			p.Say("- ", "%s", line)
		}
	}
	if s.simulated != nil && s.isWhole() {
		p.Say("", "%s", s.simulated.DescribeValidity())
	} else if s.Partial {
		p.Say("", "partial: interrupted before the end")
	}
	return p.Err()
}

// printVersus prints the networks side by side and compares their ages.
func (s *simulation) printVersus(p *text.Page) {
	if len(s.Versus) == 0 || s.simulated == nil {
		return
	}
	rows := s.networkRows()
	g := &table.Grid{Keys: 1, Columns: []table.GridColumn{{Header: "NETWORK"}}}
	for i := range rows {
		g.Add(rows[i].Queue)
	}
	for _, m := range []metric.Metric{{Name: "lost_pct", Column: "LOST", Unit: "%"},
		{Name: "aom_cluster_ns", Column: "AOM/CLUSTER", Unit: "ns"},
		{Name: "aom_worker_ns", Column: "AOM/WORKER", Unit: "ns"}} {
		stats := olaf.Map(rows, func(r results.Row) *results.Statistic { return r.Stats.Of(m.Name) })
		addColumn(g, &m, stats)
	}
	p.Grid(g)
	for i := range s.Versus {
		c := &s.Versus[i].Comparison
		cluster, worker := &c.AoMReduction.ClusterCluster, &c.AoMReduction.WorkerWorker
		p.Say("", "Under %s models are %s per cluster, %s per worker than under %s (pairs of equal seed).",
			rows[0].Queue, text.Freshness(cluster), text.Freshness(worker), s.Versus[i].Name)
	}
	p.Printf("\n")
}

// subject describes the network, the seeds and the window for ages in one line.
func (s *simulation) subject() string {
	name := cmp.Or(s.topology.Name, "network without a name")
	seeds := fmt.Sprintf("seed %d", s.Seeds[0])
	if len(s.Seeds) > 1 {
		seeds += fmt.Sprintf(" to %d", s.Seeds[len(s.Seeds)-1])
	}
	window := s.topology.Window().String()
	if s.Partial && len(s.Runs) == 1 {
		window = s.Runs[0].Window // it may have ended early
	}
	if s.Waiting != nil {
		return fmt.Sprintf("%s: %s, ports %s, %s, ages at the server over %s", cli.OnTerminal(name), s.Waiting.Name(),
			s.topology.Queue, seeds, window)
	}
	control := "off"
	if s.topology.Control.Enabled {
		control = "on"
	}
	ports := "queue " + s.topology.Queue
	if sums := s.topology.DescribeSums(); sums != "" {
		ports = sums + ", " + ports
	}
	return fmt.Sprintf("%s: %s, transmission control %s, %s, ages over %s", cli.OnTerminal(name), ports, control, seeds,
		window)
}

// headlines returns lines that summarise the losses and ages over all runs.
func (s *simulation) headlines() []string {
	if s.Sweep != nil && len(s.Sweep.Points) > 0 {
		return []string{s.Sweep.brief()}
	}
	if len(s.Runs) == 0 {
		return nil
	}
	mean := func(name string) *results.Statistic {
		stat := results.Describe(valuesOf(s.Runs, name), "")
		return &stat
	}
	over := func(of func(*netsim.Result) results.Float) *results.Statistic {
		values := olaf.Map(s.Runs, of)
		stat := results.Describe(values, "")
		return &stat
	}
	lost := over(func(r *netsim.Result) results.Float { return r.LostPct })
	onTheWay := over((*netsim.Result).OnTheWayPct)
	cluster, worker := mean("aom_cluster_ns"), mean("aom_worker_ns")
	var lines []string
	if lost.Known() {
		lines = append(lines, fmt.Sprintf("%s lost %s %% of the updates sent, warm-up included, counting the %s %% "+
			"that were on their way at the end.",
			strings.ToUpper(s.systemName()), text.Decimal(float64(lost.Mean), 1),
			text.Decimal(float64(onTheWay.Mean), 1)))
	}
	switch {
	case cluster.Known() && worker.Known():
		lines = append(lines, fmt.Sprintf("Models were %s old per cluster, %s per worker.", text.Age(cluster),
			text.Age(worker)))
	case cluster.Known():
		lines = append(lines, fmt.Sprintf("Models were %s old per cluster.", text.Age(cluster)))
	}
	return append(lines, "")
}

// systemName returns the name of the simulated system, which is the system of the closed-loop workers, if any, or else
// of the topology's switches or queues.
func (s *simulation) systemName() string {
	if s.Waiting != nil {
		return s.Waiting.Name()
	}
	return s.topology.System()
}

func valuesOf(runs []*netsim.Result, name string) []results.Float {
	return olaf.Map(runs, func(r *netsim.Result) results.Float { return r.Of(name) })
}

// isCount reports whether a metric is a count.
func isCount(m *metric.Metric) bool {
	return m.IsCount() || !slices.Contains([]string{"ns", "%", ""}, m.Unit)
}

// formatExact formats a value for use by other programs.
func formatExact(m *metric.Metric, v results.Float) string {
	if isCount(m) && v.Known() {
		return strconv.FormatFloat(float64(v), 'f', -1, 64)
	}
	return text.Exact(v)
}

// withColumn returns the metrics that are shown as a column in tables.
func withColumn(rows []*metric.Metric) []*metric.Metric {
	return slices.DeleteFunc(slices.Clone(rows), func(m *metric.Metric) bool { return m.Column == "" })
}

// addColumn adds a column for a metric to a grid. All rows use the same unit, whose scale is returned.
func addColumn(g *table.Grid, m *metric.Metric, stats []*results.Statistic) (by float64) {
	by, unit := text.ScaleOf(m.Unit, stats...)
	header := m.Column
	if m.Unit == "ns" || m.Unit == "%" {
		header += ", " + unit
	}
	g.Columns = append(g.Columns, table.GridColumn{Header: header, Right: true})
	for i, s := range stats {
		g.Rows[i] = append(g.Rows[i], text.FormatRounded(s, by))
	}
	return by
}

// singleStatistic returns the statistic of a single value.
func singleStatistic(v results.Float) *results.Statistic {
	s := results.Describe([]results.Float{v}, "")
	return &s
}

func printRun(p *text.Page, r *netsim.Result, rows []*metric.Metric) {
	p.Say("", "After the warm-up, %s; losses are what queues dropped:", r.Window)
	g := &table.Grid{Columns: []table.GridColumn{{Header: "GROUP"}, {Header: "CLUSTERS", Right: true, Spare: 1},
		{Header: "WORKERS", Right: true}}}
	clusters, workers := 0, 0
	for i := range r.Groups {
		group := &r.Groups[i]
		g.Add(group.Group, strconv.Itoa(group.Clusters), strconv.Itoa(group.Workers))
		clusters, workers = clusters+group.Clusters, workers+group.Workers
	}
	total := "all"
	if slices.ContainsFunc(r.Groups, func(g netsim.GroupResult) bool { return g.Group == total }) {
		total = "(all)" // a group in the topology has this name
	}
	g.Add(total, strconv.Itoa(clusters), strconv.Itoa(workers))
	shown := withColumn(netsim.PartStatistics())
	for _, m := range shown {
		values := olaf.Map(r.Groups,
			func(g netsim.GroupResult) *results.Statistic { return singleStatistic(g.Values.Of(m.Name)) })
		addColumn(g, m, append(values, singleStatistic(r.Of(m.Name))))
	}
	p.Grid(g)
	p.Printf("\n")
	for _, m := range rows[len(shown):] {
		p.Say("", "%s", strings.TrimSpace(fmt.Sprintf("%s: %s %s", m.Title,
			text.FormatRounded(singleStatistic(r.Of(m.Name)), 1), m.Unit)))
	}
	if withheld, generated := r.Of("window_withheld"), r.Of("window_generated"); withheld > 0 {
		who := "transmission control"
		if r.Waited != nil {
			who = "workers"
		}
		p.Say("", "%s withheld %.0f of %.0f updates (%.1f %%) after the warm-up", who, withheld, generated,
			100*withheld/generated)
	}
	if r.Background[0] > 0 {
		p.Say("", "background: %d of %d packets arrived", r.Background[1], r.Background[0])
	}
	p.Printf("\n")
	printPorts(p, r.Ports)
}

// printPorts lists the ports that received packets.
func printPorts(p *text.Page, ports []netsim.PortResult) {
	g := &table.Grid{Columns: []table.GridColumn{{Header: "PORT"}, {Header: "QUEUE", Spare: 2},
		{Header: "SLOTS", Right: true, Spare: 1}}}
	ports = slices.DeleteFunc(slices.Clone(ports),
		func(port netsim.PortResult) bool { return port.Values.Of("in") == 0 })
	for i := range ports {
		g.Add(ports[i].Port, ports[i].Queue, strconv.Itoa(ports[i].Slots))
	}
	if len(ports) == 0 {
		return
	}
	p.Say("", "Ports over the whole run, warm-up included:")
	for _, m := range withColumn(netsim.PortStatistics()) {
		addColumn(g, m, olaf.Map(ports,
			func(p netsim.PortResult) *results.Statistic { return singleStatistic(p.Values.Of(m.Name)) }))
	}
	p.Grid(g)
	p.Printf("\n")
}

func printRuns(p *text.Page, runs []*netsim.Result, rows []*metric.Metric) {
	p.Say("", "After the warm-up, %s; losses are what queues dropped:", runs[0].Window)
	g := &table.Grid{Columns: []table.GridColumn{{Header: "SEED", Right: true}}}
	for _, r := range runs {
		g.Add(strconv.FormatUint(r.Seed, 10))
	}
	mean, interval := []string{"mean"}, []string{"± 95 %"}
	for _, m := range rows {
		values := valuesOf(runs, m.Name)
		singles := olaf.Map(values, singleStatistic)
		by := addColumn(g, m, singles)
		s := results.Describe(values, "")
		centre, half := text.FormatRoundedParts(&s, by)
		mean, interval = append(mean, centre), append(interval, half)
	}
	g.Rows = append(g.Rows, mean, interval)
	p.Grid(g)
	p.Printf("\n")
}

// shades contains the characters that represent shares of updates, from none to all.
const shades = " .:-=+*#%@"

const (
	fewSeeds  = 3  // with fewer, a confidence interval means little
	sweepBars = 24 // characters of the oldest bar
)

func (s *sweepDocument) print(p *text.Page, seeds int) {
	g := &table.Grid{Columns: []table.GridColumn{{Header: strings.ToUpper(s.Parameter)}}}
	for i := range s.Points {
		g.Add(s.Points[i].Value.String())
	}
	by, unit := 1.0, ""
	for k := range s.Points[0].Stats {
		m := s.Points[0].Stats[k].Metric
		var stats []*results.Statistic
		for i := range s.Points {
			stats = append(stats, &s.Points[i].Stats[k].Statistic)
		}
		addColumn(g, m, stats)
		if m.Name == sweepAge {
			by, unit = text.ScaleOf(m.Unit, stats...)
		}
	}
	p.Grid(g)
	if 1 < seeds && seeds < fewSeeds {
		p.Say("", "too few runs: an interval over %d means little; use --runs %d or more", seeds, fewSeeds)
	}
	p.Printf("\n")
	s.printMap(p, by, unit)
}

// sweepAge is the name of the age metric that the map shows.
const sweepAge = "aom_worker_ns"

// printMap prints a line for each value of the parameter, with the share of updates that arrive at each phase and the
// workers' age.
func (s *sweepDocument) printMap(p *text.Page, by float64, unit string) {
	oldest := 0.0
	for i := range s.Points {
		if v := s.Points[i].Stats.Of(sweepAge).Mean; v.Known() {
			oldest = max(oldest, float64(v))
		}
	}
	p.Say("", "share of updates that arrive, by the worker's phase in its period (left: 0, right: the whole "+
		"period), and worker AoM; none [%s] all, blank beyond the phases in use", shades)
	p.Printf("\n")
	for i := range s.Points {
		q := &s.Points[i]
		phases := olaf.Map(q.Delivered, shade)
		mean := q.Stats.Of(sweepAge).Mean
		age := text.FormatRounded(singleStatistic(mean), by) + " " + unit
		bar := 0
		if room := min(sweepBars, p.Columns()-15-len(phases)-len(age)); oldest > 0 && mean.Known() && room > 0 {
			bar = int(math.Round(float64(room) * float64(mean) / oldest))
		}
		p.Printf("%10s |%s| %s %s\n", q.Value, phases, strings.Repeat("o", bar), age)
	}
	p.Printf("\n")
}

// shade returns the character for a share. It is blank if the share is unknown and visible if the share is 0.
func shade(share results.Float) byte {
	if !share.Known() {
		return shades[0]
	}
	return shades[1+int(math.Min(float64(share), 0.999)*float64(len(shades)-1))]
}

// Table returns a table of the clusters in every run, or of the points of the sweep.
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
				row = append(row, formatExact(m, v))
			}
			rows = append(rows, row)
		}
	}
	return header, rows
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
			row = append(row, text.Exact(p.Stats[k].Mean), text.Exact(p.Stats[k].CI95))
		}
		rows = append(rows, row)
	}
	return header, rows
}

// intervalName returns the name of the confidence interval of a metric, with the unit at the end.
func intervalName(name string) string {
	for _, unit := range []string{"_ns", "_pct"} {
		if short, ok := strings.CutSuffix(name, unit); ok {
			return short + "_ci95" + unit
		}
	}
	return name + "_ci95"
}
