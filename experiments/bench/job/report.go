package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// EarlierSchema is the schema name, without a version, that earlier versions used for job results.
const EarlierSchema = "olafctl.job"

// experiment is the experiment name under which jobs are stored.
const experiment = "simulate"

// Report contains the results of the same job for one or more systems.
type Report struct {
	*result.Result
	Plan     *Plan
	Outcomes []*Outcome
}

// ReplayPlan returns the plan that reproduces the report when it is run again.
func (r *Report) ReplayPlan() any { return r.Plan }

// report builds the report from the outcomes of a plan.
func (p *Plan) report(outcomes []*Outcome) *Report {
	r := &Report{result.New(experiment, "", p.Config), p, outcomes}
	r.Title, r.Seeds, r.Partial, r.PaperRows = p.Title, p.Seeds, p.Partial, p.comparePrinted(outcomes)
	r.Statements = append([]string{}, p.Statements...)
	r.Metrics = slices.Clone(jobMetrics)
	at := slices.IndexFunc(r.Metrics, func(m *metric.Metric) bool { return m.Name == capped })
	r.Metrics = slices.Insert(r.Metrics, at+1, ceiling)
	for _, counts := range []func(*closedloop.Result) *olaf.Counts{endpointCounts, programCounts} {
		for _, o := range outcomes {
			r.addCounters(o, counts)
		}
	}
	for _, o := range outcomes {
		r.Result.Rows = append(r.Result.Rows, o.resultRow(r.Metrics, p.Seeds))
	}
	r.Found = r.answer()
	r.Fail(Errs(outcomes))
	return r
}

func endpointCounts(run *closedloop.Result) *olaf.Counts { return &run.Endpoints }
func programCounts(run *closedloop.Result) *olaf.Counts  { return &run.Program }

// addCounters adds the counters in an outcome to the report's metrics, unless they are already there.
func (r *Report) addCounters(o *Outcome, of func(*closedloop.Result) *olaf.Counts) {
	if len(o.Runs) == 0 || of(o.Runs[0]).Ledger() == nil {
		return
	}
	for _, c := range of(o.Runs[0]).Ledger().Counters {
		if !slices.ContainsFunc(r.Metrics, func(m *metric.Metric) bool { return m.Name == c.Name }) {
			r.Metrics = append(r.Metrics, metric.CountOf(&c))
		}
	}
}

// resultRow returns the outcome as a row for a result with the given metrics.
func (o *Outcome) resultRow(metrics result.Metrics, seeds []uint64) result.Row {
	row := result.Row{Name: o.Spec.Name(), Config: o.Spec.config(), Runs: len(o.Runs) - o.Hung, Invalid: o.Hung,
		BySeed: o.bySeed(seeds), Totals: o.totals()}
	if o.Hung > 0 {
		row.Reasons = []string{ErrHung.Error()}
	}
	for _, m := range metrics {
		switch {
		case m == ceiling:
			row.Stats = append(row.Stats, results.Stat{Metric: m, Statistic: limit(o.Ceiling)})
		case !m.IsCount():
			row.Stats = append(row.Stats, results.Stat{Metric: m, Statistic: o.Number(m.Name)})
		default:
			for _, of := range []func(*closedloop.Result) *olaf.Counts{endpointCounts, programCounts} {
				if s := o.countOf(of, m.Name); s.Known() {
					row.Stats = append(row.Stats, results.Stat{Metric: m, Statistic: s})
					break
				}
			}
		}
	}
	return row
}

// bySeed returns the numbers of each run with its seed. A hung run is marked as invalid.
func (o *Outcome) bySeed(seeds []uint64) (all []result.Run) {
	for i, run := range o.Runs {
		one := result.Run{Seed: seeds[i], Numbers: metric.NewValues(jobMetrics,
			func(k int) metric.Float { return closedloop.ListRows()[k].Of(run) })}
		if run.Hung {
			one.Invalid = []string{ErrHung.Error()}
		}
		all = append(all, one)
	}
	return all
}

// totals returns the counters of hosts and switches, summed over all runs. If both have a counter with the same name,
// it returns the hosts' value.
func (o *Outcome) totals() map[string]int64 {
	all := map[string]int64{}
	for _, counts := range []olaf.Counts{o.Program, o.Endpoints} { // endpoints last: their value replaces the program's
		if counts.Ledger() == nil {
			continue
		}
		for _, c := range counts.Ledger().Counters {
			all[c.Name] = counts.Of(c.Name)
		}
	}
	return all
}

// Metrics returns the metrics of a job, in the order in which results list them.
func Metrics() []*metric.Metric { return jobMetrics }

// drawn maps the metrics that are drawn as figures to their titles.
var drawn = map[string]string{"iteration_ns": "ITERATION", "gradient_ns": "PER GRADIENT", "aggregation_ns": "AGGREGATION",
	"goodput_bps": "GOODPUT", "aom_mean_ns": "AOM", "held_bytes": "HELD", "jct_ns": "COMPLETION"}

var jobMetrics = func() (all []*metric.Metric) {
	for _, row := range closedloop.ListRows() {
		all = append(all, &metric.Metric{Name: row.Name, Title: row.Title, Unit: row.Unit, Doc: row.Doc,
			Zeroed: row.Zeroed, PerUpdate: row.PerUpdate(), Age: strings.HasPrefix(row.Name, "aom_"), Column: drawn[row.Name],
			Of: func(*metric.Measured) metric.Float { return metric.Missing() }})
	}
	return all
}()

// DeclareRuns returns the declaration of the metrics in job runs, without the counters of hosts and switches.
func DeclareRuns() *metric.Declaration { return &metric.Declaration{Metrics: jobMetrics} }

// Configurations returns the outcomes as rows against which expectations are checked.
func (r *Report) Configurations() []results.Row {
	return olaf.Map(r.Outcomes, (*Outcome).Row)
}

// Row returns the outcome as a row against which expectations are checked.
func (o *Outcome) Row() results.Row {
	row := results.Row{Queue: o.Spec.Name(), Runs: len(o.Runs), InvalidRuns: o.Hung}
	for i, m := range jobMetrics {
		row.Stats = append(row.Stats, results.Stat{Metric: m, Statistic: o.Numbers[i]})
	}
	return row
}

// NamedRow returns the outcome as a row with the given name. It contains the single runs but no statistics.
func (o *Outcome) NamedRow(name string, seeds []uint64) result.Row {
	return result.Row{Name: name, Runs: len(o.Runs) - o.Hung, Invalid: o.Hung, Stats: results.Stats{},
		BySeed: o.bySeed(seeds)}
}

// NamedRuns parses a stored list of the rows that NamedRow returns into runs that can be compared.
func NamedRuns(raw []byte) ([]results.Run, error) {
	var all []storedRows
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("read the runs of jobs: %w", err)
	}
	r := &result.Result{Metrics: jobMetrics}
	for i := range all {
		r.Rows = append(r.Rows, result.Row{Name: all[i].Name, BySeed: all[i].runs()})
	}
	return r.Runs(), nil
}

// storedRows contains the stored runs of one configuration, in the current or the earlier format.
type storedRows struct {
	Name   string `json:"name"`
	BySeed []struct {
		result.Run
		Hung bool `json:"hung"`
	} `json:"by_seed"`
}

// runs returns the stored runs in the current form.
func (k *storedRows) runs() (all []result.Run) {
	for _, one := range k.BySeed {
		if one.Hung {
			one.Invalid = []string{ErrHung.Error()}
		}
		all = append(all, one.Run)
	}
	return all
}

// ReadEarlier reads a job result that an earlier version wrote.
func ReadEarlier(raw []byte) (*result.Result, error) {
	var d struct {
		result.Result
		Systems []struct {
			storedRows
			System    string           `json:"system"`
			Mode      string           `json:"mode"`
			Config    any              `json:"config"`
			Runs      int              `json:"runs"`
			Hung      int              `json:"hung_runs"`
			Ceiling   int64            `json:"ceiling_bps"` // 0 if it was not stored
			Numbers   results.Stats    `json:"numbers"`
			Endpoints map[string]int64 `json:"endpoints"`
			Program   map[string]int64 `json:"program"`
		} `json:"systems"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("read a job: %w", err)
	}
	r := &d.Result
	r.Experiment, r.Metrics = experiment, slices.Clone(jobMetrics)
	for i := range d.Systems {
		s := &d.Systems[i]
		row := result.Row{Name: s.System + " " + s.Mode, Config: s.Config, Runs: s.Runs - s.Hung, Invalid: s.Hung,
			BySeed: s.runs(), Totals: s.Program}
		for name, n := range s.Endpoints {
			if row.Totals == nil {
				row.Totals = map[string]int64{}
			}
			row.Totals[name] = n
		}
		for _, m := range jobMetrics {
			if slices.ContainsFunc(s.Numbers, func(n results.Stat) bool { return n.Name == m.Name }) {
				row.Stats = append(row.Stats, results.Stat{Metric: m, Statistic: *s.Numbers.Of(m.Name)})
			}
			if m.Name == capped && s.Ceiling > 0 {
				row.Stats = append(row.Stats, results.Stat{Metric: ceiling, Statistic: limit(s.Ceiling)})
			}
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

// config contains the settings of a job in a stored result.
type config struct {
	Workers    int           `json:"workers"`
	PerRack    int           `json:"workers_per_rack,omitempty"`
	Rate       olaf.Rate     `json:"rate"`
	Delay      olaf.Duration `json:"delay"`
	Loss       float64       `json:"loss"`
	Values     int           `json:"values"`
	PerPacket  int           `json:"values_per_packet"`
	Messages   int           `json:"messages,omitempty"`
	Updates    uint32        `json:"updates"`
	Compute    olaf.Duration `json:"compute"`
	Jitter     float64       `json:"jitter"`
	Apply      olaf.Duration `json:"server_apply"`
	PerMessage olaf.Duration `json:"host_per_message"`
	PerMiB     olaf.Duration `json:"host_per_mib"`
	H          int           `json:"h,omitempty"`
	Bound      int           `json:"bound,omitempty"`
	Slots      int           `json:"slots,omitempty"`
	Wrap       bool          `json:"wrap,omitempty"`
	Profile    string        `json:"program_profile,omitempty"`
	Recovery   string        `json:"recovery,omitempty"`
	Timeout    olaf.Duration `json:"timeout,omitempty"`
}

func (s *Spec) config() config {
	n, j, o := &s.Network, &s.Job, &s.Options
	c := config{
		Workers: n.Workers, PerRack: n.PerRack, Rate: n.Link.Rate, Delay: n.Link.Delay, Loss: n.Link.Loss,
		Values: j.Layout.Values, PerPacket: j.PerPacket, Messages: j.Messages, Updates: j.Updates, Compute: j.Compute,
		Jitter: j.Jitter,
		Apply:  j.ServerApply, PerMessage: n.Worker.PerMessage, PerMiB: n.Worker.PerMiB,
	}
	if s.System.Program != nil {
		c.H, c.Bound, c.Slots, c.Wrap, c.Profile, c.Recovery, c.Timeout = o.H, o.Bound, o.Slots, o.Wrap, o.Profile,
			o.Recovery, o.Timeout
	}
	return c
}

// iterations returns the name of the metric by which systems are compared, and its description. It is the time between
// updates if an update means the same amount of work in all systems, and otherwise the time per gradient.
func iterations(same bool) (name, words string) {
	if same {
		return "iteration_ns", "between updates"
	}
	return "gradient_ns", "a gradient"
}

// capped is the name of the metric that is shown together with its upper limit.
const capped = "goodput_bps"

// ceiling is the metric for the highest goodput that links and frames allow. It is computed, not measured.
var ceiling = result.NewMetric(ceilingName, "Goodput ceiling", "bit/s")

const ceilingName = "ceiling_bps"

// limit returns the goodput limit as a statistic. It is computed and has no spread.
func limit(bps int64) results.Statistic {
	v := results.Float(bps)
	return results.Statistic{Mean: v, SD: results.Missing(), CI95: results.Missing(), Min: v, Max: v, N: 1}
}

// countOf returns statistics of the counter with the given name over the finished runs, or over all runs if all of them
// hung.
func (o *Outcome) countOf(of func(*closedloop.Result) *olaf.Counts, name string) results.Statistic {
	var values []metric.Float
	for _, run := range o.Runs {
		if c := of(run); c.Index(name) >= 0 && (!run.Hung || o.Hung == len(o.Runs)) {
			values = append(values, metric.Float(c.Of(name)))
		}
	}
	return results.Describe(values, "this system has no such counter")
}

// once describes how long a job with a single update took.
func (o *Outcome) once() string {
	if n := o.Number("summed_ns"); n.Known() {
		return text.Age(&n) + " to the sum"
	}
	if n := o.Number("duration_ns"); n.Known() {
		return text.Age(&n) + " in all"
	}
	return "no run finished"
}

// answer returns lines that state how fast each system was, and what went wrong.
func (r *Report) answer() (lines []string) {
	var parts []string
	name, unit := iterations(results.SameWork(r.Configurations()))
	for _, o := range r.Outcomes {
		n := o.Number(name)
		if !n.Known() {
			parts = append(parts, o.Spec.Name()+": "+o.once())
			continue
		}
		parts = append(parts, fmt.Sprintf("%s: %s %s", o.Spec.Name(), text.Age(&n), unit))
	}
	lines = append(lines, strings.Join(parts, " · "))
	for _, o := range r.Outcomes {
		wrong, torn := o.Endpoints.Of("packets_inexact"), o.Endpoints.Of("updates_torn")
		if o.Hung+int(wrong)+int(torn) > 0 {
			all := ""
			if len(o.Runs) > 1 {
				all = " in all"
			}
			lines = append(lines, fmt.Sprintf("%s: %d of %d runs hung, %d packets of sums were inexact, %d updates torn%s",
				o.Spec.Name(), o.Hung, len(o.Runs), wrong, torn, all))
		}
	}
	if r.Plan.Basis != "" {
		lines = append(lines, r.Plan.Basis)
	}
	return lines
}
