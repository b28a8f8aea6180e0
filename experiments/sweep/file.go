package sweep

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/internal/yamlfile"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// fileSchema is the schema of the sweep files that ParseFile reads.
const fileSchema = "olafctl.sweep-spec/v1"

// File is the content of a sweep file.
type File struct {
	Name    string `json:"-"` // path, for messages
	Schema  string `json:"schema"`
	Command string `json:"command"`
	// File is a file in the command's own format: a specification, a topology.
	File string `json:"file,omitempty"`
	// Options applies to all cells.
	Options map[string]string `json:"options,omitempty"`
	// Sweep lists axes in the grammar of package axis; a cell is a combination of their values. List lists single cells
	// instead, each with the same options.
	Sweep   []string            `json:"sweep,omitempty"`
	List    []map[string]string `json:"list,omitempty"`
	Metrics []string            `json:"metrics,omitempty"` // metrics that are shown
	Runs    int                 `json:"runs,omitempty"`    // per cell; with Until, the maximum
	Until   string              `json:"until,omitempty"`   // rule for enough runs, such as ci=2%
	lines   yamlfile.Lines
}

// ParseFile parses a sweep file. name is used in messages. Errors match ErrSpec and name the line.
func ParseFile(name string, text []byte) (*File, error) {
	f := &File{Name: name}
	format := yamlfile.Format{Name: "sweep",
		Hint:   "it needs 'command: bench' and 'sweep: [slots=2..64:x2]'; docs/guide/sweeps.md has complete examples",
		Schema: fileSchema, Fail: f.makeError}
	var err error
	if f.lines, err = format.DecodeWithLines(text, f); err != nil {
		return nil, err
	}
	if f.File != "" && !filepath.IsAbs(f.File) {
		f.File = filepath.Join(filepath.Dir(name), f.File)
	}
	return f, nil
}

func (f *File) makeError(line int, what string) error {
	where := f.Name
	if line > 0 {
		where += ":" + strconv.Itoa(line)
	}
	return fmt.Errorf("%w: %s: %s", ErrSpec, where, what)
}

// atField adds the line of a field to an error about that field.
func (f *File) atField(field string, err error) error {
	if line := f.lines.LineOf(field); err != nil && f.Name != "" && line > 0 {
		return fmt.Errorf("%s:%d: %w", f.Name, line, err)
	}
	return err
}

// FileJSONSchema returns the JSON schema of sweep files, for editors.
func FileJSONSchema() ([]byte, error) {
	s := yamlfile.Schema{ID: fileSchema, Title: "olafctl sweep", Required: []string{"command"},
		Field: func(name string) map[string]any {
			switch name {
			case "schema":
				return map[string]any{"const": fileSchema}
			case "options":
				return map[string]any{"type": "object"}
			case "list":
				return map[string]any{"type": "array", "items": map[string]any{"type": "object"}}
			}
			return nil
		}}
	return s.Generate(reflect.TypeFor[File]())
}

const (
	// lotRuns is the number of a cell's runs that are carried out and stored together.
	lotRuns = 10
	// mostRuns is the default maximum number of runs per cell if a rule decides when there are enough runs.
	mostRuns = 300
	maxRuns  = 100_000
	// manyCells is the largest number of cells in a sweep that does not need the user's confirmation.
	manyCells = 1_000_000
	// mostFaults is the maximum number of reasons for invalid cells that are printed.
	mostFaults = 5
)

// Resolve fixes every cell of the sweep. It reports all invalid cells together, before anything runs. The error matches
// ErrSpec, or ErrLarge for more than a million cells if large is not set, or it comes from the command.
func (f *File) Resolve(all Commands, large bool) (*Plan, error) {
	c, err := all.Find(f.Command)
	if err != nil {
		return nil, f.atField("command", err)
	}
	p := &Plan{Schema: sweep.Schema, Kind: planKind, Command: c.Name, command: c, Runs: f.Runs}
	if err := f.resolveRules(p); err != nil {
		return nil, err
	}
	options, err := f.sortOptions(c)
	if err != nil {
		return nil, err
	}
	axes, cells, err := f.readAxes(c)
	if err != nil {
		return nil, err
	}
	r, err := c.Resolve(f.File, options)
	if err != nil {
		return nil, f.atField("options", err)
	}
	given := olaf.Map(axes, func(a grid.Axis) string { return a.Name })
	own := r.Axes(given)
	n := grid.CountCells(own)
	if cells == nil {
		n *= grid.CountCells(axes)
	} else {
		n *= float64(len(cells))
	}
	if n > manyCells && !large {
		return nil, fmt.Errorf("%w: %.4g million cells of %d runs, at 1 ms a run about %.0f hours on one core; "+
			"use larger steps, or add --yes to run them anyway", ErrLarge, n/1e6, p.Runs, n*float64(p.Runs)/3.6e6)
	}
	if cells == nil {
		cells = grid.BuildGrid(axes)
	}
	for _, a := range append(slices.Clone(axes), own...) {
		p.addAxis(c, a)
	}
	p.chooseSubject(c)
	if p.Config, err = f.encodeConfig(options, p); err != nil {
		return nil, err
	}
	if err := p.makeCells(r, cells, grid.BuildGrid(own)); err != nil || large {
		return p, err
	}
	return p, p.checkPatience()
}

// resolveRules sets the rule for the number of runs and the metrics that are shown.
func (f *File) resolveRules(p *Plan) (err error) {
	if f.Until != "" {
		if p.Enough, err = sweep.ParseEnough(f.Until); err != nil {
			return f.atField("until", err)
		}
	}
	switch {
	case p.command.Once && (p.Runs > 1 || p.Enough != nil):
		return f.atField("runs", fmt.Errorf("%w: %s uses no random numbers; one run per cell is enough", ErrSpec,
			p.Command))
	case p.Runs == 0 && p.Enough != nil:
		p.Runs = mostRuns
	case p.Runs == 0:
		p.Runs = p.command.Runs
	case p.Runs < 0 || p.Runs > maxRuns:
		return f.atField("runs", fmt.Errorf("%w: %d runs; use 1 to %d", ErrSpec, p.Runs, maxRuns))
	}
	if p.Metrics = p.command.Headline; len(f.Metrics) > 0 {
		p.Metrics, err = p.CheckMetrics(f.Metrics)
	}
	return f.atField("metrics", err)
}

// CheckMetrics checks names of the command's metrics and returns them. "all" stands for all metrics. The error matches
// ErrSpec.
func (p *Plan) CheckMetrics(metrics []string) ([]string, error) {
	names := olaf.Map(p.command.Metrics, func(m *metric.Metric) string { return m.Name })
	if slices.Equal(metrics, []string{"all"}) {
		return names, nil
	}
	for i, name := range metrics {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%w: %s has no metric %q; %s", ErrSpec, p.Command, name, suggestNames(name, names))
		}
		if slices.Contains(metrics[:i], name) {
			return nil, fmt.Errorf("%w: the metric %s is given twice", ErrSpec, name)
		}
	}
	return metrics, nil
}

// sortOptions returns the options that the file sets for the command, sorted by name.
func (f *File) sortOptions(c *Command) (options []Option, err error) {
	for _, name := range slices.Sorted(maps.Keys(f.Options)) {
		plain := strings.ReplaceAll(name, "_", "-")
		if !slices.Contains(c.Options, plain) {
			return nil, f.atField("options."+name,
				fmt.Errorf("%w: %s has no option %q that a sweep can give; %s", ErrSpec, c.Name, name,
					suggestNames(plain, c.Options)))
		}
		options = append(options, Option{plain, c.plainNumber(plain, f.Options[name])})
	}
	return options, nil
}

// plainNumber normalises an integer, such as 010 to 10, so that the document contains the number with which the cells
// were run. Other values are returned unchanged; the command may reject them.
func (c *Command) plainNumber(option, value string) string {
	i := slices.IndexFunc(c.Fields, func(f Field) bool { return f.Name == option })
	if i < 0 || c.Fields[i].Type != grid.Integer {
		return value
	}
	if one, err := grid.ParseAxis(option, grid.Integer, value); err == nil && len(one.Values) == 1 {
		return one.Values[0]
	}
	return value
}

// readAxes returns the axes of a grid. For a list, it returns the cells, and axes made from their values.
func (f *File) readAxes(c *Command) (axes []grid.Axis, cells [][]string, err error) {
	switch {
	case len(f.Sweep) > 0 && len(f.List) > 0:
		return nil, nil, f.atField("list", fmt.Errorf("%w: give a grid (sweep) or a list, not both", ErrSpec))
	case len(f.Sweep) == 0 && len(f.List) == 0:
		return nil, nil, f.atField("command",
			fmt.Errorf("%w: nothing is varied; add 'sweep: [NAME=VALUES]', such as slots=2..64:x2", ErrSpec))
	case len(f.List) > 0:
		return f.listCells(c)
	}
	for i, text := range f.Sweep {
		a, err := f.parseAxis(c, axes, text)
		if err != nil {
			return nil, nil, f.atField(fmt.Sprintf("sweep[%d]", i), err)
		}
		axes = append(axes, a)
	}
	return axes, nil, nil
}

// parseAxis parses one axis and rejects a field that an earlier axis already varies.
func (f *File) parseAxis(c *Command, before []grid.Axis, text string) (grid.Axis, error) {
	name, values, err := grid.SplitAxis(text)
	if err != nil {
		return grid.Axis{}, err
	}
	field, err := f.findVaried(c, name)
	if err != nil {
		return grid.Axis{}, err
	}
	if slices.ContainsFunc(before, func(a grid.Axis) bool { return a.Name == name }) {
		return grid.Axis{}, fmt.Errorf("%w: %s is varied twice; put all its values into one entry", ErrSpec, name)
	}
	return grid.ParseAxis(name, field.Type, values)
}

// findVaried returns the field with the given name. It rejects a field that is also set as an option of all cells.
func (f *File) findVaried(c *Command, name string) (Field, error) {
	field, err := c.findField(name)
	if err != nil {
		return field, err
	}
	for option := range f.Options {
		if strings.ReplaceAll(option, "_", "-") == name {
			return field, fmt.Errorf("%w: %s is varied and also set for all cells (%s); remove one of the two", ErrSpec,
				name, f.Options[option])
		}
	}
	return field, nil
}

// listCells returns the cells of a list and the axes made from them. All cells must set the same options.
func (f *File) listCells(c *Command) (axes []grid.Axis, cells [][]string, err error) {
	names := slices.Sorted(maps.Keys(f.List[0]))
	for i, listed := range f.List {
		in := func(err error) error { return f.atField(fmt.Sprintf("list[%d]", i), err) }
		if given := slices.Sorted(maps.Keys(listed)); !slices.Equal(given, names) || len(given) == 0 {
			return nil, nil, in(fmt.Errorf("%w: cell %d of the list sets %s, the first one sets %s; all cells must "+
				"set the same options", ErrSpec, i+1, strings.Join(given, ", "), strings.Join(names, ", ")))
		}
		var cell []string
		for k, name := range names {
			field, err := f.findVaried(c, strings.ReplaceAll(name, "_", "-"))
			if err != nil {
				return nil, nil, in(err)
			}
			one, err := grid.ParseAxis(field.Name, field.Type, listed[name])
			if err != nil {
				return nil, nil, in(err)
			}
			if len(one.Values) != 1 {
				return nil, nil, in(fmt.Errorf(
					"%w: %s: %s; a cell of a list has one value per option; use a grid (sweep) for several", ErrSpec,
					name,
					listed[name]))
			}
			if i == 0 {
				axes = append(axes, grid.Axis{Name: field.Name})
			}
			if !slices.Contains(axes[k].Values, one.Values[0]) {
				axes[k].Values = append(axes[k].Values, one.Values[0])
			}
			cell = append(cell, one.Values[0])
		}
		if slices.ContainsFunc(cells, func(have []string) bool { return slices.Equal(have, cell) }) {
			return nil, nil, in(fmt.Errorf("%w: the cell %s is listed twice", ErrSpec, strings.Join(cell, ", ")))
		}
		cells = append(cells, cell)
	}
	return axes, cells, nil
}

// encodeConfig returns the settings that can affect the numbers. They are displayed and used to compare sweeps.
func (f *File) encodeConfig(options []Option, p *Plan) (json.RawMessage, error) {
	return json.Marshal(struct {
		Command string              `json:"command"`
		File    string              `json:"file,omitempty"`
		Options []Option            `json:"options,omitempty"`
		Sweep   []string            `json:"sweep,omitempty"`
		List    []map[string]string `json:"list,omitempty"`
		Runs    int                 `json:"runs"`
		Until   string              `json:"until,omitempty"`
	}{f.Command, f.File, options, f.Sweep, f.List, p.Runs, f.Until})
}
