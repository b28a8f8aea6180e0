package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"
)

// count is the value of a flag that is a number of 1 or more where it is given.
type count struct{ value *int }

// AddCount adds a flag for a number of 1 or more; left out it stays what it is, which 0 is for.
func AddCount(flags *pflag.FlagSet, value *int, name, usage string) {
	flags.Var(&count{value}, name, usage)
}

func (c *count) String() string {
	if c.value == nil || *c.value == 0 { // of a zero value, which pflag makes
		return ""
	}
	return strconv.Itoa(*c.value)
}

// Type is what help calls it.
func (c *count) Type() string { return "int" }

// Set takes a number.
func (c *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("use a number of 1 or more, or leave it out")
	}
	*c.value = n
	return nil
}
