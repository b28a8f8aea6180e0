package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// ErrInvalid says that at least one run must not be used.
var ErrInvalid = errors.New("invalid run")

// Options say where a single-queue experiment runs.
type Options struct {
	Device string // an address as Open takes it; empty for the twin
	Access testbed.Access
	Listen string // where a second controller can reach the tables; empty for a private socket
	Cards  int    // cards side by side; 0 for one a core
	// AgeErrorPct is by how much of a run's mean AoM its ages may be wrong; see Testbed.
	AgeErrorPct float64
	Stream      *Stream
	// Twin sets beside each age what the twin makes of the plan, and what it makes of the arrivals that the device logged.
	Twin bool
	// Notes are to be read beside the numbers.
	Notes  []string
	Beside Beside // what was published of such a specification; nil for nothing
	// Declared is what the runs count and measure; see Plan.
	Declared *metric.Declaration
}

// Beside sets what a specification measured beside what was published of it, and says what the comparison must be read
// with; nothing where no paper has run such a specification.
type Beside func(*Spec, *results.Bench) (rows []results.PaperRow, statements []string)

// Measurement is the result of a single-queue experiment.
type Measurement struct {
	Bench   *results.Bench
	Outcome *Outcome
}

// Measure runs spec to its end. When it is stopped early the report holds the runs that were done, beside the error.
func Measure(ctx context.Context, spec Spec, o Options) (*Measurement, error) {
	plan, err := NewPlan(spec)
	if err != nil {
		return nil, err
	}
	plan.Declared = o.Declared
	if o.Cards == 0 {
		o.Cards = min(runtime.GOMAXPROCS(0), len(plan.Seeds))
	}
	if o.Stream == nil {
		o.Stream = NewStream()
	}
	open := spec.Opening(o.Access)
	open.Cards, open.Listen, open.Wire = o.Cards, o.Listen, o.Stream.recorders()
	bed, err := testbed.Open(ctx, o.Device, open)
	if err != nil {
		return nil, err
	}
	bed.AgeErrorPct = o.AgeErrorPct
	var planned [][]results.Run
	plan, err = plan.onDevice(bed.Cards[0].Device)
	if err == nil && o.Twin {
		if _, err = logOf(bed.Cards[0].Device); err == nil {
			planned, err = predict(ctx, spec, &o)
		}
	}
	var outcome *Outcome
	if err == nil {
		outcome, err = run(ctx, plan, bed, o.Stream, planned)
	}
	err = errors.Join(err, bed.Close())
	if outcome == nil || err != nil && outcome.empty() {
		return nil, err // there is nothing to show, and nothing to keep
	}
	report, reportErr := NewMeasurement(outcome, o.Beside)
	if report != nil {
		report.Bench.Statements = append(report.Bench.Statements, o.Notes...)
	}
	return report, errors.Join(err, reportErr)
}

// onDevice is the plan without engine cycles where a device has none, whatever the profile of a specification.
func (p *Plan) onDevice(dev fpga.Device) (*Plan, error) {
	if _, real := fpga.FindArrivalLog(dev); !real { // a model or a card's logic, which has some
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

// empty says that no run came to its end.
func (o *Outcome) empty() bool {
	return !slices.ContainsFunc(o.Runs, func(runs []results.Run) bool { return len(runs) > 0 })
}

// NewMeasurement makes the document of an outcome; beside may be nil.
func NewMeasurement(o *Outcome, beside Beside) (*Measurement, error) {
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
		Terms:      o.Plan.terms(),
	}
	for i, runs := range o.Runs {
		b.Rows = append(b.Rows, results.Summarise(o.Plan.Declaration(&o.Plan.Configs[i]), runs))
	}
	if t := o.Plan.Spec.Trace; t != nil {
		d := &o.Departures
		b.Statements = append(b.Statements, fmt.Sprintf("traffic of %s (%.12s…): frames leave within %v of its instants, %v on average; a run past %v is invalid", t.Name, t.Digest, d.Max, d.Mean, t.MaxDeparture))
	}
	if o.sentHere() && o.Plan.Spec.inBursts() {
		b.Statements = append(b.Statements, o.burstStatement())
	}
	b.Statements = append(b.Statements, o.Plan.Spec.topologyStatements()...)
	if n := o.Plan.Spec.Workload.Segments(); n > 1 {
		b.Statements = append(b.Statements, fmt.Sprintf("an update is a vector of %d values in %d frames, each a segment, one behind the other: what is counted are frames, and an age is that of the oldest segment that a server, or a worker, has of a vector",
			o.Plan.Spec.Workload.Values, n))
	}
	if u := o.Plan.Spec.unit(); u != nil {
		b.Statements = append(b.Statements, fmt.Sprintf("accelerator: updates pass %v in front of the program, one after the other; %s may wait, and %.1f %% of those for it found no room", u.Rate(), olaf.Plural(u.Room, "update"), o.turnedAway()))
	}
	if o.Plan.Spec.Loop != nil {
		b.Statements = append(b.Statements, o.Plan.Spec.loopStatements(o.Measured)...)
	}
	if o.heldByDeliveries() {
		b.Statements = append(b.Statements, "slots_held is over the time from the first to the last delivery: the card's map is older than 1.4, and does not say over how many cycles it counted")
	}
	b.Statements = append(b.Statements, o.captured.statements()...)
	for i := range b.Rows { // a configuration without a finished run has a row as well
		b.Rows[i].Queue, b.Rows[i].OutRateBPS = o.Plan.Configs[i].Queue, int64(o.Plan.Configs[i].OutRate)
	}
	b.Comparisons = o.comparisons()
	if beside != nil {
		rows, statements := beside(&o.Plan.Spec, b)
		b.Paper, b.Statements = rows, append(b.Statements, statements...)
	}
	return &Measurement{Bench: b, Outcome: o}, nil
}

// turnedAway is which share of the updates for programs were lost in front of them, in per cent over all runs.
func (o *Outcome) turnedAway() float64 {
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

// heldByDeliveries says whether a card counted what a program's table held, and not for how long.
func (o *Outcome) heldByDeliveries() bool {
	return slices.ContainsFunc(slices.Concat(o.Runs...), func(r results.Run) bool {
		return r.Counters.Of("held_slot_cycles") > 0 && r.Counters.Of("held_cycles") == 0
	})
}

// comparisons sets the system under test against each of the others at every output rate, within a topology.
func (o *Outcome) comparisons() []results.Comparison {
	var out []results.Comparison
	configs := o.Plan.Configs
	for i := range configs {
		if len(o.Runs[i]) == 0 || !o.Plan.tests(&configs[i]) {
			continue
		}
		for k := i + 1; k < len(configs) && configs[k].OutRate == configs[i].OutRate && configs[k].Topology == configs[i].Topology; k++ {
			out = append(out, results.CompareRuns(o.Runs[i], o.Runs[k]))
		}
	}
	return out
}

// tests says whether a configuration is of the system under test.
func (p *Plan) tests(c *Config) bool { return c.system != nil && c.system.Name == p.Spec.Queue }

// Result is the report with all its runs, as workbook and store take it.
func (r *Measurement) Result() *sheets.Result {
	return &sheets.Result{Bench: r.Bench, Runs: slices.Concat(r.Outcome.Runs...)}
}

// Sheets are the tables of the report, with their figures.
func (r *Measurement) Sheets() []table.Sheet { return sheets.Book(r.Result()).Sheets }

// Document is the JSON form, results.BenchSchema.
func (r *Measurement) Document() any { return r.Bench }

// WriteText prints what came out and what was run.
func (r *Measurement) WriteText(w io.Writer, v text.View) error {
	s := &r.Outcome.Plan.Spec
	load := &s.Workload
	if s.Loop != nil {
		how := "closed loop"
		if r.Outcome.Measured {
			how += ", measured"
		}
		return text.Bench(w, v, r.Bench, fmt.Sprintf("%s on %s (%s), %s: %s", s.Experiment, r.Outcome.Device.Address, r.Outcome.Device.Build, how, s.loopAbout()))
	}
	profile := fmt.Sprintf(", profile %s", s.Profile)
	if r.Outcome.sentHere() {
		profile = "" // a program of the machine has no engine cycles
	}
	return text.Bench(w, v, r.Bench, fmt.Sprintf("%s on %s (%s)%s%s: %d workers in %d clusters, %d updates of %s each, %v offered %s, %s, %s, seed %d",
		s.Experiment, r.Outcome.Device.Address, r.Outcome.Device.Build, s.topology(), profile,
		load.Workers, load.Clusters, load.UpdatesPerWorker, s.update(), load.MeanRate, s.arrivals(r.Outcome.sentHere()),
		olaf.Plural(s.Slots, "slot"), olaf.Plural(s.Runs, "run"), s.Seed))
}

// topology says where results go if it is not the usual place.
func (s *Spec) topology() string {
	if s.Topology == "" {
		return ""
	}
	if s.Topology == ToBoth {
		return fmt.Sprintf(", topologies %s and %s", ToServer, ToWorkers)
	}
	return fmt.Sprintf(", topology %s", s.Topology)
}

// update says how large one is.
func (s *Spec) update() string {
	w := &s.Workload
	if w.Segments() == 1 {
		return w.Size.String()
	}
	return fmt.Sprintf("%d values in %d frames of %v", w.Values, w.Segments(), w.Size)
}

// arrivals says how updates are spread over time. Where a program of this machine sends them the rate inside a burst is no more than planned.
func (s *Spec) arrivals(planned bool) string {
	if s.Trace != nil {
		return "as " + s.Trace.Name + " tells"
	}
	at := "at"
	if planned {
		at = "planned at"
	}
	return fmt.Sprintf("in bursts of %d %s %v", s.Workload.BurstPackets, at, s.Workload.LineRate)
}

// sentHere says whether a program sent the updates in real time, which keeps the times of a plan as well as its machine lets it.
func (o *Outcome) sentHere() bool {
	paced := func(r results.Run) bool { return r.LatenessNS != nil }
	return o.Plan.Spec.Loop == nil && slices.ContainsFunc(slices.Concat(o.Runs...), paced)
}

// Table is one line a configuration, with every statistic's mean and interval.
func (r *Measurement) Table() (header []string, rows [][]string) {
	header = []string{"queue", "out_rate_bps", "runs", "invalid_runs"}
	metrics := results.MetricsOf(slices.Concat(r.Outcome.Runs...))
	for _, m := range metrics {
		header = append(header, m.Name, m.Name+"_ci95")
	}
	for i := range r.Bench.Rows {
		row := &r.Bench.Rows[i]
		cells := []string{row.Queue, strconv.FormatInt(row.OutRateBPS, 10), strconv.Itoa(row.Runs), strconv.Itoa(row.InvalidRuns)}
		for _, m := range metrics {
			stat := row.Stats.Of(m.Name)
			cells = append(cells, text.Exact(stat.Mean), text.Exact(stat.CI95))
		}
		rows = append(rows, cells)
	}
	return header, rows
}

// Paper compares with the published numbers that this experiment reaches.
func (r *Measurement) Paper() []results.PaperRow { return r.Bench.Paper }

// Err is nil when every run was valid and none is missing.
func (r *Measurement) Err() error {
	for i := range r.Bench.Rows {
		if row := &r.Bench.Rows[i]; row.InvalidRuns > 0 {
			return fmt.Errorf("%w: %s at %v: %s", ErrInvalid, row.Queue, r.Outcome.Plan.Configs[i].OutRate, row.Reasons[0])
		}
	}
	if r.Bench.Partial {
		return fmt.Errorf("%w: stopped before all runs were done", ErrRun)
	}
	return nil
}
