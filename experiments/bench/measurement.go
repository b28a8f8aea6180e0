package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// ErrInvalid reports that at least one run in a measurement is invalid.
var ErrInvalid = errors.New("invalid run")

// Options configures where a single-queue experiment runs and what it is compared with.
type Options struct {
	Device string // address for testbed.OpenTestbed; empty for the twin
	Access testbed.Access
	Listen string // where a second controller can reach the tables; empty for a private socket
	Cards  int    // number of parallel cards; 0 for one per core
	// AgeErrorPct is the accepted error of ages relative to a run's mean AoM; see Testbed.
	AgeErrorPct float64
	Stream      *Stream
	// Twin adds the twin's results for the plan and for the logged arrivals to each age.
	Twin bool
	// Notes are added to the report's statements.
	Notes        []string
	ComparePaper PaperComparison // comparison with published numbers; may be nil
	// Declared overrides the counters and metrics of runs; see Plan.
	Declared *metric.Declaration
}

// PaperComparison compares results with numbers that a paper published for the same specification, and returns
// statements about the comparison. It returns nothing if no paper measured that specification.
type PaperComparison func(*Spec, *results.Bench) (rows []results.PaperRow, statements []string)

// Measurement is the result of a single-queue experiment.
type Measurement struct {
	Bench   *results.Bench
	Outcome *Outcome
}

// MeasureSpec plans and runs the experiment in spec. If it is stopped early, it returns a report on the finished runs
// together with the error.
func MeasureSpec(ctx context.Context, spec Spec, o Options) (*Measurement, error) {
	plan, err := NewPlan(spec)
	if err != nil {
		return nil, err
	}
	plan.Declared = o.Declared
	o.Cards = cmp.Or(o.Cards, min(runtime.GOMAXPROCS(0), len(plan.Seeds)))
	if o.Stream == nil {
		o.Stream = NewStream()
	}
	open := spec.Opening(o.Access)
	open.Cards, open.Listen, open.Wire = o.Cards, o.Listen, o.Stream.hasRecorders()
	bed, err := testbed.OpenTestbed(ctx, o.Device, open)
	if err != nil {
		return nil, err
	}
	bed.AgeErrorPct = o.AgeErrorPct
	var planned [][]results.Run
	plan, err = plan.withoutCycles(bed.Cards[0].Device)
	if err == nil && o.Twin {
		if _, err = logOf(bed.Cards[0].Device); err == nil {
			planned, err = predictOnTwin(ctx, spec, &o)
		}
	}
	var outcome *Outcome
	if err == nil {
		outcome, err = runWith(ctx, plan, bed, o.Stream, planned)
	}
	if ctx.Err() == nil { // an interrupt is no fault of the testbed
		bed.NoteError(err)
	}
	err = errors.Join(err, bed.Close())
	if outcome == nil || err != nil && outcome.isEmpty() {
		return nil, err // there is nothing to show or store
	}
	report, reportErr := NewMeasurement(outcome, o.ComparePaper)
	if report != nil {
		report.Bench.Statements = append(report.Bench.Statements, o.Notes...)
	}
	return report, errors.Join(err, reportErr)
}

// withoutCycles returns the plan without engine cycles, whatever the profile, if the device does not have any.
func (p *Plan) withoutCycles(dev fpga.Device) (*Plan, error) {
	if _, real := fpga.FindArrivalLog(dev); !real { // models and cards' logic have engine cycles
		return p, nil
	}
	none, err := fpga.HasNoEngineCycles(dev)
	if err != nil || !none {
		return p, err
	}
	spec := p.Spec
	spec.Profile, spec.DequeueCycles, spec.MergeCycles = engine.Ideal, nil, nil
	plan, err := NewPlan(spec)
	if err == nil {
		plan.Declared = p.Declared
	}
	return plan, err
}

// isEmpty reports whether no run was finished.
func (o *Outcome) isEmpty() bool {
	return !slices.ContainsFunc(o.Runs, func(runs []results.Run) bool { return len(runs) > 0 })
}

// NewMeasurement builds the report on an outcome. beside may be nil.
func NewMeasurement(o *Outcome, beside PaperComparison) (*Measurement, error) {
	config, err := json.Marshal(o.Plan)
	if err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	b := &results.Bench{
		Schema:     results.BenchSchema,
		Experiment: o.Plan.Spec.Experiment,
		Config:     config,
		Window:     results.Window{}.String(),
		Partial:    o.Partial,
		Terms:      o.Plan.fairTerms(),
	}
	for i, runs := range o.Runs {
		b.Rows = append(b.Rows, results.Summarise(o.Plan.Declaration(&o.Plan.Configs[i]), runs))
	}
	if t := o.Plan.Spec.Trace; t != nil {
		d := &o.Departures
		b.Statements = append(b.Statements,
			fmt.Sprintf("traffic of %s (%.12s…): frames leave within %v of its times, %v on average; a run above "+
				"%v is invalid", t.Name, t.Digest, d.Max, d.Mean, t.MaxDeparture))
	}
	b.Statements = append(b.Statements, o.Plan.Spec.splitStatements(b.Rows)...)
	if o.sentHere() && o.Plan.Spec.inBursts() {
		b.Statements = append(b.Statements, o.burstStatement())
	}
	b.Statements = append(b.Statements, o.Plan.Spec.topologyStatements()...)
	b.Statements = append(b.Statements, o.controlStatements()...)
	if n := o.Plan.Spec.Workload.Segments(); n > 1 {
		b.Statements = append(b.Statements,
			fmt.Sprintf("an update is a vector of %d values in %d frames, sent one after the other, each of "+
				"which is a segment: counts are in frames, and an age is that of the oldest segment of a vector "+
				"at the server or worker",
				o.Plan.Spec.Workload.Values, n))
	}
	if u := o.Plan.Spec.accelerator(); u != nil {
		b.Statements = append(b.Statements,
			fmt.Sprintf("accelerator: updates reach the program one after the other, at %v; %s may wait, "+
				"and %.1f %% of the updates found no room", u.Rate(), olaf.Plural(u.Room, "update"), o.lostInFrontPct()))
	}
	if o.Plan.Spec.Loop != nil {
		b.Statements = append(b.Statements, o.Plan.Spec.loopStatements(o.Measured)...)
	}
	if o.countsAtDeliveries() {
		b.Statements = append(b.Statements,
			"slots_held covers the time from the first to the last delivery, because the card's map is older "+
				"than 1.4 and does not report how many cycles it counted")
	}
	b.Statements = append(b.Statements, o.captured.listStatements()...)
	for i := range b.Rows { // a configuration without a finished run has a row as well
		b.Rows[i].Queue, b.Rows[i].OutRateBPS = o.Plan.Configs[i].Queue, int64(o.Plan.Configs[i].OutRate)
	}
	b.Comparisons = o.compareSystems()
	if beside != nil {
		rows, statements := beside(&o.Plan.Spec, b)
		b.Paper, b.Statements = rows, append(b.Statements, statements...)
	}
	return &Measurement{Bench: b, Outcome: o}, nil
}

// splitStatements returns statements about updates that are split into several frames, with the share of torn updates
// and the age of whole models in each row.
func (s *Spec) splitStatements(rows []results.Row) (all []string) {
	if s.Trace == nil || s.Trace.Fragments < 2 {
		return nil
	}
	n := s.Trace.Fragments
	all = append(all, fmt.Sprintf("an update takes %d frames, one behind the other, and queues take each for an update of "+
		"a cluster of its own: the workload's workers and clusters, and all other numbers, are of frames", n))
	for i := range rows {
		if m := rows[i].Model; m != nil {
			all = append(all, fmt.Sprintf("%s at %v: %s %% of updates are torn (some frames are lost, or in "+
				"different mixtures); a whole model is %s old, like its oldest fragment", rows[i].Queue, olaf.Rate(rows[i].OutRateBPS),
				text.FormatRounded(&m.Torn, 1), text.Duration(m.AoM.Mean)))
		}
	}
	return all
}

// lostInFrontPct returns the percentage of updates, over all runs, that were lost on their way to the switch programs.
func (o *Outcome) lostInFrontPct() float64 {
	lost, sent := int64(0), int64(0)
	for i, runs := range o.Runs {
		if !o.Plan.Configs[i].system.Adds() {
			continue
		}
		for k := range runs {
			lost, sent = lost+runs[k].Counters.Of("lost_before_engine"), sent+runs[k].Counters.Of("sent")
		}
	}
	return 100 * float64(lost) / float64(max(sent, 1))
}

// countsAtDeliveries reports whether a card counted its table's occupancy at deliveries only, and not over time.
func (o *Outcome) countsAtDeliveries() bool {
	return slices.ContainsFunc(slices.Concat(o.Runs...), func(r results.Run) bool {
		return r.Counters.Of("held_slot_cycles") > 0 && r.Counters.Of("held_cycles") == 0
	})
}

// compareSystems compares the system under test with every other system at each output rate. It compares only
// configurations with the same topology.
func (o *Outcome) compareSystems() []results.Comparison {
	var out []results.Comparison
	configs := o.Plan.Configs
	for i := range configs {
		if len(o.Runs[i]) == 0 || !o.Plan.isUnderTest(&configs[i]) {
			continue
		}
		for k := i + 1; k < len(configs) && configs[k].OutRate == configs[i].OutRate &&
			configs[k].Topology == configs[i].Topology; k++ {
			out = append(out, results.CompareRuns(o.Runs[i], o.Runs[k]))
		}
	}
	return out
}

// isUnderTest reports whether a configuration is one of the system under test.
func (p *Plan) isUnderTest(c *Config) bool { return c.system != nil && c.system.Name == p.Spec.Queue }

// Result returns the report and all its runs, from which the workbook and the stored tables are made.
func (r *Measurement) Result() *sheets.Result {
	return &sheets.Result{Bench: r.Bench, Runs: slices.Concat(r.Outcome.Runs...)}
}

// Sheets returns the tables of the report, with their figures.
func (r *Measurement) Sheets() []table.Sheet { return sheets.Book(r.Result()).Sheets }

// Document returns the report in its JSON form, whose schema is results.BenchSchema.
func (r *Measurement) Document() any { return r.Bench }

// WriteText prints the settings and the results.
func (r *Measurement) WriteText(w io.Writer, v text.View) error {
	s := &r.Outcome.Plan.Spec
	load := &s.Workload
	if s.Loop != nil {
		how := "closed loop"
		if r.Outcome.Measured {
			how += ", measured"
		}
		return text.Bench(w, v, r.Bench, fmt.Sprintf("%s on %s (%s), %s: %s", s.Experiment, r.Outcome.Device.Address,
			r.Outcome.Device.Build, how, s.loopAbout()))
	}
	profile := fmt.Sprintf(", profile %s", s.Profile)
	if r.Outcome.sentHere() {
		profile = "" // a program on this machine has no engine cycles
	}
	return text.Bench(w, v, r.Bench, fmt.Sprintf("%s on %s (%s)%s%s: %s in %s, %s of %s each, %v offered %s, %s, %s, seed %d",
		s.Experiment, r.Outcome.Device.Address, r.Outcome.Device.Build, s.describeTopology(), profile,
		olaf.Plural(load.Workers, "worker"), olaf.Plural(load.Clusters, "cluster"), olaf.Plural(load.UpdatesPerWorker, "update"),
		s.describeUpdate(), load.MeanRate, s.describeArrivals(r.Outcome.sentHere()),
		olaf.Plural(s.Slots, "slot"), olaf.Plural(s.Runs, "run"), s.Seed))
}

// describeTopology describes the topology, or returns "" for the default.
func (s *Spec) describeTopology() string {
	if s.Topology == "" {
		return ""
	}
	if s.Topology == ToBoth {
		return fmt.Sprintf(", topologies %s and %s", ToServer, ToWorkers)
	}
	return fmt.Sprintf(", topology %s", s.Topology)
}

// describeUpdate describes the size of an update.
func (s *Spec) describeUpdate() string {
	w := &s.Workload
	if w.Segments() == 1 {
		return w.Size.String()
	}
	return fmt.Sprintf("%d values in %d frames of %v", w.Values, w.Segments(), w.Size)
}

// describeArrivals describes how updates are distributed over time. If a program on this machine sends them, the rate
// within a burst is only planned.
func (s *Spec) describeArrivals(planned bool) string {
	if s.Trace != nil {
		return "as " + s.Trace.Name + " tells"
	}
	at := "at"
	if planned {
		at = "planned at"
	}
	return fmt.Sprintf("in bursts of %d %s %v", s.Workload.BurstPackets, at, s.Workload.LineRate)
}

// sentHere reports whether a program on this machine sent the updates in real time. Their times then depend on the
// machine.
func (o *Outcome) sentHere() bool {
	paced := func(r results.Run) bool { return r.LatenessNS != nil }
	return o.Plan.Spec.Loop == nil && slices.ContainsFunc(slices.Concat(o.Runs...), paced)
}

// Table returns one line per configuration, with the mean and the interval of every statistic.
func (r *Measurement) Table() (header []string, rows [][]string) {
	header = []string{"queue", "out_rate_bps", "runs", "invalid_runs"}
	metrics := results.MetricsOf(slices.Concat(r.Outcome.Runs...))
	for _, m := range metrics {
		header = append(header, m.Name, m.Name+"_ci95")
	}
	for i := range r.Bench.Rows {
		row := &r.Bench.Rows[i]
		cells := []string{row.Queue, strconv.FormatInt(row.OutRateBPS, 10), strconv.Itoa(row.Runs),
			strconv.Itoa(row.InvalidRuns)}
		for _, m := range metrics {
			stat := row.Stats.Of(m.Name)
			cells = append(cells, text.Exact(stat.Mean), text.Exact(stat.CI95))
		}
		rows = append(rows, cells)
	}
	return header, rows
}

// Paper returns the comparison with published numbers.
func (r *Measurement) Paper() []results.PaperRow { return r.Bench.Paper }

// Err returns nil if every run was valid and none is missing.
func (r *Measurement) Err() error {
	for i := range r.Bench.Rows {
		if row := &r.Bench.Rows[i]; row.InvalidRuns > 0 {
			return fmt.Errorf("%w: %s at %v: %s", ErrInvalid, row.Queue, r.Outcome.Plan.Configs[i].OutRate,
				row.Reasons[0])
		}
	}
	if r.Bench.Partial {
		return fmt.Errorf("%w: stopped before all runs were done", ErrRun)
	}
	return nil
}

// fairTerms returns the rules of a fair comparison that apply to an open-loop bench. It returns none if all compared
// systems are from one paper.
func (p *Plan) fairTerms() []string {
	systems, err := p.Spec.findSystems()
	if err != nil || p.Spec.Loop != nil || countPapers(systems) < 2 {
		return nil
	}
	s := &p.Spec
	readers := map[Topology]string{"": "P, the link from the switch to the server",
		ToWorkers: "S, the links from the switch to the workers",
		ToBoth:    "P, the link from the switch to the server; S, the links from the switch to the workers"}
	terms := []string{
		fmt.Sprintf("All systems get the same arrivals and seeds. Every frame takes %v + %v on the line, even if "+
			"a system's own frames are shorter. Bottleneck: %s.", s.Workload.Size, s.Overhead, readers[s.Topology]),
		"Ages are those of the newest contribution, in virtual time; progress is counted in gradient vectors. " +
			"Nothing is resent: an update that finds no room is lost.",
		p.describeCosts(), "Switch memory: " + p.describeEach(systems, s.describeMemory) + ".",
		"Arithmetic: " + p.describeEach(systems, (*system.System).Arithmetic) + "; ages do not depend on it.",
	}
	return slices.DeleteFunc(terms, func(t string) bool { return t == "" })
}

// countPapers returns the number of different papers that describe the given systems.
func countPapers(systems []*system.System) int {
	named := map[string]bool{}
	for _, s := range systems {
		named[s.Paper] = s.Paper != ""
	}
	delete(named, "")
	return len(named)
}

// describeEach returns a text that lists every system with its description from describe.
func (p *Plan) describeEach(systems []*system.System, describe func(*system.System) string) string {
	parts := olaf.Map(systems, func(of *system.System) string { return of.Title + " " + describe(of) })
	return strings.Join(parts, ", ")
}

// describeCosts describes which systems have engine cycles, and for which the accelerator's time is not included.
func (p *Plan) describeCosts() string {
	var pays, free, spared []string
	for i := range p.Configs {
		c := &p.Configs[i]
		if c.OutRate != p.Spec.OutRates[0] || c.Topology != "" {
			continue
		}
		if c.DequeueCycles+c.MergeCycles > 0 {
			pays = append(pays, fmt.Sprintf("%s pays %d per departure and %d per merge", c.system.Title, c.DequeueCycles,
				c.MergeCycles))
		} else {
			free = append(free, c.system.Title)
		}
		if c.system.Unit != nil && !p.Spec.Accelerator {
			spared = append(spared, c.system.Title)
		}
	}
	statement := fmt.Sprintf("Engine cycles (profile %s): none are charged.", p.Spec.Profile)
	if len(pays) > 0 {
		statement = fmt.Sprintf("Engine cycles (profile %s): %s; none are charged to %s. --profile ideal charges none.",
			p.Spec.Profile, strings.Join(pays, ", "), strings.Join(free, ", "))
	}
	if len(spared) > 0 {
		statement += fmt.Sprintf(" The time of the accelerator of %s is left out; --accelerator charges it.",
			strings.Join(spared, ", "))
	}
	return statement
}

// describeMemory describes the frame memory in a system's switch.
func (s *Spec) describeMemory(of *system.System) string {
	queue := olaf.Size(s.Slots) * s.Workload.Size
	if !of.Adds() {
		return queue.String()
	}
	segments := s.Workload.Clusters * s.Workload.Segments()
	said := fmt.Sprintf("%v with its %s", queue+olaf.Size(segments)*s.Workload.Size, olaf.Plural(segments, "segment"))
	if p, err := of.Program.New(program.Config{}); err == nil {
		said += fmt.Sprintf(" (published: %v)", p.Memory())
	}
	return said
}
