package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/sweep/grid"
)

// SystemField is the name of the axis that varies the system of a command.
const SystemField = "system"

// optionTypes maps the type of a flag to the type of its values in a sweep.
var optionTypes = map[string]grid.Type{
	"int": grid.Integer, "uint64": grid.Integer, "float64": grid.Real, "float": grid.Real,
	"rate": grid.Rate, "size": grid.Size, "duration": grid.Duration, "string": grid.Word, "bool": grid.Word,
	"stringSlice": grid.Word,
}

// OptionsOf returns the flags that a sweep can set, and the flags that it can vary. It can set all flags except those
// in never, and vary all except those in never and fixed.
func OptionsOf(flags *pflag.FlagSet, never, fixed []string) (options []string, fields []experimentsweep.Field) {
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(never, f.Name) {
			return
		}
		options = append(options, f.Name)
		if !slices.Contains(fixed, f.Name) {
			fields = append(fields, experimentsweep.Field{Name: f.Name, Type: optionTypes[f.Value.Type()]})
		}
	})
	return options, fields
}

// SetOptions sets flags in the same way as a command line. A list replaces the previous list.
func SetOptions(flags *pflag.FlagSet, options []experimentsweep.Option) error {
	cli.CheckValues(flags)
	for _, o := range options {
		f := flags.Lookup(o.Name)
		if f == nil {
			return fmt.Errorf("unknown option %s", o.Name)
		}
		err := error(nil)
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = list.Replace(strings.Split(o.Value, ","))
		} else {
			err = f.Value.Set(o.Value)
		}
		if number := (*strconv.NumError)(nil); errors.As(err, &number) {
			return cli.UsageError("%s %q: want %s", o.Name, o.Value, cli.DescribeValues(f, number))
		}
		if err != nil {
			return cli.UsageError("%s %q: %v", o.Name, o.Value, err)
		}
		f.Changed = true
	}
	return nil
}

// Cells resolves the cells of a sweep from a command's flags.
type Cells[T any] struct {
	Cmd   *cobra.Command
	Flags *T // written by the flags
	Base  T
	// Spec returns everything that determines a cell's results, for JSON.
	Spec func(*T) (any, error)
}

// Begin sets the options that all cells share.
func (c *Cells[T]) Begin(name, file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
	if file != "" {
		return nil, cli.UsageError("%s does not read a file; use its options", name)
	}
	err := SetOptions(c.Cmd.Flags(), options)
	c.Base = *c.Flags
	return c, err
}

// Axes returns nil, because the command has no axes without --sweep.
func (c *Cells[T]) Axes([]string) []grid.Axis { return nil }

// Cell returns the specification of a cell with these values.
func (c *Cells[T]) Cell(values []experimentsweep.Option) (json.RawMessage, error) {
	*c.Flags = c.Base
	if err := SetOptions(c.Cmd.Flags(), values); err != nil {
		return nil, err
	}
	spec, err := c.Spec(c.Flags)
	if err != nil {
		return nil, err
	}
	return json.Marshal(spec)
}
