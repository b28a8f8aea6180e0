package aomcheck

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Script is one problem in quantifier-free linear real arithmetic, written as SMT-LIB 2. It contains declared variables
// with their ranges, and named assertions. Every variable has a range, and a comparison that the ranges already decide
// becomes true or false while the script is built. This keeps a model of many updates linear in its length, because
// pairs of updates that are too far apart to interact disappear before a solver reads them. Times are integer ticks
// internally. In the text they are decimal numbers in Unit, so that a problem given in milliseconds is also printed in
// milliseconds.
type Script struct {
	Title []string // comment lines at the top
	// TickPS is the length of one tick and UnitPS that of one unit in the text, both in picoseconds. Unit is the unit's
	// name.
	TickPS, UnitPS int64
	Unit           string

	reals      []realVar
	bools      []string
	assertions []assertion
	report     []string
}

type realVar struct {
	name   string
	lo, hi int64
}

type assertion struct {
	name string
	term Bool
}

// Real declares a variable with the closed range [lo, hi] in ticks and asserts the range.
func (s *Script) Real(name string, lo, hi int64) lin {
	s.reals = append(s.reals, realVar{name, lo, hi})
	v := lin{terms: []monomial{{len(s.reals) - 1, 1}}}
	s.assertions = append(s.assertions, assertion{"range " + name,
		Bool(fmt.Sprintf("(and (<= %s %s) (<= %s %s))", s.number(lo), name, name, s.number(hi)))})
	return v
}

// define declares a variable whose value an assertion determines. Its range is used only for folding and is not
// asserted.
func (s *Script) define(name string, lo, hi int64) lin {
	s.reals = append(s.reals, realVar{name, lo, hi})
	return lin{terms: []monomial{{len(s.reals) - 1, 1}}}
}

// Bool declares a Boolean variable.
func (s *Script) Bool(name string) Bool {
	s.bools = append(s.bools, name)
	return Bool(name)
}

// Report marks a declared variable, so that the solver prints its value for a satisfying assignment.
func (s *Script) Report(name string) { s.report = append(s.report, name) }

// Assert adds a named assertion. A term that folded to true is left out. A term that folded to false stays and makes
// the script unsatisfiable.
func (s *Script) Assert(name string, t Bool) {
	if t != True {
		s.State(name, t)
	}
}

// State adds a named assertion like Assert, but keeps the assertion in the script even if it is trivially true.
func (s *Script) State(name string, t Bool) {
	s.assertions = append(s.assertions, assertion{name, t})
}

// Let returns a Boolean variable that is defined as t, or t itself if its text is short.
func (s *Script) Let(equation, name string, t Bool) Bool {
	if !strings.ContainsRune(string(t), ' ') {
		return t
	}
	v := s.Bool(name)
	s.Assert(equation, iff(v, t))
	return v
}

// Ite returns a named variable that equals a if cond is true, and b otherwise. If cond is already decided, it returns a
// or b without a new variable.
func (s *Script) Ite(equation, name string, cond Bool, a, b lin) lin {
	if cond == True || s.Eq(a, b) == True {
		return a
	}
	if cond == False {
		return b
	}
	alo, ahi := s.Range(a)
	blo, bhi := s.Range(b)
	v := s.define(name, min(alo, blo), max(ahi, bhi))
	s.Assert(equation, Bool(fmt.Sprintf("(= %s (ite %s %s %s))", name, cond, s.text(a), s.text(b))))
	return v
}

// Range returns the bounds of e that follow from the ranges of its variables.
func (s *Script) Range(e lin) (lo, hi int64) {
	lo, hi = e.constant, e.constant
	for _, m := range e.terms {
		v := s.reals[m.variable]
		if m.coef > 0 {
			lo, hi = lo+m.coef*v.lo, hi+m.coef*v.hi
		} else {
			lo, hi = lo+m.coef*v.hi, hi+m.coef*v.lo
		}
	}
	return lo, hi
}

// Lt returns a < b.
func (s *Script) Lt(a, b lin) Bool {
	lo, hi := s.Range(b.Minus(a))
	return s.compare("<", a, b, lo > 0, hi <= 0)
}

// Le returns a ≤ b.
func (s *Script) Le(a, b lin) Bool {
	lo, hi := s.Range(b.Minus(a))
	return s.compare("<=", a, b, lo >= 0, hi < 0)
}

// Eq returns a = b.
func (s *Script) Eq(a, b lin) Bool {
	lo, hi := s.Range(b.Minus(a))
	return s.compare("=", a, b, lo == 0 && hi == 0, lo > 0 || hi < 0)
}

// compare returns a comparison that the ranges may already decide. Otherwise it writes the comparison as a difference in
// normal form, so that equal atoms have equal text.
func (s *Script) compare(op string, a, b lin, always, never bool) Bool {
	switch {
	case always:
		return True
	case never:
		return False
	}
	d := a.Minus(b)
	c := d.constant
	d.constant = 0
	return Bool("(" + op + " " + s.text(d) + " " + s.number(-c) + ")")
}

// AtLeast returns a term that is true if at least n of the given terms are true. It counts them in unary.
func (s *Script) AtLeast(equation, name string, n int, terms []Bool) Bool {
	return s.Counter(equation, name, terms, n)[n]
}

// Counter returns c with c[i] = "at least i of the terms are true" for i up to limit; c[0] is True.
func (s *Script) Counter(equation, name string, terms []Bool, limit int) []Bool {
	counts := slices.Repeat([]Bool{False}, limit+1)
	counts[0] = True
	for j, t := range terms {
		next := make([]Bool, limit+1)
		next[0] = True
		for i := 1; i <= limit; i++ {
			next[i] = s.Let(equation, fmt.Sprintf("%s.%d.%d", name, j, i), or(counts[i], and(t, counts[i-1])))
		}
		counts = next
	}
	return counts
}

// Size returns the number of variables and assertions.
func (s *Script) Size() (variables, assertions int) {
	return len(s.reals) + len(s.bools), len(s.assertions)
}

// Text returns the complete script: declarations, named assertions, and the query for the reported values.
func (s *Script) Text() []byte {
	var b bytes.Buffer
	for _, line := range s.Title {
		fmt.Fprintf(&b, "; %s\n", line)
	}
	fmt.Fprintf(&b, "; all times are in %s\n(set-option :produce-models true)\n(set-logic QF_LRA)\n", s.Unit)
	for _, v := range s.reals {
		fmt.Fprintf(&b, "(declare-const %s Real)\n", v.name)
	}
	for _, v := range s.bools {
		fmt.Fprintf(&b, "(declare-const %s Bool)\n", v)
	}
	for i, a := range s.assertions {
		fmt.Fprintf(&b, "(assert (! %s :named |%d %s|))\n", a.term, i+1, a.name)
	}
	b.WriteString("(check-sat)\n")
	if len(s.report) > 0 {
		fmt.Fprintf(&b, "(get-value (%s))\n", strings.Join(s.report, " "))
	}
	return b.Bytes()
}

// text writes e in the script's unit. Ticks become exact decimals because UnitPS is a power of ten.
func (s *Script) text(e lin) string {
	parts := make([]string, 0, len(e.terms)+1)
	for _, m := range e.terms {
		name := s.reals[m.variable].name
		switch m.coef {
		case 1:
			parts = append(parts, name)
		case -1:
			parts = append(parts, "(- "+name+")")
		default:
			parts = append(parts, fmt.Sprintf("(* %s %s)", integer(m.coef), name))
		}
	}
	if e.constant != 0 || len(parts) == 0 {
		parts = append(parts, s.number(e.constant))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(+ " + strings.Join(parts, " ") + ")"
}

func integer(n int64) string {
	if n < 0 {
		return fmt.Sprintf("(- %d.0)", -n)
	}
	return fmt.Sprintf("%d.0", n)
}

func (s *Script) number(ticks int64) string {
	if ticks < 0 {
		return "(- " + s.number(-ticks) + ")"
	}
	v := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(ticks), big.NewInt(s.TickPS)), big.NewInt(s.UnitPS))
	d := strings.TrimRight(v.FloatString(12), "0")
	if strings.HasSuffix(d, ".") {
		d += "0"
	}
	return d
}

// Ticks converts a value in the script's unit to ticks, as an exact fraction.
func (s *Script) Ticks(value *big.Rat) *big.Rat {
	return new(big.Rat).Mul(value, new(big.Rat).SetFrac64(s.UnitPS, s.TickPS))
}

// Fork returns a copy of s; additions to either do not affect the other.
func (s *Script) Fork() *Script {
	f := *s
	f.Title, f.reals, f.bools = slices.Clip(s.Title), slices.Clip(s.reals), slices.Clip(s.bools)
	f.assertions, f.report = slices.Clip(s.assertions), slices.Clip(s.report)
	return &f
}
