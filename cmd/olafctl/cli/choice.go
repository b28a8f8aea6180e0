package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Choose adds a flag that accepts only the given values and completes them in the shell. The default is *p. The values
// are appended to usage unless the text already lists them.
func Choose[T ~string](cmd *cobra.Command, p *T, name, usage string, values ...T) {
	c := &choice[T]{value: p}
	listed := true
	for _, v := range values {
		c.values = append(c.values, string(v))
		listed = listed && strings.Contains(usage, string(v))
	}
	if !listed {
		usage = strings.TrimPrefix(usage+": ", ": ") + strings.Join(c.values, "|")
	}
	cmd.Flags().Var(c, name, usage)
	Complete(cmd, name, func() []string { return c.values })
}

// AlsoCalled lets a flag also be set by its former name, which is given as before.
func AlsoCalled(flags *pflag.FlagSet, name, before string) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, given string) pflag.NormalizedName {
		if given == before {
			given = name
		}
		return pflag.NormalizedName(given)
	})
}

type choice[T ~string] struct {
	value  *T
	values []string
}

func (c *choice[T]) String() string {
	if c.value == nil { // pflag calls String on zero values
		return ""
	}
	return string(*c.value)
}

func (c *choice[T]) Type() string { return "string" }

func (c *choice[T]) Set(text string) error {
	if !slices.Contains(c.values, text) {
		return &ChoiceError{text, c.values}
	}
	*c.value = T(text)
	return nil
}

// ChoiceError is the error for a value that is not one of a flag's choices.
type ChoiceError struct {
	Given  string
	Values []string
}

func (e *ChoiceError) Error() string {
	return fmt.Sprintf("%q is not one of %s", e.Given, strings.Join(e.Values, ", "))
}
