package saturate

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/result"
)

// EarlierSchema is the schema, without its version, with which earlier versions wrote the results of such runs.
const EarlierSchema = "olafctl.feed"

// Report contains the runs of one system on one testbed.
type Report struct {
	System     string
	Plan       *lab.Plan
	Config     Config
	Requested  int // requested runs
	Runs       []*Run
	Statements []string
}

// IsPartial reports whether fewer runs were carried out than requested.
func (r *Report) IsPartial() bool { return len(r.Runs) < r.Requested }

// number is one of the numbers that describe a run.
type number struct {
	*metric.Metric
	of func(p *lab.Plan, c *Config, r *Run) float64
}

// numbers lists the numbers that describe a run.
var numbers = []number{
	{result.NewMetric("packets_per_s", "Packets of workers, a second", "packet/s"),
		func(_ *lab.Plan, _ *Config, r *Run) float64 {
			return float64(r.Sent) / float64(r.TookNS) * float64(olaf.Second/olaf.Nanosecond)
		}},
	{result.NewMetric("values_per_s", "Values added up, a second", "1/s"), func(_ *lab.Plan, _ *Config, r *Run) float64 {
		return float64(r.Checked) / float64(r.TookNS) * float64(olaf.Second/olaf.Nanosecond)
	}},
	{result.NewMetric("vector_ns", "A vector, from its first packet to the last sum", "ns"),
		func(_ *lab.Plan, c *Config, r *Run) float64 {
			return float64(r.TookNS) / float64(c.Vectors)
		}},
	{result.NewMetric("latency_p50_ns", "A sum, from its last packet to the server: median", "ns"),
		func(_ *lab.Plan, _ *Config, r *Run) float64 { return float64(r.LatencyNS.P50) }},
	{result.NewMetric("latency_p99_ns", "the same, 99th percentile", "ns"),
		func(_ *lab.Plan, _ *Config, r *Run) float64 { return float64(r.LatencyNS.P99) }},
	{result.NewCounter("sent", "Packets sent", "packets"),
		func(_ *lab.Plan, _ *Config, r *Run) float64 { return float64(r.Sent) }},
	{result.NewCounter("resent", "Packets that were missing and sent again", "packets"),
		func(_ *lab.Plan, _ *Config, r *Run) float64 { return float64(r.Resent) }},
	{result.NewCounter("sums_resent", "Sums that got lost above and were sent again", "packets"),
		func(_ *lab.Plan, _ *Config, r *Run) float64 { return float64(r.SumsAgain) }},
	{result.NewCounter("repeated", "Sums that reached the server again", "packets"),
		func(_ *lab.Plan, _ *Config, r *Run) float64 { return float64(r.Repeated) }},
}

// real is the statement about real packets that every report contains.
const real = "frames, cables and the kernel's program are real; a pair of virtual interfaces is no network card, " +
	"and senders, program and server share this machine's processors"

// realCables is the statement about real packets in the reports of runs whose program is in this process.
const realCables = "frames and cables are real; the program runs in this process, and shares the processors with senders and server"

// sums contains the totals of all checks over all runs, including invalid runs.
type sums struct {
	sums, checked, wrong uint64
	decisions            olaf.Decisions
	invalid              []string
	invalidRuns          int
}

func (r *Report) sums() (s sums) {
	for _, run := range r.Runs {
		s.sums, s.checked, s.wrong = s.sums+run.Sums, s.checked+run.Checked, s.wrong+run.Wrong
		s.decisions.Add(&run.Decisions)
		if !run.Valid() {
			s.invalidRuns++
			s.invalid = append(s.invalid, run.Invalid...)
		}
	}
	return s
}

// Result returns the runs as a result document.
func (r *Report) Result(by results.Provenance) *result.Result {
	of := r.sums()
	d := result.New("bench", "", map[string]any{"system": r.System, "vectors": r.Config.Vectors, "line": r.Config.Line,
		"seed": r.Config.Seed, "testbed": r.Plan})
	d.Provenance, d.Partial = &by, r.IsPartial()
	d.Title = "bench of " + r.name()
	d.Found = []string{fmt.Sprintf("%s added up %s of %d lanes from %s: %d values checked, %s.", r.System,
		pluralOf(of.sums, "sum"), r.Plan.Lanes,
		olaf.Plural(len(r.Plan.Workers()), "worker"), of.checked, describeWrong(of.wrong))}
	about := real
	if r.Plan.Adders[0].Mode == lab.User {
		about = realCables
	} else {
		d.Found = append(d.Found, compareDecisions(&of.decisions))
	}
	for _, n := range numbers {
		d.Metrics = append(d.Metrics, n.Metric)
	}
	d.Rows = []result.Row{r.makeRow(d.Metrics, &of)}
	d.Statements = slices.Concat([]string{about}, r.Plan.LocalCables(), r.Statements)
	d.Closing = fmt.Sprintf("%s: %d of %s, %s of %s a worker, lines of %v, seed %d", r.describeValidity(&of),
		d.Rows[0].Runs, olaf.Plural(r.Requested, "run"),
		olaf.Plural(r.Config.Vectors, "vector"), olaf.Plural(r.Plan.Fragments, "fragment"), r.Config.Line,
		r.Config.Seed)
	d.Fail(r.err())
	return d
}

// makeRow returns the only row of the document.
func (r *Report) makeRow(metrics result.Metrics, of *sums) result.Row {
	a := &r.Plan.Adders[0]
	w := result.Row{
		Name: r.name(), Config: map[string]any{"children": r.Plan.Children(), "workers": len(r.Plan.Workers()),
			"lanes": r.Plan.Lanes, "arithmetic": lab.Arithmetic(a.Wrapping), "mode": a.Mode},
		Runs: len(r.Runs) - of.invalidRuns, Invalid: of.invalidRuns, Reasons: of.invalid,
		Totals: map[string]int64{"sums": int64(of.sums), "values_checked": int64(of.checked),
			"values_wrong": int64(of.wrong), "decisions_checked": of.decisions.Checked,
			"decisions_equal": of.decisions.Equal},
	}
	var valid [][]metric.Float
	for _, run := range r.Runs {
		values := make([]metric.Float, len(numbers))
		for i, n := range numbers {
			values[i] = metric.Float(n.of(r.Plan, &r.Config, run))
		}
		w.BySeed = append(w.BySeed, result.Run{Seed: run.Seed, Invalid: run.Invalid,
			Numbers: metric.NewValues(metrics, func(i int) metric.Float { return values[i] })})
		if run.Valid() {
			valid = append(valid, values)
		}
		for node, counts := range run.Kernel {
			for name, n := range counts {
				w.Totals[node+"."+name] += int64(n)
			}
		}
	}
	w.Stats = metrics.Stats(valid, "no run was valid")
	return w
}

func (r *Report) name() string {
	return fmt.Sprintf("%s %d × %d, %s", r.System, len(r.Plan.Workers()), r.Plan.Lanes,
		lab.Arithmetic(r.Plan.Adders[0].Wrapping))
}

func pluralOf(n uint64, noun string) string { return olaf.Plural(int(n), noun) }

func describeWrong(n uint64) string {
	if n == 0 {
		return "all of them exact"
	}
	return fmt.Sprintf("%d of them WRONG", n)
}

func (r *Report) describeValidity(of *sums) string {
	switch {
	case of.invalidRuns > 0:
		return "INVALID"
	case r.IsPartial():
		return "PARTIAL"
	}
	return "valid"
}

// compareDecisions returns a sentence that compares the kernel's decisions with those of the program.
func compareDecisions(d *olaf.Decisions) string {
	if d.Void != "" {
		return "The kernel's decisions could not be checked: " + d.Void + "."
	}
	return fmt.Sprintf("%d of %d decisions of the kernel are those of the program (fpga/program).", d.Equal, d.Checked)
}

// ErrInvalid reports that at least one run is invalid and must not be used.
var ErrInvalid = olaf.NewError(olaf.Failed, "invalid run")

// err returns nil if every run was valid and none is missing.
func (r *Report) err() error {
	for _, run := range r.Runs {
		if !run.Valid() {
			return fmt.Errorf("%w: %s", ErrInvalid, run.Invalid[0])
		}
	}
	if r.IsPartial() {
		return fmt.Errorf("%w: stopped before all runs were done", ErrInvalid)
	}
	return nil
}

// ReadEarlier reads a document that an earlier version wrote.
func ReadEarlier(raw []byte) (*result.Result, error) {
	var d struct {
		result.Result
		Runs json.RawMessage `json:"runs"`
		Rows []struct {
			System  string        `json:"system"`
			Workers int           `json:"workers"`
			Lanes   int           `json:"lanes"`
			Runs    int           `json:"runs"`
			Invalid int           `json:"invalid_runs"`
			Reasons []string      `json:"reasons"`
			Stats   results.Stats `json:"stats"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("read a run of a testbed: %w", err)
	}
	r := &d.Result
	for _, n := range numbers {
		r.Metrics = append(r.Metrics, n.Metric)
	}
	for _, row := range d.Rows {
		r.Rows = append(r.Rows, result.Row{Name: fmt.Sprintf("%s %d × %d", row.System, row.Workers, row.Lanes),
			Runs: row.Runs, Invalid: row.Invalid, Reasons: row.Reasons, Stats: row.Stats})
	}
	return r, nil
}
