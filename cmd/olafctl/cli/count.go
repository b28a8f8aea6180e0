package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"
)

// count is the value of a flag that takes a number of 1 or more.
type count struct{ value *int }

// AddCount adds a flag for a number of 1 or more. Without the flag value stays as it is, usually 0.
func AddCount(flags *pflag.FlagSet, value *int, name, usage string) {
	flags.Var(&count{value}, name, usage)
}

func (c *count) String() string {
	if c.value == nil || *c.value == 0 { // pflag makes zero values
		return ""
	}
	return strconv.Itoa(*c.value)
}

func (c *count) Type() string { return "int" }

func (c *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("use a number of 1 or more, or leave it out")
	}
	*c.value = n
	return nil
}
