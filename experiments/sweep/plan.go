package sweep

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// planKind is the document kind of a Plan. A plan has the schema of the sweep's results.
const planKind = "plan"

// formerPlan is the prefix of the schemas that plans had when they were numbered separately from the results. The
// versions were equal.
const formerPlan = "olafctl.sweep-plan/"

// findRules returns the schema of the plan's results. The version of the schema selects the rules by which the results
// are analysed. The error matches ErrSpec.
func (p *Plan) findRules() (schema string, err error) {
	schema, known := p.Schema, p.Kind == planKind
	if version, former := strings.CutPrefix(schema, formerPlan); former {
		schema, known = "olafctl.sweep/"+version, true
	}
	if !known || schema != sweep.Schema && schema != sweep.SchemaV2 && schema != sweep.SchemaV1 {
		return "", fmt.Errorf("%w: the plan has schema %q; this olafctl supports %q", ErrSpec, p.Schema, sweep.Schema)
	}
	return schema, nil
}

// Orders in which cells start.
const (
	Random = "random" // so that drift affects all cells equally
	Grid   = "grid"
)

// Plan is a sweep in which all names and defaults are resolved. Equal plans from one build have equal digests on any
// machine.
type Plan struct {
	Schema  string          `json:"schema"`
	Kind    string          `json:"document,omitempty"` // planKind
	ID      string          `json:"id"`
	Started string          `json:"started"` // RFC 3339
	Command string          `json:"command"`
	Line    []string        `json:"line,omitempty"` // command line
	Config  json.RawMessage `json:"config"`
	Build   Build           `json:"build"`
	Axes    []sweep.Axis    `json:"axes"`
	Subject string          `json:"subject,omitempty"`
	Metrics []string        `json:"metrics"` // metrics that are shown
	Runs    int             `json:"runs"`    // per cell; with Enough, the maximum
	Enough  *sweep.Enough   `json:"enough,omitempty"`
	Order   string          `json:"order"`
	Cells   []Cell          `json:"cells"`

	command *Command
}

// Cell is one point in a Plan, with its values and its specification.
type Cell struct {
	Values []string        `json:"values"` // by axis
	Spec   json.RawMessage `json:"spec"`   // everything that can affect its numbers, except build and seeds
	at     []int
}

// NewPieces returns a plan for work that is not a grid. Each piece is one job, and the jobs are started in the given
// order. Names must be unique.
func NewPieces(c *Command, names []string, specs []json.RawMessage) *Plan {
	p := &Plan{Schema: sweep.Schema, Kind: planKind, Command: c.Name, command: c, Runs: 1, Order: Grid,
		Axes: []sweep.Axis{{Name: "piece", Values: names}}}
	for i := range specs {
		p.Cells = append(p.Cells, Cell{Values: names[i : i+1], Spec: specs[i], at: []int{i}})
	}
	return p
}

// addAxis adds an axis to the plan.
func (p *Plan) addAxis(c *Command, a grid.Axis) {
	at := slices.IndexFunc(c.Fields, func(f Field) bool { return f.Name == a.Name })
	one := sweep.Axis{Name: a.Name, Values: a.Values}
	if at >= 0 {
		of := c.Fields[at].Type
		for _, v := range a.Values {
			if n, ok := of.Number(v); ok {
				one.Numbers = append(one.Numbers, n)
			}
		}
		one.Unit = of.Unit()
	}
	p.Axes = append(p.Axes, one)
}

// chooseSubject chooses the axis whose values are compared with each other.
func (p *Plan) chooseSubject(c *Command) {
	for i := range p.Axes {
		if p.Axes[i].Name == c.Subject && len(p.Axes[i].Values) > 1 {
			p.Subject = c.Subject
		}
	}
}

// makeCells creates the cells: every combination of the given axes and of the axes that the command adds.
func (p *Plan) makeCells(r Resolver, cells, own [][]string) error {
	var faults faults
	for _, given := range cells {
		for _, more := range own {
			one := Cell{Values: append(slices.Clone(given), more...)}
			options := make([]Option, len(one.Values))
			for i, v := range one.Values {
				options[i] = Option{p.Axes[i].Name, v}
			}
			var err error
			if one.Spec, err = r.Cell(options); err != nil {
				faults.add(p.cellName(&one), err)
			}
			p.Cells = append(p.Cells, one)
		}
	}
	if faults.cells == 0 {
		return p.locateCells()
	}
	return fmt.Errorf("%w: %d of %d cells are invalid: %s; nothing was run", ErrSpec, faults.cells, len(p.Cells),
		&faults)
}

// faults counts the invalid cells by reason.
type faults struct {
	cells   int
	reasons []fault        // in order of occurrence
	at      map[string]int // place in reasons by the reason without its digits, for cells that differ in a number only
}

// fault is one reason, with the first cell to which it applies and the number of such cells.
type fault struct {
	reason, first string
	cells         int
}

func (f *faults) add(cell string, err error) {
	reason := err.Error()
	kind := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, reason)
	at, met := f.at[kind]
	if !met {
		if f.at == nil {
			f.at = map[string]int{}
		}
		at = len(f.reasons)
		f.at[kind], f.reasons = at, append(f.reasons, fault{reason: reason, first: cell})
	}
	f.cells++
	f.reasons[at].cells++
}

// String returns each reason once, with its first cell.
func (f *faults) String() string {
	var parts []string
	shown := 0
	for _, one := range f.reasons[:min(len(f.reasons), mostFaults)] {
		also := ""
		if one.cells > 1 {
			also = fmt.Sprintf(" and %d more", one.cells-1)
		}
		shown += one.cells
		parts = append(parts, fmt.Sprintf("%s%s: %s", one.first, also, one.reason))
	}
	if rest := f.cells - shown; rest > 0 {
		parts = append(parts, fmt.Sprintf("%s for other reasons", olaf.Plural(rest, "cell")))
	}
	return strings.Join(parts, "; ")
}

// checkPatience rejects the first cell whose runs would take too long. The error comes from the command.
func (p *Plan) checkPatience() error {
	if p.command.Patience == nil {
		return nil
	}
	for i := range p.Cells {
		if err := p.command.Patience(p.Cells[i].Spec); err != nil {
			return fmt.Errorf("a run of %s: %w", p.cellName(&p.Cells[i]), err)
		}
	}
	return nil
}

// locateCells sets the position of each cell on the axes.
func (p *Plan) locateCells() error {
	places := make([]map[string]int, len(p.Axes))
	for k := range p.Axes {
		places[k] = make(map[string]int, len(p.Axes[k].Values))
		for i, v := range p.Axes[k].Values {
			places[k][v] = i
		}
	}
	for i := range p.Cells {
		c := &p.Cells[i]
		if len(c.Values) != len(p.Axes) {
			return fmt.Errorf("%w: cell %d has %d values on %d axes", ErrSpec, i, len(c.Values), len(p.Axes))
		}
		c.at = make([]int, len(c.Values))
		for k, v := range c.Values {
			at, ok := places[k][v]
			if !ok {
				return fmt.Errorf("%w: cell %d has a value that is not on axis %s", ErrSpec, i, p.Axes[k].Name)
			}
			c.at[k] = at
		}
	}
	return nil
}

// cellName returns the name of a cell.
func (p *Plan) cellName(c *Cell) string {
	parts := make([]string, len(c.Values))
	for i, v := range c.Values {
		parts[i] = p.Axes[i].Name + "=" + v
	}
	return strings.Join(parts, " ")
}

// Bind connects a plan that was read from a file with its command. The error matches ErrSpec.
func (p *Plan) Bind(all Commands) (err error) {
	if _, err := p.findRules(); err != nil {
		return err
	}
	if p.Runs < 1 || p.Runs > maxRuns {
		return fmt.Errorf("%w: the plan has %d runs per cell; use 1 to %d", ErrSpec, p.Runs, maxRuns)
	}
	if p.command, err = all.Find(p.Command); err != nil {
		return err
	}
	return p.locateCells()
}

// Job is one lot of runs of a cell, as it is passed to a worker.
type Job struct {
	Key     string          `json:"key"`
	Command string          `json:"command"`
	Spec    json.RawMessage `json:"spec"`
	From    int             `json:"from"` // number of the first run
	Runs    int             `json:"runs"`
}

// MaxLots returns the maximum number of lots per cell.
func (p *Plan) MaxLots() int { return (p.Runs + lotRuns - 1) / lotRuns }

// Job returns one lot of a cell as a job. Its key is the hash of everything that can affect the result.
func (p *Plan) Job(cell, lot int) Job {
	from := lot * lotRuns
	j := Job{Command: p.Command, Spec: p.Cells[cell].Spec, From: from, Runs: min(lotRuns, p.Runs-from)}
	j.Key = j.hashKey(p.Build)
	return j
}

func (j Job) hashKey(b Build) string {
	raw, err := json.Marshal(struct {
		Build   string          `json:"build"`
		Command string          `json:"command"`
		Spec    json.RawMessage `json:"spec"`
		From    int             `json:"from"`
		Runs    int             `json:"runs"`
	}{b.Hash(), j.Command, j.Spec, j.From, j.Runs})
	if err != nil {
		panic(err) // the specification is not JSON: a bug in its command
	}
	return hashBytes(raw)
}

// shuffleUnits sorts units into the plan's order, which is random but the same in every process.
func (p *Plan) shuffleUnits(units []unit) {
	if p.Order == Grid {
		return
	}
	sum := sha256.Sum256(p.Config)
	rand.New(rand.NewChaCha8(sum)).Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
}

// Rule returns a phrase for the number of runs per cell.
func (p *Plan) Rule() string {
	if p.Enough != nil {
		return fmt.Sprintf("runs %v, at most %d", p.Enough, p.Runs)
	}
	if p.Runs == 1 {
		return "1 run each"
	}
	return fmt.Sprintf("%d runs each", p.Runs)
}

// Describe returns a description of the options that the sweep varies.
func (p *Plan) Describe() string {
	var parts []string
	for i := range p.Axes {
		if n := len(p.Axes[i].Values); n > 1 {
			parts = append(parts, fmt.Sprintf("%d × %s", n, p.Axes[i].Name))
		}
	}
	return strings.Join(parts, ", ") + " of " + p.Command + ", " + p.Rule()
}

// Document returns the sweep's document with the given cells. It has no provenance yet.
func (p *Plan) Document(cells []sweep.Outcome) (*sweep.Document, error) {
	schema, err := p.findRules()
	if err != nil {
		return nil, err
	}
	d := &sweep.Document{Schema: schema, ID: p.ID, Command: p.Command, Config: p.Config, Axes: p.Axes,
		Subject: p.Subject, Rule: p.Rule()}
	for _, name := range p.Metrics {
		shown := sweep.Shown{Name: name, Title: name}
		if m := p.command.Metric(name); m != nil {
			shown.Title, shown.Unit = m.Title, m.Unit
		}
		d.Metrics = append(d.Metrics, shown)
	}
	return d, d.Fill(cells, func(name string) *metric.Metric { return p.command.Metric(name) })
}
