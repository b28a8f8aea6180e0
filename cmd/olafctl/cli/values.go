package cli

import (
	"errors"
	"reflect"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
)

// errEmpty is the error for an empty value, which usually comes from an unset shell variable.
var errEmpty = errors.New("is empty; give it a value, or leave it out")

// checkedValue parses a flag's text by the rules that all flags share.
type checkedValue struct{ pflag.Value }

// CheckValues makes flags parse numbers in the same way as files and reject empty values. Flags of other types check
// their own values.
func CheckValues(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		simple := slices.Contains([]string{"string", "int", "uint16", "uint32", "uint64", "float64"}, f.Value.Type())
		if simple && reflect.Indirect(reflect.ValueOf(f.Value)).Type().PkgPath() == "github.com/spf13/pflag" {
			f.Value = &checkedValue{f.Value}
		}
	})
}

// Set parses a value. Without this check, pflag would read 010 as eight and accept infinities.
func (v *checkedValue) Set(text string) error {
	if text == "" {
		return errEmpty
	}
	switch v.Type() {
	case "string":
	case "float64":
		if _, err := olaf.ParseNumber(text); err != nil {
			return &strconv.NumError{Num: text, Err: strconv.ErrSyntax}
		}
	default:
		if n, err := olaf.ParseInt(text); err == nil {
			text = strconv.FormatInt(n, 10)
		} else if n, err := olaf.ParseUint(text, 64); err == nil {
			text = strconv.FormatUint(n, 10)
		} else {
			return &strconv.NumError{Num: text, Err: strconv.ErrSyntax}
		}
	}
	return v.Value.Set(text)
}

// count is the value of a flag that accepts a number of 1 or more.
type count struct{ value *int }

// AddCount adds a flag that accepts a number of 1 or more. If the flag is not given, value is unchanged, usually 0.
func AddCount(flags *pflag.FlagSet, value *int, name, usage string) {
	flags.Var(&count{value}, name, usage)
}

func (c *count) String() string {
	if c.value == nil || *c.value == 0 { // pflag calls String on zero values
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
