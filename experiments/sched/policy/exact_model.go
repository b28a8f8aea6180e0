package policy

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// Sense is the relation between the two sides of a row.
type Sense string

// The senses, as in the LP format.
const (
	AtMost  Sense = "<="
	AtLeast Sense = ">="
	Equal   Sense = "="
)

// Term is a variable multiplied by a coefficient.
type Term struct {
	Variable    int
	Coefficient float64
}

// Variable is one variable in a model. Upper may be +Inf.
type Variable struct {
	Name         string
	Lower, Upper float64
	Integer      bool
}

// Row is one linear constraint.
type Row struct {
	Name  string
	Terms []Term
	Sense Sense
	Right float64
}

// Model is a mixed integer linear program. Its objective is minimised.
type Model struct {
	Notes     []string // comment lines
	Objective []Term
	Variables []Variable
	Rows      []Row
}

// add adds a variable and returns its index.
func (m *Model) add(name string, lower, upper float64, integer bool) int {
	m.Variables = append(m.Variables, Variable{name, lower, upper, integer})
	return len(m.Variables) - 1
}

// row adds a constraint. It combines terms with the same variable, because readers of LP files reject repeated
// variables, and drops terms with coefficient 0.
func (m *Model) row(name string, sense Sense, right float64, terms ...Term) {
	kept := make([]Term, 0, len(terms))
	for _, t := range terms {
		if k := slices.IndexFunc(kept, func(o Term) bool { return o.Variable == t.Variable }); k >= 0 {
			kept[k].Coefficient += t.Coefficient
			continue
		}
		kept = append(kept, t)
	}
	kept = slices.DeleteFunc(kept, func(t Term) bool { return t.Coefficient == 0 })
	m.Rows = append(m.Rows, Row{name, kept, sense, right + 0}) // + 0 turns -0 into 0
}

// Size returns the number of variables, integer variables and rows.
func (m *Model) Size() (variables, integers, rows int) {
	for i := range m.Variables {
		if m.Variables[i].Integer {
			integers++
		}
	}
	return len(m.Variables), integers, len(m.Rows)
}

// termsPerLine is the maximum number of terms per line in an LP file. Longer lines are not accepted by every program.
const termsPerLine = 6

// WriteLP writes the model in the LP format. HiGHS, CBC, GLPK, Gurobi and CPLEX can read it.
func (m *Model) WriteLP(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, note := range m.Notes {
		fmt.Fprintf(out, "\\ %s\n", note)
	}
	fmt.Fprint(out, "Minimize\n obj:")
	m.writeTerms(out, m.Objective)
	fmt.Fprint(out, "\nSubject To\n")
	for i := range m.Rows {
		r := &m.Rows[i]
		fmt.Fprintf(out, " %s:", r.Name)
		m.writeTerms(out, r.Terms)
		fmt.Fprintf(out, " %s %s\n", r.Sense, formatNumber(r.Right))
	}
	fmt.Fprint(out, "Bounds\n")
	for i := range m.Variables {
		v := &m.Variables[i]
		if math.IsInf(v.Upper, 1) {
			fmt.Fprintf(out, " %s >= %s\n", v.Name, formatNumber(v.Lower))
			continue
		}
		fmt.Fprintf(out, " %s <= %s <= %s\n", formatNumber(v.Lower), v.Name, formatNumber(v.Upper))
	}
	m.writeIntegers(out)
	fmt.Fprint(out, "End\n")
	return out.Flush()
}

func (m *Model) writeTerms(out io.Writer, terms []Term) {
	if len(terms) == 0 && len(m.Variables) > 0 {
		terms = []Term{{0, 0}} // readers need at least one term
	}
	for k, t := range terms {
		if k > 0 && k%termsPerLine == 0 {
			fmt.Fprint(out, "\n  ")
		}
		sign := "+"
		if t.Coefficient < 0 {
			sign = "-"
		}
		fmt.Fprintf(out, " %s %s %s", sign, formatNumber(math.Abs(t.Coefficient)), m.Variables[t.Variable].Name)
	}
}

func (m *Model) writeIntegers(out io.Writer) {
	_, integers, _ := m.Size()
	if integers == 0 {
		return
	}
	fmt.Fprint(out, "Generals\n")
	for i := range m.Variables {
		if m.Variables[i].Integer {
			fmt.Fprintf(out, " %s\n", m.Variables[i].Name)
		}
	}
}

// formatNumber formats v so that parsing the text returns exactly v.
func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
