package cli

import (
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/result"
)

// AddOptional adds the flags for commands that store a run only on request.
func (f *KeepFlags) AddOptional(cmd *cobra.Command) {
	f.Add(cmd)
	keep := cmd.Flags().Lookup("keep")
	keep.DefValue, f.keep = "false", false
}

// CountedRun is one run of a program on a host, with its counts and measurements.
type CountedRun struct {
	Experiment string // worker, ps, capture or replay
	Config     any    // the options that determine its counts
	Counters   map[string]int64
	// Measures are other numbers: metrics with their values.
	Measures []Measure
	Invalid  string // why the run must not be used; empty if it may
	Partial  bool
	Remarks  []string
	Found    string // for lists of runs
}

// Measure is a measured number other than a counter.
type Measure struct {
	*metric.Metric
	Value results.Float
}

// document returns the run as a result with one row.
func (c *CountedRun) document() *result.Result {
	r := result.New(c.Experiment, "", c.Config)
	r.Partial, r.Statements = c.Partial, append([]string{}, c.Remarks...)
	if c.Found != "" {
		r.Found = []string{c.Found}
	}
	row := result.Row{Name: c.Experiment, Runs: 1, Totals: c.Counters}
	if c.Invalid != "" {
		row.Runs, row.Invalid, row.Reasons = 0, 1, []string{c.Invalid}
		r.Fail(&Exit{Err: errInvalid(c.Invalid)})
	}
	var values []results.Float
	for _, name := range slices.Sorted(maps.Keys(c.Counters)) {
		r.Metrics = append(r.Metrics, result.NewCounter(name, name, ""))
		values = append(values, results.Float(c.Counters[name]))
	}
	for _, m := range c.Measures {
		r.Metrics = append(r.Metrics, result.NewMetric(m.Name, m.Title, m.Unit))
		values = append(values, m.Value)
	}
	row.Stats = r.Metrics.Stats([][]results.Float{values}, "it was not measured")
	r.Rows = []result.Row{row}
	return r
}

// errInvalid is an error that explains why a run must not be used.
type errInvalid string

func (e errInvalid) Error() string { return string(e) }

// KeepRun stores a run if --keep is set.
func (f *KeepFlags) KeepRun(env *Env, started time.Time, quiet bool, run *CountedRun) error {
	kept := f.KeepDocument(env, run.Experiment, started)
	return kept.Finish(env, run.document(), NewProvenance(env, started), run.Partial, quiet)
}
