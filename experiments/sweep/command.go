// Package sweep varies the options of a command over a grid or a list. A File describes the sweep, a Plan fixes every
// cell and seed, and worker processes execute lots of runs. Each result is stored under a key that covers everything
// that can affect it and is never computed twice. An interrupted sweep can therefore continue, and the result is the
// same for any number of processes. The commands, and the functions that carry out their runs, are passed in by the
// caller.
package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/internal/suggest"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// Kinds of errors, for errors.Is.
var (
	ErrSpec    = olaf.NewError(olaf.Usage, "bad sweep")
	ErrLarge   = olaf.NewError(olaf.Usage, "a large sweep")
	ErrUnknown = olaf.NewError(olaf.Usage, "no such sweep")
	ErrBuild   = olaf.NewError(olaf.Usage, "a different build")
)

// Option is one option of a command, with its value.
type Option struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Field is an option that a sweep can vary.
type Field struct {
	Name string
	Type grid.Type
}

// Command is a command whose runs can be swept.
type Command struct {
	Name string
	// Fields can be varied. Options can be set for all cells; they include the Fields.
	Fields  []Field
	Options []string
	// Subject is the field whose values are compared if it is an axis.
	Subject string
	// Metrics lists the metrics of runs, Headline the default ones.
	Metrics  []*metric.Metric
	Headline []string
	// Runs is the default number of runs per cell. Once is set if every run of a cell gives the same result.
	Runs int
	Once bool
	// Timed is set if results depend on wall time, so that repetitions may differ.
	Timed bool
	// Resolve reads the settings common to all cells. file is in the command's own format; it may be empty.
	Resolve func(file string, options []Option) (Resolver, error)
	// Run carries out some runs of a cell, beginning with run number from.
	Run func(ctx context.Context, spec json.RawMessage, from, runs int) (*sweep.Lot, error)
	// Patience rejects a cell if a single run would take unreasonably long; it may be nil.
	Patience func(spec json.RawMessage) error
	// Piece, if set, replaces Run for work that is not a set of runs.
	Piece func(ctx context.Context, spec json.RawMessage) (json.RawMessage, error)
	// Close releases resources that Run holds between cells; it may be nil.
	Close func() error
}

// Resolver converts the options of a command to specifications of cells.
type Resolver interface {
	// Axes returns the command's implicit axes, such as the systems that it compares, except those in given.
	Axes(given []string) []grid.Axis
	// Cell returns the specification of a cell: everything that can affect its numbers except the number of runs. Equal
	// cells have equal bytes.
	Cell(values []Option) (json.RawMessage, error)
}

// Commands is the list of available commands.
type Commands []*Command

// Find returns the command with the given name. The error matches ErrSpec and lists all commands.
func (c Commands) Find(name string) (*Command, error) {
	var names []string
	for _, one := range c {
		if one.Name == name {
			return one, nil
		}
		names = append(names, one.Name)
	}
	return nil, fmt.Errorf("%w: %q is not a command that can be swept; use one of %s", ErrSpec, name,
		strings.Join(names, ", "))
}

// Close releases the resources that the commands use.
func (c Commands) Close() (err error) {
	for _, one := range c {
		if one.Close != nil {
			err = errors.Join(err, one.Close())
		}
	}
	return err
}

// Metric returns the command's metric with the given name, or nil if there is none.
func (c *Command) Metric(name string) *metric.Metric {
	at := slices.IndexFunc(c.Metrics, func(m *metric.Metric) bool { return m.Name == name })
	if at < 0 {
		return nil
	}
	return c.Metrics[at]
}

// findField returns the field with the given name. The error suggests similar names.
func (c *Command) findField(name string) (Field, error) {
	var names []string
	for _, f := range c.Fields {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	if slices.Contains(c.Options, name) {
		return Field{}, fmt.Errorf("%w: %s of %s can't be varied; %s", ErrSpec, name, c.Name, suggestNames(name, names))
	}
	return Field{}, fmt.Errorf("%w: %s has no option %q to vary; %s", ErrSpec, c.Name, name, suggestNames(name, names))
}

// mostListed is the maximum number of names that are listed if no name is similar.
const mostListed = 12

// suggestNames returns a text with the names that are similar to name, or with all names if none is.
func suggestNames(name string, names []string) string {
	const some = 3
	if n := suggest.NearestNames(name, names, some); len(n) > 0 {
		return "similar names: " + strings.Join(n, ", ")
	}
	more := ""
	if n := len(names) - mostListed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "there are " + strings.Join(names[:min(len(names), mostListed)], ", ") + more
}
