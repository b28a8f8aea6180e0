package feed

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// Schema heads the document of a Report.
const Schema = "olafctl.feed/v1"

// Report is the runs of one system on one testbed.
type Report struct {
	System     string
	Plan       *lab.Plan
	Config     Config
	Asked      int // runs
	Runs       []*Run
	Statements []string
	Provenance results.Provenance
}

// Partial says that fewer runs were done than were asked for.
func (r *Report) Partial() bool { return len(r.Runs) < r.Asked }

// number is a statistic of runs.
type number struct {
	name, title, unit string
	of                func(p *lab.Plan, c *Config, r *Run) float64
}

// numbers are what runs are described by.
var numbers = []number{
	{"packets_per_s", "Packets of workers, a second", "packet/s", func(_ *lab.Plan, _ *Config, r *Run) float64 {
		return float64(r.Sent) / float64(r.TookNS) * float64(olaf.Second/olaf.Nanosecond)
	}},
	{"values_per_s", "Values added up, a second", "1/s", func(_ *lab.Plan, _ *Config, r *Run) float64 {
		return float64(r.Checked) / float64(r.TookNS) * float64(olaf.Second/olaf.Nanosecond)
	}},
	{"vector_ns", "A vector, from its first packet to the last sum", "ns", func(_ *lab.Plan, c *Config, r *Run) float64 {
		return float64(r.TookNS) / float64(c.Vectors)
	}},
	{"latency_p50_ns", "A sum, from its last packet to the server: median", "ns", func(_ *lab.Plan, _ *Config, r *Run) float64 { return float64(r.LatencyNS.P50) }},
	{"latency_p99_ns", "the same, 99th percentile", "ns", func(_ *lab.Plan, _ *Config, r *Run) float64 { return float64(r.LatencyNS.P99) }},
	{"resent", "Packets that were missing and sent again", "packets", func(_ *lab.Plan, _ *Config, r *Run) float64 { return float64(r.Resent) }},
}

// row is the document's line: what all valid runs came to.
type row struct {
	System     string                       `json:"system"`
	Children   int                          `json:"children"` // that a node has at most
	Workers    int                          `json:"workers"`
	Lanes      int                          `json:"lanes"`
	Arithmetic string                       `json:"arithmetic"`
	Mode       string                       `json:"mode"`
	Runs       int                          `json:"runs"`
	Invalid    int                          `json:"invalid_runs"`
	Reasons    []string                     `json:"reasons,omitempty"`
	Sums       uint64                       `json:"sums"`
	Checked    uint64                       `json:"values_checked"`
	Wrong      uint64                       `json:"values_wrong"`
	Decisions  olaf.Decisions               `json:"decisions"`
	LatencyNS  olaf.Quantiles               `json:"latency_ns"`
	Stats      map[string]results.Statistic `json:"stats"`
}

// document is the JSON form.
type document struct {
	Schema     string             `json:"schema"`
	Provenance results.Provenance `json:"provenance"`
	Testbed    *lab.Plan          `json:"testbed"`
	Config     any                `json:"config"`
	Rows       []row              `json:"rows"`
	Runs       []*Run             `json:"runs"`
	Statements []string           `json:"statements"`
	Partial    bool               `json:"partial"`
}

// real is said beside the numbers of every report.
const real = "frames, cables and the kernel's program are real; a pair of virtual interfaces is no network card, and senders, program and server share this machine's processors"

func (r *Report) row() row {
	a := &r.Plan.Adders[0]
	w := row{
		System: r.System, Workers: len(r.Plan.Workers()), Lanes: r.Plan.Lanes, Arithmetic: lab.Arithmetic(a.Wrapping), Mode: a.Mode,
		Children: r.Plan.Children(), Stats: map[string]results.Statistic{},
	}
	values := make([][]metric.Float, len(numbers))
	for _, run := range r.Runs {
		w.Sums, w.Checked, w.Wrong = w.Sums+run.Sums, w.Checked+run.Checked, w.Wrong+run.Wrong
		w.Decisions.Add(&run.Decisions)
		if !run.Valid() {
			w.Invalid++
			w.Reasons = append(w.Reasons, run.Invalid...)
			continue
		}
		w.Runs++
		w.LatencyNS.Worst(&run.LatencyNS)
		for i, n := range numbers {
			values[i] = append(values[i], metric.Float(n.of(r.Plan, &r.Config, run)))
		}
	}
	for i, n := range numbers {
		w.Stats[n.name] = results.Describe(values[i], "no run was valid")
	}
	return w
}

// statements are what is said beside the numbers.
func (r *Report) statements() []string {
	return slices.Concat([]string{real}, r.Plan.Joined(), r.Statements)
}

// Document is the JSON form.
func (r *Report) Document() any {
	return document{
		Schema: Schema, Provenance: r.Provenance, Testbed: r.Plan,
		Config: map[string]any{"vectors": r.Config.Vectors, "line": r.Config.Line, "seed": r.Config.Seed},
		Rows:   []row{r.row()}, Runs: r.Runs, Statements: r.statements(), Partial: r.Partial(),
	}
}

// WriteText prints what came out and what was run.
func (r *Report) WriteText(w io.Writer, v text.View) error {
	p, of := text.NewPage(w, v), r.row()
	p.Say("", "%s added up %s of %d lanes from %s: %d values checked, %s.", r.System, plural(of.Sums, "sum"), of.Lanes,
		olaf.Plural(of.Workers, "worker"), of.Checked, wrong(of.Wrong))
	p.Say("", "%s", r.decided(&of.Decisions))
	p.Printf("\n")
	g := &table.Grid{Keys: 1, Columns: []table.GridColumn{{Header: ""}, {Header: fmt.Sprintf("%d × %d, %s", of.Workers, of.Lanes, of.Arithmetic), Right: true}}}
	for _, n := range numbers {
		s := of.Stats[n.name]
		g.Add(n.title, cell(&n, &s))
	}
	p.Grid(g)
	p.Printf("\n")
	p.Say("", "%s: %d of %s, %s of %s a worker, lines of %v, seed %d", r.validity(&of), of.Runs, olaf.Plural(r.Asked, "run"),
		olaf.Plural(r.Config.Vectors, "vector"), olaf.Plural(r.Plan.Fragments, "fragment"), r.Config.Line, r.Config.Seed)
	for _, why := range of.Reasons {
		p.Say("- ", "%s", why)
	}
	for _, s := range r.statements() {
		p.Say("- ", "%s", s)
	}
	return p.Err()
}

func plural(n uint64, noun string) string { return olaf.Plural(int(n), noun) }

func wrong(n uint64) string {
	if n == 0 {
		return "all of them exact"
	}
	return fmt.Sprintf("%d of them WRONG", n)
}

func (r *Report) validity(of *row) string {
	switch {
	case of.Invalid > 0:
		return "INVALID"
	case r.Partial():
		return "PARTIAL"
	}
	return "valid"
}

// decided says how the kernel's decisions compare.
func (r *Report) decided(d *olaf.Decisions) string {
	if d.Void != "" {
		return "The kernel's decisions could not be checked: " + d.Void + "."
	}
	return fmt.Sprintf("%d of %d decisions of the kernel are those of the program (fpga/program).", d.Equal, d.Checked)
}

// cell prints a number in a unit that suits it.
func cell(n *number, s *results.Statistic) string {
	if !s.Known() {
		return text.Missing
	}
	by, unit := 1.0, n.unit
	if unit == "ns" {
		by, unit = text.ScaleOf(unit, s)
	}
	mean, half := text.RoundedParts(s, by)
	if half != "" && half != "0" {
		mean += " ± " + half
	}
	return mean + " " + unit
}

// Table is one line a run.
func (r *Report) Table() (header []string, rows [][]string) {
	header = []string{"run", "seed", "valid", "sent", "sums", "values_checked", "values_wrong", "decisions_checked", "decisions_equal"}
	for _, n := range numbers {
		header = append(header, n.name)
	}
	for i, run := range r.Runs {
		cells := []string{
			fmt.Sprint(i), fmt.Sprint(run.Seed), fmt.Sprint(run.Valid()), fmt.Sprint(run.Sent), fmt.Sprint(run.Sums), fmt.Sprint(run.Checked),
			fmt.Sprint(run.Wrong), fmt.Sprint(run.Decisions.Checked), fmt.Sprint(run.Decisions.Equal),
		}
		for _, n := range numbers {
			cells = append(cells, text.Exact(metric.Float(n.of(r.Plan, &r.Config, run))))
		}
		rows = append(rows, cells)
	}
	return header, rows
}

// Paper is empty: the paper prints no number of such a machine.
func (r *Report) Paper() []results.PaperRow { return nil }

// ErrInvalid says that at least one run must not be used.
var ErrInvalid = olaf.NewError(olaf.Failed, "invalid run")

// Err is nil when every run was valid and none is missing.
func (r *Report) Err() error {
	for _, run := range r.Runs {
		if !run.Valid() {
			return fmt.Errorf("%w: %s", ErrInvalid, run.Invalid[0])
		}
	}
	if r.Partial() {
		return fmt.Errorf("%w: stopped before all runs were done", ErrInvalid)
	}
	return nil
}

// kept is what is read back of a document.
type kept struct {
	Rows []row `json:"rows"`
}

// Brief says in a few words what a kept report found; empty where the document can't be read.
func Brief(raw []byte) string {
	var d kept
	if json.Unmarshal(raw, &d) != nil || len(d.Rows) == 0 {
		return ""
	}
	w := &d.Rows[0]
	rate := w.Stats[numbers[0].name]
	return fmt.Sprintf("%s: %s exact, %d of %d decisions equal, %s", w.System, plural(w.Checked-w.Wrong, "value"), w.Decisions.Equal, w.Decisions.Checked, cell(&numbers[0], &rate))
}

// Sheets lays out the document of a kept report: a line a number.
func Sheets(raw []byte) ([]table.Sheet, error) {
	var d kept
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("lay out a feed: %w", err)
	}
	s := table.Sheet{Name: "Sums", Title: "What was added up, mean and 95 % interval over runs", Columns: []table.Column{{Header: "number"}, {Header: "unit"}}}
	for i := range d.Rows {
		name := fmt.Sprintf("%s %d × %d", d.Rows[i].System, d.Rows[i].Workers, d.Rows[i].Lanes)
		s.Columns = append(s.Columns, table.Column{Header: name, Format: table.General}, table.Column{Header: name + " ±", Format: table.General})
	}
	for _, n := range numbers {
		cells := []table.Cell{table.S(n.name), table.S(n.unit)}
		for i := range d.Rows {
			stat := d.Rows[i].Stats[n.name]
			cells = append(cells, sheets.Mean(&stat), sheets.Half(&stat))
		}
		s.Rows = append(s.Rows, cells)
	}
	return []table.Sheet{s}, nil
}
