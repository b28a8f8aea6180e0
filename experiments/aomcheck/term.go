package aomcheck

import "strings"

// Bool is a term of sort Bool in SMT-LIB syntax. And, Or, Not and Implies simplify terms with constants.
type Bool string

// The two Boolean constants.
const (
	True  Bool = "true"
	False Bool = "false"
)

// Const returns True or False, depending on b.
func Const(b bool) Bool {
	if b {
		return True
	}
	return False
}

// and returns the conjunction of terms, or True if there are none.
func and(terms ...Bool) Bool { return fold("and", True, False, terms) }

// or returns the disjunction of terms, or False if there are none.
func or(terms ...Bool) Bool { return fold("or", False, True, terms) }

// not returns the negation of t.
func not(t Bool) Bool {
	switch {
	case t == True:
		return False
	case t == False:
		return True
	case strings.HasPrefix(string(t), "(not "):
		return t[len("(not ") : len(t)-1]
	}
	return "(not " + t + ")"
}

// implies returns a → b.
func implies(a, b Bool) Bool {
	switch {
	case a == True:
		return b
	case a == False || b == True:
		return True
	case b == False:
		return not(a)
	}
	return "(=> " + a + " " + b + ")"
}

// iff returns a ↔ b.
func iff(a, b Bool) Bool {
	switch {
	case a == True:
		return b
	case b == True:
		return a
	case a == False:
		return not(b)
	case b == False:
		return not(a)
	case a == b:
		return True
	}
	return "(= " + a + " " + b + ")"
}

func fold(op string, neutral, absorbing Bool, terms []Bool) Bool {
	kept := make([]string, 0, len(terms))
	seen := make(map[Bool]bool, len(terms))
	for _, t := range terms {
		switch {
		case t == absorbing:
			return absorbing
		case t == neutral || seen[t]:
		default:
			seen[t] = true
			kept = append(kept, string(t))
		}
	}
	switch len(kept) {
	case 0:
		return neutral
	case 1:
		return Bool(kept[0])
	}
	return Bool("(" + op + " " + strings.Join(kept, " ") + ")")
}

// lin is a linear expression over the variables of one Script, in ticks. The zero value is 0. It is immutable:
// operations return new expressions.
type lin struct {
	constant int64
	terms    []monomial // by ascending variable, without zero coefficients
}

type monomial struct {
	variable int
	coef     int64
}

// makeConstant returns the constant expression n.
func makeConstant(n int64) lin { return lin{constant: n} }

// Plus returns a + b.
func (a lin) Plus(b lin) lin { return combine(a, b, 1) }

// Minus returns a − b.
func (a lin) Minus(b lin) lin { return combine(a, b, -1) }

// Shift returns a + n.
func (a lin) Shift(n int64) lin {
	a.constant += n
	return a
}

// Times returns n·a.
func (a lin) Times(n int64) lin { return combine(lin{}, a, n) }

func combine(a, b lin, factor int64) lin {
	out := lin{constant: a.constant + factor*b.constant, terms: make([]monomial, 0, len(a.terms)+len(b.terms))}
	add := func(m monomial) {
		if m.coef != 0 {
			out.terms = append(out.terms, m)
		}
	}
	i, j := 0, 0
	for i < len(a.terms) || j < len(b.terms) {
		switch {
		case j == len(b.terms) || i < len(a.terms) && a.terms[i].variable < b.terms[j].variable:
			add(a.terms[i])
			i++
		case i == len(a.terms) || b.terms[j].variable < a.terms[i].variable:
			add(monomial{b.terms[j].variable, factor * b.terms[j].coef})
			j++
		default:
			add(monomial{a.terms[i].variable, a.terms[i].coef + factor*b.terms[j].coef})
			i, j = i+1, j+1
		}
	}
	return out
}
