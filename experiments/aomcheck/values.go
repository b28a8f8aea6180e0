package aomcheck

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// parseValues parses a list ((name value) …). Each value is true, false, or a rational in any of the formats that the
// solvers print.
func parseValues(text string) (map[string]any, error) {
	e, rest, err := parseSexpr(tokens(text))
	if err != nil {
		return nil, fmt.Errorf("its values do not parse: %w", err)
	}
	if len(rest) > 0 || e.list == nil {
		return nil, errors.New("its values do not parse: more than one list")
	}
	values := make(map[string]any, len(e.list))
	for _, pair := range e.list {
		if len(pair.list) != 2 || pair.list[0].atom == "" {
			return nil, errors.New("its values do not parse: not a pair")
		}
		v, err := pair.list[1].value()
		if err != nil {
			return nil, fmt.Errorf("its value of %s does not parse: %w", pair.list[0].atom, err)
		}
		values[pair.list[0].atom] = v
	}
	return values, nil
}

type sexpr struct {
	atom string
	list []sexpr
}

func tokens(text string) []string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "(", " ( "), ")", " ) ")
	return strings.Fields(text)
}

// maxDepth limits the nesting of solver output. Valid values are nested at most three levels deep.
const maxDepth = 16

func parseSexpr(t []string) (sexpr, []string, error) { return parseNested(t, maxDepth) }

func parseNested(t []string, depth int) (sexpr, []string, error) {
	if len(t) == 0 || depth == 0 {
		return sexpr{}, nil, errors.New("unexpected end or too deep")
	}
	if t[0] == ")" {
		return sexpr{}, nil, errors.New("stray parenthesis")
	}
	if t[0] != "(" {
		return sexpr{atom: t[0]}, t[1:], nil
	}
	e := sexpr{list: []sexpr{}}
	t = t[1:]
	for len(t) > 0 && t[0] != ")" {
		var item sexpr
		var err error
		if item, t, err = parseNested(t, depth-1); err != nil {
			return sexpr{}, nil, err
		}
		e.list = append(e.list, item)
	}
	if len(t) == 0 {
		return sexpr{}, nil, errors.New("missing parenthesis")
	}
	return e, t[1:], nil
}

func (e sexpr) value() (any, error) {
	switch e.atom {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return e.rational()
}

func (e sexpr) rational() (*big.Rat, error) {
	if e.list == nil {
		// big.Rat would also accept exponents and fractions; a solver's numeral has neither.
		if e.atom == "" || strings.Trim(e.atom, "0123456789.") != "" {
			return nil, fmt.Errorf("%q is no number", e.atom)
		}
		v, ok := new(big.Rat).SetString(e.atom)
		if !ok {
			return nil, fmt.Errorf("%q is no number", e.atom)
		}
		return v, nil
	}
	args := make([]*big.Rat, 0, 2)
	for i := 1; i < len(e.list); i++ {
		v, err := e.list[i].rational()
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	switch {
	case len(args) == 1 && e.list[0].atom == "-":
		return args[0].Neg(args[0]), nil
	case len(args) == 2 && e.list[0].atom == "/" && args[1].Sign() != 0:
		return args[0].Quo(args[0], args[1]), nil
	}
	return nil, errors.New("not a rational")
}
