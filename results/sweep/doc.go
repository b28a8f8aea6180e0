// Package sweep defines the results of a sweep. These are single results, each with some runs of one cell, and the
// document about all of them. The document depends only on the results in the order of the sweep. It does not depend on
// where, when, or in which order they were computed.
package sweep

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// Schema names the document's version. In the first version, a change was the ratio of two means, the interval of a
// cell with a stopping rule was narrower than the interval that decided the rule, and all metrics were compared between
// all systems. The second version also compared ages between systems whose updates contain different numbers of
// gradients.
const (
	Schema   = "olafctl.sweep/v3"
	SchemaV2 = "olafctl.sweep/v2"
	SchemaV1 = "olafctl.sweep/v1"
)

// Lot is a single result of a sweep. It contains runs of one cell in the order of their seeds. The JSON encodings of
// lots are compared byte by byte.
type Lot struct {
	Metrics []string `json:"metrics"` // names, in the order of the values
	Runs    []Run    `json:"runs"`
}

// Run is a run in a Lot.
type Run struct {
	Seed   uint64          `json:"seed"`
	Values []results.Float `json:"values"`
	// Invalid is the reason why the run must not enter a mean; empty if it may.
	Invalid string `json:"invalid,omitempty"`
}

// Value returns the run's value of the metric with the given index in the Lot. It is missing for a run without values.
func (r *Run) Value(at int) results.Float {
	if at < 0 || at >= len(r.Values) {
		return results.Missing()
	}
	return r.Values[at]
}

// State is the state of a cell: done, failed or pending.
type State string

const (
	Done    State = "done"
	Failed  State = "failed"  // its work ended with an error, which was final or repeated
	Pending State = "pending" // results are missing
)

// Value is the value of a parameter in one cell. In JSON it is a number if it can be parsed as one, and otherwise text.
type Value string

// MarshalJSON encodes the value as a number if it is one, and otherwise as text.
func (v Value) MarshalJSON() ([]byte, error) {
	if json.Valid([]byte(v)) {
		if _, err := strconv.ParseFloat(string(v), 64); err == nil {
			return []byte(v), nil
		}
	}
	return json.Marshal(string(v))
}

// UnmarshalJSON decodes a number or a text.
func (v *Value) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		return json.Unmarshal(raw, (*string)(v))
	}
	*v = Value(raw)
	return nil
}

// Cell is one point of a sweep, with its parameters and statistics.
type Cell struct {
	Parameters map[string]Value `json:"parameters"`
	State      State            `json:"state"`
	Error      string           `json:"error,omitempty"` // error of a cell that failed
	// Runs is the number of valid runs in the statistics, InvalidRuns the number of other runs.
	Runs        int      `json:"runs"`
	InvalidRuns int      `json:"invalid_runs"`
	Reasons     []string `json:"invalid_reasons,omitempty"`
	// Looks is the number of times that the stopping rule was evaluated. HalfWidthPct is the half-width of the widest
	// metric in the last evaluation. Both are absent for a fixed number of runs.
	Looks        int           `json:"looks,omitempty"`
	HalfWidthPct results.Float `json:"half_width_pct"`
	// Statistics contains statistics over the runs for the metrics of the sweep.
	Statistics results.Stats `json:"statistics"`
	// Keys are the keys of the cell's results in the store.
	Keys []string `json:"keys"`

	at   []int // place on each axis
	lots []*Lot
}

// Axis is a parameter of a sweep with its values. If all values are numbers, it also contains these.
type Axis struct {
	Name    string    `json:"name"`
	Values  []string  `json:"values"`
	Unit    string    `json:"unit,omitempty"`    // unit of Numbers
	Numbers []float64 `json:"numbers,omitempty"` // absent for words
}

// Shown is a metric that a sweep's document shows.
type Shown struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Unit  string `json:"unit"`
}

// Document is the document of a sweep, with its cells and their analysis.
type Document struct {
	Schema     string             `json:"schema"`
	Provenance results.Provenance `json:"provenance"`
	ID         string             `json:"id"`
	Command    string             `json:"command"` // the command of the runs
	// Digest is the SHA-256 of the cells' parameters and results, in the order of the sweep.
	Digest string `json:"digest"`
	// Config contains everything that determines the numbers: options, axes, seeds, and the stopping rule.
	Config  json.RawMessage `json:"config"`
	Axes    []Axis          `json:"axes"`
	Metrics []Shown         `json:"metrics"`
	// Subject is the axis whose values are compared; empty if there is none.
	Subject string `json:"subject,omitempty"`
	Rule    string `json:"rule"` // number of runs per cell, in words
	Cells   []Cell `json:"cells"`
	Analysis
	// Differences lists results that differed when recomputed.
	Differences []string `json:"differences,omitempty"`
	// Checked lists the workers of a work queue, each with the number of its results that the starting machine
	// repeated.
	Checked    []Checked `json:"checked,omitempty"`
	Statements []string  `json:"statements,omitempty"`
	Partial    bool      `json:"partial"`
}

// Checked describes the spot checks of results from one worker of a work queue. The worker chooses its own name, which
// only the queue's token protects.
type Checked struct {
	Host       string `json:"host"`
	Worker     string `json:"worker"`
	Build      string `json:"build"`
	Results    int    `json:"results"`
	Repeated   int    `json:"repeated"`
	Differ     int    `json:"differ"`                // number of repeated results that differ
	NotChecked string `json:"not_checked,omitempty"` // reason why the other results, or all, could not be repeated
}

// String returns a line that describes the checks.
func (c *Checked) String() string {
	text := fmt.Sprintf("%s (worker %s): %s", c.Host, c.Worker, olaf.Plural(c.Results, "result"))
	switch {
	case c.Repeated == 0 && c.NotChecked == "":
		return text + ", not checked"
	case c.Repeated == 0:
		return text + ", not checked: " + c.NotChecked
	case c.Differ > 0:
		text += fmt.Sprintf(", %d repeated here, %d of them differ", c.Repeated, c.Differ)
	default:
		text += fmt.Sprintf(", %d repeated here and equal", c.Repeated)
	}
	if c.NotChecked != "" {
		text += "; others not checked: " + c.NotChecked
	}
	return text
}

// mostChecked is the maximum number of workers that are named in the printed text.
const mostChecked = 8

// checks returns lines that describe the spot checks, one for each worker.
func (d *Document) checks() (lines []string) {
	for i := range d.Checked[:min(len(d.Checked), mostChecked)] {
		lines = append(lines, d.Checked[i].String())
	}
	if more := len(d.Checked) - mostChecked; more > 0 {
		lines = append(lines, fmt.Sprintf("and %s more; -o json has them all", olaf.Plural(more, "worker")))
	}
	return lines
}

// Outcome contains the results of one cell.
type Outcome struct {
	Parameters []string // values, in the order of the axes
	At         []int    // places on the axes
	Lots       []json.RawMessage
	Keys       []string
	State      State
	Error      string
	Looks      int
	HalfWidth  float64 // relative to the mean; not a number without looks
}

// digest returns the SHA-256 hash of the cells and their results, in the given order.
func digest(axes []Axis, cells []Outcome) string {
	h := sha256.New()
	for i := range cells {
		c := &cells[i]
		for k, v := range c.Parameters {
			fmt.Fprintf(h, "%s=%s\n", axes[k].Name, v)
		}
		fmt.Fprintf(h, "%s\n", c.State)
		for _, lot := range c.Lots {
			h.Write(lot)
			h.Write([]byte("\n"))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Fill computes the cells, the digest and the analysis of the document. All other fields must be set before. known
// returns the declaration of a metric. A metric without a declaration is shown with its name.
func (d *Document) Fill(cells []Outcome, known func(name string) *metric.Metric) error {
	d.Digest, d.Partial = digest(d.Axes, cells), false
	d.Cells = make([]Cell, len(cells))
	for i := range cells {
		if err := d.Cells[i].fill(d, &cells[i], known); err != nil {
			return err
		}
		d.Partial = d.Partial || cells[i].State == Pending
	}
	d.analyse()
	return nil
}

func (c *Cell) fill(d *Document, from *Outcome, known func(string) *metric.Metric) error {
	*c = Cell{Parameters: map[string]Value{}, State: from.State, Error: from.Error, Keys: from.Keys,
		Looks: from.Looks, HalfWidthPct: results.Float(100 * from.HalfWidth), at: from.At}
	for k, v := range from.Parameters {
		c.Parameters[d.Axes[k].Name] = Value(v)
	}
	for _, raw := range from.Lots {
		lot, err := ParseLot(raw)
		if err != nil {
			return fmt.Errorf("a cell of %v: %w", from.Parameters, err)
		}
		c.lots = append(c.lots, lot)
		for i := range lot.Runs {
			if r := &lot.Runs[i]; r.Invalid != "" {
				c.InvalidRuns++
				c.Reasons = append(c.Reasons, fmt.Sprintf("seed %d: %s", r.Seed, r.Invalid))
			} else {
				c.Runs++
			}
		}
	}
	for _, m := range d.Metrics {
		row := known(m.Name)
		if row == nil {
			row = &metric.Metric{Name: m.Name, Title: m.Title, Unit: m.Unit}
		}
		c.Statistics = append(c.Statistics, results.Stat{Metric: row, Statistic: d.describe(valid(c.values(m.Name)), c.Looks)})
	}
	return nil
}

// describe returns a statistic of a cell's values. If a stopping rule determined the number of runs, the interval is
// that of the last look, which is wider than for a fixed number of runs.
func (d *Document) describe(values []results.Float, looks int) results.Statistic {
	s := results.Describe(values, "no valid run has it")
	if looks > 0 && s.N > 1 && d.Schema != SchemaV1 {
		s.CI95 = results.Float(halfWidthAt(s.N, float64(s.SD), new(Enough).Level(looks)))
	}
	return s
}

// values returns a metric's values in all runs of the cell. They are missing for invalid runs.
func (c *Cell) values(name string) []results.Float {
	var out []results.Float
	for _, lot := range c.lots {
		out = append(out, lot.Of(name)...)
	}
	return out
}

// Of returns a metric's values in all runs of the lot. They are missing for invalid runs and unknown metrics.
func (l *Lot) Of(name string) []results.Float {
	at := slices.Index(l.Metrics, name)
	out := make([]results.Float, len(l.Runs))
	for i := range l.Runs {
		out[i] = results.Missing()
		if r := &l.Runs[i]; r.Invalid == "" {
			out[i] = r.Value(at)
		}
	}
	return out
}

func valid(values []results.Float) []results.Float {
	known := values[:0:0]
	for _, v := range values {
		if v.Known() {
			known = append(known, v)
		}
	}
	return known
}

// Err returns nil if all cells have results that are valid and reproducible, and otherwise an error.
func (d *Document) Err() error {
	failed, invalid := 0, 0
	why := ""
	for i := range d.Cells {
		c := &d.Cells[i]
		switch {
		case c.State == Failed:
			failed++
			why = cmp.Or(why, c.Error)
		case c.InvalidRuns > 0:
			invalid++
			if why == "" {
				why = c.Reasons[0]
			}
		}
	}
	switch {
	case len(d.Differences) > 0:
		return fmt.Errorf("%w: %s", ErrDiffers, d.Differences[0])
	case failed > 0:
		return fmt.Errorf("%w: %d of %d cells: %s", ErrFailed, failed, len(d.Cells), why)
	case invalid > 0:
		return fmt.Errorf("%w: %d of %d cells have runs that are left out: %s", ErrFailed, invalid, len(d.Cells), why)
	}
	return nil
}

// ParseLot decodes a single result. The error matches ErrResult.
func ParseLot(raw []byte) (*Lot, error) {
	lot := new(Lot)
	if err := json.Unmarshal(raw, lot); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResult, err)
	}
	return lot, nil
}
