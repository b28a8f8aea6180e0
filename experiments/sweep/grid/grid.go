// Package grid parses the values of a swept parameter, in the grammar of all sweeps: NAME=VALUES, where VALUES are
// single values and ranges, separated by commas.
//
//	slots=2,4,8            these
//	slots=2..64:x2         from 2, doubled each time, up to 64
//	out-rate=5G..40G:5G    from 5G, in steps of 5G, up to 40G
//	phase=0..100ms/20      from 0 to 100ms in 20 equal steps, both ends included
//	phase=0..100ms         the same in 20 steps; for whole numbers, every one
//
// The lower end of a range may omit the unit if the upper one has it.
package grid

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
)

// ErrSweep is matched by the error for any rejected sweep. The message explains the syntax.
var ErrSweep = olaf.NewError(olaf.Usage, "bad sweep")

// Type is the type of a parameter's values.
type Type uint8

const (
	Word     Type = iota // names, such as those of systems; no ranges
	Integer              // such as 8
	Real                 // such as 0.25
	Rate                 // such as 5G
	Size                 // such as 256B
	Duration             // such as 100ms
)

const (
	defaultSteps = 20
	maxSteps     = 1000
	// maxValues is the maximum number of values on one axis, so that a typo cannot create a huge grid.
	maxValues = 100_000
)

// Axis is one parameter with its values in canonical form.
type Axis struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// SplitAxis splits NAME=VALUES at the equals sign. It replaces underscores in the name by dashes. The error matches
// ErrSweep.
func SplitAxis(text string) (name, values string, err error) {
	name, values, ok := strings.Cut(text, "=")
	name = strings.ReplaceAll(strings.TrimSpace(name), "_", "-")
	if !ok || name == "" {
		return "", "", fmt.Errorf("%w %q: there is no NAME= in it; write it as slots=2..64:x2, or phase=0..100ms/20",
			ErrSweep, text)
	}
	return name, values, nil
}

// ParseAxis parses the values of a parameter and rejects duplicate values. The error matches ErrSweep.
func ParseAxis(name string, of Type, values string) (Axis, error) {
	a := Axis{Name: name}
	for _, part := range strings.Split(values, ",") {
		more, err := of.parsePart(strings.TrimSpace(part))
		if err != nil {
			return a, fmt.Errorf("%w %s=%s: %w", ErrSweep, name, values, err)
		}
		a.Values = append(a.Values, more...)
		if len(a.Values) > maxValues {
			return a, fmt.Errorf("%w %s=%s: more than %d values; make the steps longer", ErrSweep, name, values,
				maxValues)
		}
	}
	seen := make(map[string]bool, len(a.Values))
	for _, v := range a.Values {
		if seen[v] {
			return a, fmt.Errorf("%w %s=%s: %s is in it twice", ErrSweep, name, values, v)
		}
		seen[v] = true
	}
	return a, nil
}

// parsePart parses one single value or one range.
func (t Type) parsePart(text string) ([]string, error) {
	low, rest, isRange := strings.Cut(text, "..")
	if !isRange || t == Word {
		v, err := t.canonicalize(text)
		return []string{v}, err
	}
	r, err := t.parseSpan(low, rest)
	if err != nil {
		return nil, err
	}
	return r.values()
}

// span is a range from low to high. It advances by a factor or by a step, or is divided into equal steps.
type span struct {
	of           Type
	low, high    *big.Rat
	factor, step *big.Rat // at most one is set; if neither, steps applies
	steps        int
}

func (t Type) parseSpan(low, rest string) (r span, err error) {
	r.of = t
	high, how, stepped := strings.Cut(rest, ":")
	high, count, counted := strings.Cut(high, "/")
	if r.high, err = t.parseValue(high); err != nil {
		return r, err
	}
	if r.low, err = t.parseValue(t.withUnit(low, high)); err != nil {
		return r, err
	}
	if r.low.Cmp(r.high) > 0 {
		return r, fmt.Errorf("%s is more than %s", strings.TrimSpace(low), strings.TrimSpace(high))
	}
	factor, grows := strings.CutPrefix(how, "x")
	switch {
	case stepped && counted:
		return r, fmt.Errorf("give a step (:) or a number of steps (/), not both")
	case grows:
		var ok bool
		if r.factor, ok = new(big.Rat).SetString(factor); !ok || r.factor.Cmp(one) <= 0 || r.low.Sign() <= 0 {
			return r, fmt.Errorf("x%s: a factor is above 1, as x2, and the range must begin above 0", factor)
		}
	case stepped:
		if r.step, err = t.parseValue(t.withUnit(how, high)); err != nil {
			return r, err
		}
		if r.step.Sign() <= 0 {
			return r, fmt.Errorf("a step is above 0")
		}
	case counted:
		if r.steps, err = strconv.Atoi(count); err != nil || r.steps < 1 || r.steps > maxSteps {
			return r, fmt.Errorf("the number of steps is 1 to %d", maxSteps)
		}
	case t == Integer:
		r.step = one
	default:
		r.steps = defaultSteps
	}
	return r, nil
}

var one = big.NewRat(1, 1)

// values returns the values in the range. The upper end is only included if the step or factor reaches it exactly.
func (r *span) values() ([]string, error) {
	var out []string
	add := func(v *big.Rat) error {
		text, err := r.of.formatValue(v)
		out = append(out, text)
		return err
	}
	if r.steps > 0 {
		for i := range r.steps + 1 {
			v := new(big.Rat).Sub(r.high, r.low)
			v.Mul(v, big.NewRat(int64(i), int64(r.steps)))
			if err := add(v.Add(v, r.low)); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	for v := new(big.Rat).Set(r.low); v.Cmp(r.high) <= 0; {
		if err := add(v); err != nil {
			return nil, err
		}
		if len(out) > maxValues {
			return nil, fmt.Errorf("more than %d values; make the steps longer", maxValues)
		}
		if r.factor != nil {
			v.Mul(v, r.factor)
		} else {
			v.Add(v, r.step)
		}
	}
	return out, nil
}

// withUnit returns text with the unit of other appended if text is a bare number.
func (t Type) withUnit(text, other string) string {
	text = strings.TrimSpace(text)
	if t == Integer || t == Real || text == "" || strings.Trim(text, "0123456789.-+") != "" {
		return text
	}
	return text + strings.TrimLeft(strings.TrimSpace(other), "0123456789.-+ ")
}

// parseValue parses a value. Quantities are returned in their smallest unit: bits per second, bytes, or picoseconds.
func (t Type) parseValue(text string) (*big.Rat, error) {
	text = strings.TrimSpace(text)
	var v int64
	switch t {
	case Rate:
		q, err := olaf.ParseRate(text)
		if err != nil {
			return nil, err
		}
		v = int64(q)
	case Size:
		q, err := olaf.ParseSize(text)
		if err != nil {
			return nil, err
		}
		v = int64(q)
	case Duration:
		q, err := olaf.ParseDuration(text)
		if err != nil {
			return nil, err
		}
		v = int64(q)
	case Real:
		const longest = 64
		if r, ok := new(big.Rat).SetString(text); ok && len(text) <= longest && !strings.ContainsAny(text, "/pP_") &&
			hasFiniteExponent(text) {
			return r, nil
		}
		return nil, fmt.Errorf("%q is no number", text)
	default:
		n, err := olaf.ParseInt(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no whole number", text)
		}
		v = n
	}
	return new(big.Rat).SetInt64(v), nil
}

// hasFiniteExponent reports whether the exponent of a number, if any, is in the range of a float64.
func hasFiniteExponent(text string) bool {
	_, err := olaf.ParseNumber(text)
	return err == nil
}

// formatValue formats a value in a form that parseValue can read. It truncates fractions of the smallest unit, but
// rejects a fraction for the type Integer.
func (t Type) formatValue(v *big.Rat) (string, error) {
	if t == Real {
		f, _ := v.Float64()
		return strconv.FormatFloat(f, 'g', -1, 64), nil
	}
	if t == Integer && !v.IsInt() {
		return "", fmt.Errorf("%s is no whole number; give another step", v.FloatString(3))
	}
	n := new(big.Int).Quo(v.Num(), v.Denom())
	if !n.IsInt64() {
		return "", fmt.Errorf("%s is out of range", n)
	}
	switch t {
	case Rate:
		return olaf.Rate(n.Int64()).String(), nil
	case Size:
		return olaf.Size(n.Int64()).String(), nil
	case Duration:
		return olaf.Duration(n.Int64()).String(), nil
	}
	return n.String(), nil
}

// canonicalize returns the canonical form of a single value.
func (t Type) canonicalize(text string) (string, error) {
	if t == Word {
		if text == "" {
			return "", fmt.Errorf("a value is empty")
		}
		return text, nil
	}
	v, err := t.parseValue(text)
	if err != nil {
		return "", err
	}
	return t.formatValue(v)
}

// Number returns a value as a number. Quantities are in bits per second, bytes or nanoseconds. ok is false for a value
// that is a word.
func (t Type) Number(value string) (n float64, ok bool) {
	if t == Word {
		return 0, false
	}
	v, err := t.parseValue(value)
	if err != nil {
		return 0, false
	}
	n, _ = v.Float64()
	if t == Duration {
		n /= float64(olaf.Nanosecond)
	}
	return n, true
}

// Unit returns the unit in which Number returns values.
func (t Type) Unit() string { return map[Type]string{Rate: "bps", Size: "B", Duration: "ns"}[t] }

// BuildGrid returns all combinations of the axes' values. Each combination is in the order of the axes, and the last
// axis varies fastest.
func BuildGrid(axes []Axis) [][]string {
	cells := [][]string{nil}
	for _, a := range axes {
		next := make([][]string, 0, len(cells)*len(a.Values))
		for _, c := range cells {
			for _, v := range a.Values {
				next = append(next, append(slices.Clip(slices.Clone(c)), v))
			}
		}
		cells = next
	}
	return cells
}

// CountCells returns the number of combinations of the axes' values. It does not overflow.
func CountCells(axes []Axis) float64 {
	n := 1.0
	for _, a := range axes {
		n *= float64(len(a.Values))
	}
	return n
}
