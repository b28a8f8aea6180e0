package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closed"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// Schema heads the document of a Report.
const Schema = "olafctl.job/v2"

// Report is one or more systems' outcomes of the same job.
type Report struct {
	Plan
	Outcomes   []*Outcome
	Provenance results.Provenance
}

// Made is the plan that gives the report again.
func (r *Report) Made() any { return &r.Plan }

// numbers are statistics by name, in the order of closed.Rows.
type numbers []results.Statistic

// MarshalJSON writes an object with a member a number.
func (n numbers) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, row := range closed.Rows()[:len(n)] {
		value, err := json.Marshal(&n[i])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, ",%q:%s", row.Name, value)
	}
	if b.Len() == 0 {
		return []byte("{}"), nil
	}
	b.Bytes()[0] = '{'
	b.WriteByte('}')
	return b.Bytes(), nil
}

// document is the JSON form.
type document struct {
	Schema     string             `json:"schema"`
	Provenance results.Provenance `json:"provenance"`
	Title      string             `json:"title"`
	Basis      string             `json:"basis,omitempty"`
	Config     any                `json:"config"`
	Seeds      []uint64           `json:"seeds"`
	Systems    []systemDocument   `json:"systems"`
	Statements []string           `json:"statements"`
	Paper      []results.PaperRow `json:"paper,omitempty"`
	Partial    bool               `json:"partial,omitempty"`
}

type systemDocument struct {
	System    string        `json:"system"`
	Mode      string        `json:"mode"`
	Config    config        `json:"config"`
	Runs      int           `json:"runs"`
	Hung      int           `json:"hung_runs"`
	Ceiling   int64         `json:"ceiling_bps"`
	Numbers   numbers       `json:"numbers"`
	BySeed    []seedNumbers `json:"by_seed"`
	Endpoints olaf.Counts   `json:"endpoints"`
	Program   *olaf.Counts  `json:"program,omitempty"`
}

// seedNumbers are the numbers of one run.
type seedNumbers struct {
	Seed    uint64        `json:"seed"`
	Hung    bool          `json:"hung,omitempty"`
	Numbers metric.Values `json:"numbers"`
}

// bySeed are the numbers of every run of an outcome.
func (o *Outcome) bySeed(seeds []uint64) (all []seedNumbers) {
	for i, run := range o.Runs {
		all = append(all, seedNumbers{seeds[i], run.Hung, metric.Listed(Metrics(), func(k int) metric.Float { return closed.Rows()[k].Of(run) })})
	}
	return all
}

// Metrics are the numbers of a job, as results list them.
func Metrics() []*metric.Metric { return jobMetrics }

var jobMetrics = func() (all []*metric.Metric) {
	for _, row := range closed.Rows() {
		all = append(all, &metric.Metric{Name: row.Name, Title: row.Title, Unit: row.Unit, Doc: row.Doc, Zeroed: row.Zeroed, PerUpdate: row.PerUpdate(), Of: func(*metric.Measured) metric.Float { return metric.Missing() }})
	}
	return all
}()

// Declared declares the runs of jobs: what hosts and switches counted is beside the numbers.
func Declared() *metric.Declaration { return &metric.Declaration{Metrics: jobMetrics} }

// Rows are the outcomes as rows of results.
func (r *Report) Rows() (rows []results.Row) {
	for _, o := range r.Outcomes {
		rows = append(rows, o.Row())
	}
	return rows
}

// Row is an outcome as a row of results.
func (o *Outcome) Row() results.Row {
	row := results.Row{Queue: o.Spec.Name(), Runs: len(o.Runs), InvalidRuns: o.Hung}
	for i, m := range jobMetrics {
		row.Stats = append(row.Stats, results.Stat{Metric: m, Statistic: o.Numbers[i]})
	}
	return row
}

// KeptRuns reads the single runs of a kept document back, to be compared; none of a document that has none.
func KeptRuns(raw []byte) (runs []results.Run, err error) {
	var d kept
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("read the runs of a job: %w", err)
	}
	for i := range d.Systems {
		s := &d.Systems[i]
		runs = append(runs, runsOf(s.System+" "+s.Mode, s.BySeed)...)
	}
	return runs, nil
}

// Named are the single runs of an outcome that a document has statistics of alone, under the name that tells it apart.
type Named struct {
	Name   string        `json:"name"`
	BySeed []seedNumbers `json:"by_seed"`
}

// Named are the single runs under a name, of seeds in their order.
func (o *Outcome) Named(name string, seeds []uint64) Named { return Named{name, o.bySeed(seeds)} }

// NamedRuns reads a list of Named back, to be compared.
func NamedRuns(raw []byte) (runs []results.Run, err error) {
	var all []struct {
		Name   string    `json:"name"`
		BySeed []keptRun `json:"by_seed"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("read the runs of jobs: %w", err)
	}
	for i := range all {
		runs = append(runs, runsOf(all[i].Name, all[i].BySeed)...)
	}
	return runs, nil
}

// runsOf are the runs of one name.
func runsOf(name string, kept []keptRun) (runs []results.Run) {
	declared := Declared()
	for k, one := range kept {
		run := results.Run{Queue: name, Index: k, Seed: one.Seed, Declared: declared}
		run.Metrics = metric.Listed(jobMetrics, func(m int) metric.Float {
			if v, ok := one.Numbers[jobMetrics[m].Name]; ok {
				return v
			}
			return metric.Missing()
		})
		if one.Hung {
			run.Invalid = []string{ErrHung.Error()}
		}
		runs = append(runs, run)
	}
	return runs
}

// config is what decides a job.
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
		Values: j.Layout.Values, PerPacket: j.PerPacket, Messages: j.Messages, Updates: j.Updates, Compute: j.Compute, Jitter: j.Jitter,
		Apply: j.ServerApply, PerMessage: n.Worker.PerMessage, PerMiB: n.Worker.PerMiB,
	}
	if s.System.Program != nil {
		c.H, c.Bound, c.Slots, c.Wrap, c.Profile, c.Recovery, c.Timeout = o.H, o.Bound, o.Slots, o.Wrap, o.Profile, o.Recovery, o.Timeout
	}
	return c
}

// Document is the JSON form.
func (r *Report) Document() any {
	d := document{Schema: Schema, Provenance: r.Provenance, Title: r.Title, Basis: r.Basis, Config: r.Config, Seeds: r.Seeds, Statements: r.Statements, Paper: r.Paper(), Partial: r.Partial}
	for _, o := range r.Outcomes {
		s := systemDocument{
			System: o.Spec.System.Name, Mode: o.Spec.Mode.Name, Config: o.Spec.config(), Runs: len(o.Runs), Hung: o.Hung,
			Ceiling: o.Ceiling, Numbers: o.Numbers, BySeed: o.bySeed(r.Seeds), Endpoints: o.Endpoints,
		}
		if o.Program.Ledger() != nil {
			s.Program = &o.Program
		}
		d.Systems = append(d.Systems, s)
	}
	return d
}

// Paper is what was printed of jobs that are a paper's own; one of one's own choosing stands beside nothing.
func (r *Report) Paper() []results.PaperRow { return r.Plan.beside(r.Outcomes) }

// Err is nil when every run came to its end.
func (r *Report) Err() error { return Errs(r.Outcomes) }

// Brief says in a few words what a kept job found: how fast each system was, and how many runs hung. It is empty where the
// document can't be read.
func Brief(raw []byte) string {
	var d kept
	if json.Unmarshal(raw, &d) != nil {
		return ""
	}
	var parts []string
	name, unit := iterations(d.sameWork())
	if unit = " " + unit; name == "iteration_ns" {
		unit = "" // the usual one
	}
	for i := range d.Systems {
		s := &d.Systems[i]
		var found []string
		if n := s.Numbers[name]; n.Known() {
			found = append(found, text.Age(&n)+unit)
		} else if n := s.Numbers["summed_ns"]; n.Known() {
			found = append(found, text.Age(&n)+" to the sum")
		}
		if s.Hung > 0 {
			found = append(found, fmt.Sprintf("%d of %d hung", s.Hung, s.Runs))
		}
		part := s.System + " " + s.Mode
		if len(found) > 0 {
			part += ": " + strings.Join(found, ", ")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " · ")
}

// iterations names the number that systems are compared by and its words: the time between updates where an update is the same
// work in all of them, else the time per gradient.
func iterations(same bool) (name, words string) {
	if same {
		return "iteration_ns", "between updates"
	}
	return "gradient_ns", "a gradient"
}

// sameWork reports whether an update of the weights is the same work in all systems of the document.
func (d *kept) sameWork() bool {
	var rows []results.Row
	for i := range d.Systems {
		s := &d.Systems[i]
		row := results.Row{Queue: s.System + " " + s.Mode}
		for _, m := range jobMetrics {
			if n, ok := s.Numbers[m.Name]; ok {
				row.Stats = append(row.Stats, results.Stat{Metric: m, Statistic: n})
			}
		}
		rows = append(rows, row)
	}
	return results.SameWork(rows)
}

// kept is what is read back of a document.
type kept struct {
	Systems []struct {
		System  string                       `json:"system"`
		Mode    string                       `json:"mode"`
		Runs    int                          `json:"runs"`
		Hung    int                          `json:"hung_runs"`
		Ceiling int64                        `json:"ceiling_bps"` // 0 where none was kept
		Numbers map[string]results.Statistic `json:"numbers"`
		BySeed  []keptRun                    `json:"by_seed"`
	} `json:"systems"`
}

// keptRun is what is read back of seedNumbers.
type keptRun struct {
	Seed    uint64                  `json:"seed"`
	Hung    bool                    `json:"hung"`
	Numbers map[string]metric.Float `json:"numbers"`
}

// Sheets lays out the document of a kept job: a line a number, two columns a system.
func Sheets(raw []byte) ([]table.Sheet, error) {
	var d kept
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("lay out a job: %w", err)
	}
	s := table.Sheet{Name: "Job", Title: "What the hosts did, mean and 95 % interval over seeds", Columns: []table.Column{{Header: "number"}, {Header: "unit"}}}
	for i := range d.Systems {
		name := d.Systems[i].System + " " + d.Systems[i].Mode
		s.Columns = append(s.Columns, table.Column{Header: name, Format: table.General}, table.Column{Header: name + " ±", Format: table.General})
	}
	for _, row := range closed.Rows() {
		cells := []table.Cell{table.S(row.Name), table.S(row.Unit)}
		for i := range d.Systems {
			n := d.Systems[i].Numbers[row.Name]
			cells = append(cells, sheets.Mean(&n), sheets.Half(&n))
		}
		if s.Rows = append(s.Rows, cells); row.Name == capped {
			s.Rows = append(s.Rows, d.ceilings())
		}
	}
	return []table.Sheet{s}, nil
}

// capped is the number beside which its ceiling stands.
const capped = "goodput_bps"

// Of the ceiling, which is no measurement but follows from links and frames.
const (
	ceilingName  = "ceiling_bps"
	ceilingTitle = "Goodput ceiling"
)

// limit is the ceiling as a number that has no sample.
func limit(bps int64) results.Statistic {
	v := results.Float(bps)
	return results.Statistic{Mean: v, SD: results.Missing(), CI95: results.Missing(), Min: v, Max: v, N: 1}
}

// ceilings are the line of them in a workbook.
func (d *kept) ceilings() []table.Cell {
	cells := []table.Cell{table.S(ceilingName), table.S("bit/s")}
	for i := range d.Systems {
		n := limit(d.Systems[i].Ceiling)
		if d.Systems[i].Ceiling == 0 {
			n = results.Describe(nil, "it was not kept")
		}
		cells = append(cells, sheets.Mean(&n), table.Missing("it follows from links and frames"))
	}
	return cells
}

// Table is one line a number.
func (r *Report) Table() (header []string, rows [][]string) {
	header = []string{"system", "mode", "number", "unit", "mean", "sd", "ci95", "min", "max", "n"}
	for _, o := range r.Outcomes {
		for i, row := range closed.Rows() {
			if rows = append(rows, o.line(row.Name, row.Unit, &o.Numbers[i])); row.Name == capped {
				n := limit(o.Ceiling)
				rows = append(rows, o.line(ceilingName, row.Unit, &n))
			}
		}
	}
	return header, rows
}

// line is one number of a Table.
func (o *Outcome) line(name, unit string, n *results.Statistic) []string {
	return []string{o.Spec.System.Name, o.Spec.Mode.Name, name, unit, text.Exact(n.Mean), text.Exact(n.SD), text.Exact(n.CI95),
		text.Exact(n.Min), text.Exact(n.Max), fmt.Sprint(n.N)}
}

// WriteText prints the answer, then a line a number with a column a system, then what endpoints and programs counted, all of one run in the
// mean.
func (r *Report) WriteText(w io.Writer, v text.View) error {
	p := text.NewPage(w, v)
	p.Say("", "%s", r.Title)
	for _, line := range r.answer() {
		p.Say("", "%s", line)
	}
	p.Printf("\n")
	g := &table.Grid{Keys: 1, Columns: []table.GridColumn{{Header: r.heading()}}}
	for _, o := range r.Outcomes {
		g.Columns = append(g.Columns, table.GridColumn{Header: strings.ToUpper(o.Spec.Name()), Right: true})
	}
	same := results.SameWork(r.Rows())
	for i, row := range closed.Rows() {
		if row.PerUpdate() && !same {
			continue
		}
		r.add(g, row.Title, func(o *Outcome) string { return cell(&row, &o.Numbers[i]) })
		if row.Name == capped {
			r.add(g, ceilingTitle, func(o *Outcome) string {
				n := limit(o.Ceiling)
				return cell(&row, &n)
			})
		}
	}
	r.addCounts(g, func(run *closed.Result) *olaf.Counts { return &run.Endpoints })
	r.addCounts(g, func(run *closed.Result) *olaf.Counts { return &run.Program })
	p.Grid(g)
	if rows := r.Paper(); len(rows) > 0 {
		p.Printf("\n")
		p.Paper(rows)
	}
	if len(r.Seeds) > 1 {
		p.Say("- ", "numbers and counts are those of one run: means over the runs that came to their end, ± half of their 95 %% interval, and over all runs where none did")
	}
	for _, s := range r.Statements {
		p.Say("- ", "%s", s)
	}
	return p.Err()
}

func (r *Report) add(g *table.Grid, title string, of func(*Outcome) string) {
	row := []string{title}
	for _, o := range r.Outcomes {
		row = append(row, of(o))
	}
	g.Add(row...)
}

// heading says what the numbers of several runs are.
func (r *Report) heading() string {
	if len(r.Seeds) > 1 {
		return "MEAN OF A RUN"
	}
	return ""
}

// addCounts lists the counters of which any system counted something.
func (r *Report) addCounts(g *table.Grid, of func(*closed.Result) *olaf.Counts) {
	said := map[string]bool{}
	for _, o := range r.Outcomes {
		if len(o.Runs) == 0 || of(o.Runs[0]).Ledger() == nil {
			continue
		}
		for _, c := range of(o.Runs[0]).Ledger().Counters {
			if said[c.Name] || !r.counted(of, c.Name) {
				continue
			}
			said[c.Name] = true
			row := closed.Row{Host: metric.Host{Unit: c.Unit}}
			r.add(g, c.Title, func(o *Outcome) string {
				n := o.counted(of, c.Name)
				return cell(&row, &n)
			})
		}
	}
}

// counted says whether any run of any system counted something.
func (r *Report) counted(of func(*closed.Result) *olaf.Counts, name string) bool {
	return slices.ContainsFunc(r.Outcomes, func(o *Outcome) bool {
		return slices.ContainsFunc(o.Runs, func(run *closed.Result) bool { return of(run).Of(name) != 0 })
	})
}

// counted is a counter over the runs that the numbers are of; where all of them hung, over these.
func (o *Outcome) counted(of func(*closed.Result) *olaf.Counts, name string) results.Statistic {
	var values []metric.Float
	for _, run := range o.Runs {
		if c := of(run); c.Index(name) >= 0 && (!run.Hung || o.Hung == len(o.Runs)) {
			values = append(values, metric.Float(c.Of(name)))
		}
	}
	return results.Describe(values, "this system has no such counter")
}

// cell prints a number in a unit that suits it.
func cell(row *closed.Row, n *results.Statistic) string {
	if !n.Known() {
		return text.Missing
	}
	by, unit := 1.0, ""
	switch row.Unit {
	case "ns", "bit/s":
		by, unit = text.ScaleOf(row.Unit, n)
	case "B":
		by, unit = 1e-6, "MB"
	}
	mean, half := text.RoundedParts(n, by)
	if half != "" && half != "0" { // nothing depends on the seed where there is no interval
		mean += " ± " + half
	}
	return strings.TrimSpace(mean + " " + unit)
}

// once says how long the only update took.
func (o *Outcome) once() string {
	if n := o.Number("summed_ns"); n.Known() {
		return text.Age(&n) + " to the sum"
	}
	if n := o.Number("duration_ns"); n.Known() {
		return text.Age(&n) + " in all"
	}
	return "no run came to its end"
}

// answer says in a line or two who was how fast, and what went wrong.
func (r *Report) answer() (lines []string) {
	var parts []string
	name, unit := iterations(results.SameWork(r.Rows()))
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
	if r.Basis != "" {
		lines = append(lines, r.Basis)
	}
	return lines
}
