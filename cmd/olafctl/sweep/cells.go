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

// SystemField is what the systems of a command are varied as.
const SystemField = "system"

// optionTypes says what the values of a flag are, by its type.
var optionTypes = map[string]grid.Type{
	"int": grid.Whole, "uint64": grid.Whole, "float64": grid.Real, "float": grid.Real,
	"rate": grid.Rate, "size": grid.Size, "duration": grid.Duration, "string": grid.Word, "bool": grid.Word, "stringSlice": grid.Word,
}

// OptionsOf lists the flags that a sweep can give and those that it can vary: all but some.
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

// Give sets flags as a command line would, each in place of what it was.
func Give(flags *pflag.FlagSet, options []experimentsweep.Option) error {
	cli.CheckValues(flags)
	for _, o := range options {
		f := flags.Lookup(o.Name)
		if f == nil {
			return fmt.Errorf("there is no option %s", o.Name)
		}
		err := error(nil)
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = list.Replace(strings.Split(o.Value, ","))
		} else {
			err = f.Value.Set(o.Value)
		}
		if number := (*strconv.NumError)(nil); errors.As(err, &number) {
			return cli.UsageError("%s %q: want %s", o.Name, o.Value, cli.Wanted(f, number))
		}
		if err != nil {
			return cli.UsageError("%s %q: %v", o.Name, o.Value, err)
		}
		f.Changed = true
	}
	return nil
}

// Cells makes specifications of what the flags of a command say.
type Cells[T any] struct {
	Cmd  *cobra.Command
	Said *T // where the flags write
	Base T
	// Spec is everything that decides a cell, to be written as JSON.
	Spec func(*T) (any, error)
}

// Begin reads what all cells share.
func (c *Cells[T]) Begin(name, file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
	if file != "" {
		return nil, cli.UsageError("%s reads no file; give its options", name)
	}
	err := Give(c.Cmd.Flags(), options)
	c.Base = *c.Said
	return c, err
}

// Axes are none of its own.
func (c *Cells[T]) Axes([]string) []grid.Axis { return nil }

// Cell is what the flags say of a cell.
func (c *Cells[T]) Cell(values []experimentsweep.Option) (json.RawMessage, error) {
	*c.Said = c.Base
	if err := Give(c.Cmd.Flags(), values); err != nil {
		return nil, err
	}
	spec, err := c.Spec(c.Said)
	if err != nil {
		return nil, err
	}
	return json.Marshal(spec)
}
