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

	"github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/experiments/yamlfile"
	"github.com/olafctl/olaf/results/sweep"
)

// FileSchema names the file format that Parse reads.
const FileSchema = "olafctl.sweep-spec/v1"

// File is a sweep as people write it.
type File struct {
	Name    string `json:"-"` // where it was read, for messages
	Schema  string `json:"schema"`
	Command string `json:"command"`
	// File is one that the command itself reads: a specification, a topology.
	File string `json:"file,omitempty"`
	// Options are the command's, for all cells.
	Options map[string]string `json:"options,omitempty"`
	// Sweep is what is varied, in the grammar of package axis: every combination. List are single cells instead, each with the
	// same options.
	Sweep   []string            `json:"sweep,omitempty"`
	List    []map[string]string `json:"list,omitempty"`
	Metrics []string            `json:"metrics,omitempty"` // that are shown
	Runs    int                 `json:"runs,omitempty"`    // of every cell; with Until, at most so many
	Until   string              `json:"until,omitempty"`   // how many runs are enough, such as ci=2%
	lines   yamlfile.Lines
}

// Parse reads a file; name is for messages. Errors match ErrSpec and say in which line.
func Parse(name string, text []byte) (*File, error) {
	f := &File{Name: name}
	format := yamlfile.Format{Name: "sweep", Hint: "it needs 'command: bench' and 'sweep: [slots=2..64:x2]'; docs/guide/sweeps.md has whole ones", Schema: FileSchema, Fail: f.fail}
	var err error
	if f.lines, err = format.DecodeWithLines(text, f); err != nil {
		return nil, err
	}
	if f.File != "" && !filepath.IsAbs(f.File) {
		f.File = filepath.Join(filepath.Dir(name), f.File)
	}
	return f, nil
}

func (f *File) fail(line int, what string) error {
	where := f.Name
	if line > 0 {
		where += ":" + strconv.Itoa(line)
	}
	return fmt.Errorf("%w: %s: %s", ErrSpec, where, what)
}

// in says in which line of the file an error about a field is.
func (f *File) in(field string, err error) error {
	if line := f.lines.Of(field); err != nil && f.Name != "" && line > 0 {
		return fmt.Errorf("%s:%d: %w", f.Name, line, err)
	}
	return err
}

// Schema is the JSON schema of such a file, for editors.
func Schema() ([]byte, error) {
	s := yamlfile.Schema{ID: FileSchema, Title: "olafctl sweep", Required: []string{"command"}, Field: func(name string) map[string]any {
		switch name {
		case "schema":
			return map[string]any{"const": FileSchema}
		case "options":
			return map[string]any{"type": "object"}
		case "list":
			return map[string]any{"type": "array", "items": map[string]any{"type": "object"}}
		}
		return nil
	}}
	return s.Of(reflect.TypeFor[File]())
}

const (
	// LotRuns is how many runs of a cell are carried out and stored together.
	LotRuns = 10
	// mostRuns bounds a cell whose runs nobody bounds, but that has a rule for how many are enough.
	mostRuns = 300
	maxRuns  = 100_000
	// ManyCells is above how many cells somebody has to say that they are wanted.
	ManyCells = 1_000_000
	// mostFaults is how many reasons why cells make no sense are printed.
	mostFaults = 10
)

// Resolve fixes every cell. Cells that make no sense are told of together, before anything runs. The error matches ErrSpec,
// ErrLarge of more than a million cells unless large says that they are wanted, or is the command's own.
func (f *File) Resolve(all Commands, large bool) (*Plan, error) {
	c, err := all.Find(f.Command)
	if err != nil {
		return nil, f.in("command", err)
	}
	p := &Plan{Schema: PlanSchema, Command: c.Name, command: c, Runs: f.Runs}
	if err := f.rules(p); err != nil {
		return nil, err
	}
	options, err := f.options(c)
	if err != nil {
		return nil, err
	}
	axes, cells, err := f.axes(c)
	if err != nil {
		return nil, err
	}
	r, err := c.Resolve(f.File, options)
	if err != nil {
		return nil, f.in("options", err)
	}
	var given []string
	for _, a := range axes {
		given = append(given, a.Name)
	}
	own := r.Axes(given)
	n := grid.Cells(own)
	if cells == nil {
		n *= grid.Cells(axes)
	} else {
		n *= float64(len(cells))
	}
	if n > ManyCells && !large {
		return nil, fmt.Errorf("%w: %.4g million cells of %d runs, at 1 ms a run about %.0f hours on one core; make the steps longer, or add --yes if you mean it", ErrLarge, n/1e6, p.Runs, n*float64(p.Runs)/3.6e6)
	}
	if cells == nil {
		cells = grid.Grid(axes)
	}
	for _, a := range append(slices.Clone(axes), own...) {
		p.axis(c, a)
	}
	p.subject(c)
	if p.Config, err = f.config(options, p); err != nil {
		return nil, err
	}
	if err := p.resolve(r, cells, grid.Grid(own)); err != nil || large {
		return p, err
	}
	return p, p.patience()
}

// rules reads how many runs there are and what is shown of them.
func (f *File) rules(p *Plan) (err error) {
	if f.Until != "" {
		if p.Enough, err = sweep.ParseEnough(f.Until); err != nil {
			return f.in("until", err)
		}
	}
	switch {
	case p.command.Once && (p.Runs > 1 || p.Enough != nil):
		return f.in("runs", fmt.Errorf("%w: %s uses no random numbers; one run per cell is enough", ErrSpec, p.Command))
	case p.Runs == 0 && p.Enough != nil:
		p.Runs = mostRuns
	case p.Runs == 0:
		p.Runs = p.command.Runs
	case p.Runs < 0 || p.Runs > maxRuns:
		return f.in("runs", fmt.Errorf("%w: %d runs; use 1 to %d", ErrSpec, p.Runs, maxRuns))
	}
	if p.Metrics = p.command.Headline; len(f.Metrics) > 0 {
		p.Metrics, err = p.Shown(f.Metrics)
	}
	return f.in("metrics", err)
}

// Shown are metrics of the command by their names, all of them where that is all it says. The error matches ErrSpec.
func (p *Plan) Shown(metrics []string) ([]string, error) {
	var names []string
	for _, m := range p.command.Metrics {
		names = append(names, m.Name)
	}
	if slices.Equal(metrics, []string{"all"}) {
		return names, nil
	}
	for i, name := range metrics {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%w: %s has no metric %q; %s", ErrSpec, p.Command, name, near(name, names))
		}
		if slices.Contains(metrics[:i], name) {
			return nil, fmt.Errorf("%w: the metric %s is given twice", ErrSpec, name)
		}
	}
	return metrics, nil
}

// options are the command's, in the order of their names.
func (f *File) options(c *Command) (options []Option, err error) {
	for _, name := range slices.Sorted(maps.Keys(f.Options)) {
		plain := strings.ReplaceAll(name, "_", "-")
		if !slices.Contains(c.Options, plain) {
			return nil, f.in("options."+name, fmt.Errorf("%w: %s has no option %q that a sweep can give; %s", ErrSpec, c.Name, name, near(plain, c.Options)))
		}
		options = append(options, Option{plain, f.Options[name]})
	}
	return options, nil
}

// axes reads what is varied: a grid, or a list of cells, which has the axes of the values in it.
func (f *File) axes(c *Command) (axes []grid.Axis, cells [][]string, err error) {
	switch {
	case len(f.Sweep) > 0 && len(f.List) > 0:
		return nil, nil, f.in("list", fmt.Errorf("%w: give a grid (sweep) or a list, not both", ErrSpec))
	case len(f.Sweep) == 0 && len(f.List) == 0:
		return nil, nil, f.in("command", fmt.Errorf("%w: nothing is varied; add 'sweep: [NAME=VALUES]', such as slots=2..64:x2", ErrSpec))
	case len(f.List) > 0:
		return f.listed(c)
	}
	for i, text := range f.Sweep {
		a, err := f.one(c, axes, text)
		if err != nil {
			return nil, nil, f.in(fmt.Sprintf("sweep[%d]", i), err)
		}
		axes = append(axes, a)
	}
	return axes, nil, nil
}

// one reads one axis.
func (f *File) one(c *Command, before []grid.Axis, text string) (grid.Axis, error) {
	name, values, err := grid.Split(text)
	if err != nil {
		return grid.Axis{}, err
	}
	field, err := f.varied(c, name)
	if err != nil {
		return grid.Axis{}, err
	}
	if slices.ContainsFunc(before, func(a grid.Axis) bool { return a.Name == name }) {
		return grid.Axis{}, fmt.Errorf("%w: %s is varied twice; put all its values into one", ErrSpec, name)
	}
	return grid.New(name, field.Type, values)
}

// varied finds a field that is not an option of all cells as well.
func (f *File) varied(c *Command, name string) (Field, error) {
	field, err := c.field(name)
	if err != nil {
		return field, err
	}
	for option := range f.Options {
		if strings.ReplaceAll(option, "_", "-") == name {
			return field, fmt.Errorf("%w: %s is varied and is given for all cells (%s); leave one out", ErrSpec, name, f.Options[option])
		}
	}
	return field, nil
}

// listed are the cells of a list. Each must give the same options.
func (f *File) listed(c *Command) (axes []grid.Axis, cells [][]string, err error) {
	names := slices.Sorted(maps.Keys(f.List[0]))
	for i, listed := range f.List {
		in := func(err error) error { return f.in(fmt.Sprintf("list[%d]", i), err) }
		if given := slices.Sorted(maps.Keys(listed)); !slices.Equal(given, names) || len(given) == 0 {
			return nil, nil, in(fmt.Errorf("%w: cell %d of the list gives %s, the first %s; all must give the same", ErrSpec, i+1, strings.Join(given, ", "), strings.Join(names, ", ")))
		}
		var cell []string
		for k, name := range names {
			field, err := f.varied(c, strings.ReplaceAll(name, "_", "-"))
			if err != nil {
				return nil, nil, in(err)
			}
			one, err := grid.New(field.Name, field.Type, listed[name])
			if err != nil {
				return nil, nil, in(err)
			}
			if len(one.Values) != 1 {
				return nil, nil, in(fmt.Errorf("%w: %s: %s; a cell of a list has one value of each, a grid (sweep) has several", ErrSpec, name, listed[name]))
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

// config is what decides the numbers, for people and for whoever compares two sweeps.
func (f *File) config(options []Option, p *Plan) (json.RawMessage, error) {
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
