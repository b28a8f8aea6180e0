// Package sweep varies the options of a command over a grid or a list: a File says what, a Plan fixes every cell and every
// seed, worker processes carry lots of runs out, and each result is stored under the key of everything that decides it. What
// was done is never done again, so that a sweep goes on after whatever ended it, and comes out the same from any number of
// processes.
//
// What a command is, and how one of its runs is carried out, is handed in.
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

// Kinds of errors; match them with errors.Is.
var (
	ErrSpec    = olaf.NewError(olaf.Usage, "bad sweep")
	ErrLarge   = olaf.NewError(olaf.Usage, "a large sweep")
	ErrUnknown = olaf.NewError(olaf.Usage, "no such sweep")
	ErrBuild   = olaf.NewError(olaf.Usage, "another build")
)

// Option is a command's option with its value.
type Option struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Field is an option that can be varied.
type Field struct {
	Name string
	Type grid.Type
}

// Command is a command whose runs can be swept.
type Command struct {
	Name string
	// Fields can be varied; Options can be given to all cells, those that can be varied among them.
	Fields  []Field
	Options []string
	// Subject is the field whose values are set against each other, where it is an axis.
	Subject string
	// Metrics are what runs are measured by, Headline those that are shown where nobody chooses.
	Metrics  []*metric.Metric
	Headline []string
	// Runs is how many a cell has where nobody says; Once says that every run of a cell would be the same.
	Runs int
	Once bool
	// Timed says that results depend on wall time, so that a repetition may come out differently.
	Timed bool
	// Resolve reads what all cells share; file is one that the command reads itself, empty for none.
	Resolve func(file string, options []Option) (Resolver, error)
	// Run carries out some runs of a cell, from the number of the first on.
	Run func(ctx context.Context, spec json.RawMessage, from, runs int) (*sweep.Lot, error)
	// Patience refuses a cell of which a single run takes so long that nobody can have meant it; nil refuses none.
	Patience func(spec json.RawMessage) error
	// Piece carries out a piece of work that is no runs of a cell, in place of Run.
	Piece func(ctx context.Context, spec json.RawMessage) (json.RawMessage, error)
	// Close gives back what Run keeps open from one cell to the next; nil for nothing.
	Close func() error
}

// Resolver makes cells.
type Resolver interface {
	// Axes are those that a command has of itself, such as the systems that it compares; those in given are not among them.
	Axes(given []string) []grid.Axis
	// Cell is everything that decides the numbers of a cell but the number of runs: equal cells, equal bytes.
	Cell(values []Option) (json.RawMessage, error)
}

// Commands are those that there are to choose from.
type Commands []*Command

// Find finds a command by its name. The error matches ErrSpec and names those that there are.
func (c Commands) Find(name string) (*Command, error) {
	var names []string
	for _, one := range c {
		if one.Name == name {
			return one, nil
		}
		names = append(names, one.Name)
	}
	return nil, fmt.Errorf("%w: %q is no command that can be swept; use one of %s", ErrSpec, name, strings.Join(names, ", "))
}

// Close gives back what the commands keep open.
func (c Commands) Close() (err error) {
	for _, one := range c {
		if one.Close != nil {
			err = errors.Join(err, one.Close())
		}
	}
	return err
}

// metric finds a metric of the command; nil where there is none of that name.
func (c *Command) Metric(name string) *metric.Metric {
	at := slices.IndexFunc(c.Metrics, func(m *metric.Metric) bool { return m.Name == name })
	if at < 0 {
		return nil
	}
	return c.Metrics[at]
}

// field finds what can be varied. The error names what is near.
func (c *Command) field(name string) (Field, error) {
	var names []string
	for _, f := range c.Fields {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	if slices.Contains(c.Options, name) {
		return Field{}, fmt.Errorf("%w: %s of %s can't be varied; of what can, %s", ErrSpec, name, c.Name, near(name, names))
	}
	return Field{}, fmt.Errorf("%w: %s has no option %q to vary; %s", ErrSpec, c.Name, name, near(name, names))
}

// mostListed is how many names are listed where none is near.
const mostListed = 12

// near says which names may have been meant, or which there are.
func near(name string, names []string) string {
	const some = 3
	if n := suggest.Names(name, names, some); len(n) > 0 {
		return "near are " + strings.Join(n, ", ")
	}
	more := ""
	if n := len(names) - mostListed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "there are " + strings.Join(names[:min(len(names), mostListed)], ", ") + more
}
