package policy

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// glpk is a Solver that runs glpsol from the GNU Linear Programming Kit.
type glpk struct{}

// Name returns the name of GLPK's program.
func (glpk) Name() string { return "glpsol" }

// Find checks that GLPK's program is installed.
func (glpk) Find() error {
	_, err := onPath("glpsol", "glpk-utils")
	return err
}

// Solve implements Solver.
func (s glpk) Solve(ctx context.Context, m *Model, l Limits) (Answer, error) {
	path, err := onPath("glpsol", "glpk-utils")
	if err != nil {
		return Answer{}, err
	}
	arguments := func(model, solution string) ([]string, error) {
		args := []string{"--lp", model, "--write", solution, "--mipgap", formatNumber(l.Gap), "--cuts"}
		if l.Time > 0 {
			args = append(args, "--tmlim", strconv.Itoa(int(math.Ceil(l.Time.Seconds()))))
		}
		return args, nil
	}
	return solveFile(ctx, m, l, path, arguments, readGLPK)
}

// glpkBound matches the bound in a line of progress output, such as "+ 123: mip = 2.1 >= 0.57 72.9% (5; 1)".
var glpkBound = regexp.MustCompile(`(?m)^\+ *\d+: (?:mip =|>>>>>).*>= +(\S+) `)

// readGLPK parses a solution in GLPK's raw format. Its columns are in the order in which the LP file first mentions
// them.
func readGLPK(m *Model, text, log string) (Answer, error) {
	a := Answer{Bound: math.Inf(-1)}
	for _, found := range glpkBound.FindAllStringSubmatch(log, -1) {
		if v, err := strconv.ParseFloat(found[1], 64); err == nil && !math.IsInf(v, 0) {
			a.Bound = v
		}
	}
	order := m.appearance()
	status, ended := "", false
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case f[0] == "s":
			if len(f) != 6 && len(f) != 7 {
				return Answer{}, broken("glpsol", "wrote the status line %q", strings.TrimSpace(line))
			}
			status = f[4]
			if f[1] == "bas" { // a model without integers
				status = map[string]string{"f": "o", "i": "n", "n": "n"}[f[4]]
			}
			a.Objective, _ = strconv.ParseFloat(f[len(f)-1], 64)
			a.Values = make([]float64, len(m.Variables))
		case f[0] == "j":
			if err := readColumn(&a, f, order); err != nil {
				return Answer{}, err
			}
		case f[0] == "e":
			ended = true
		}
	}
	if !ended {
		return Answer{}, broken("glpsol", "wrote a solution that breaks off")
	}
	switch status {
	case "o":
		a.Optimal = true
		return withBound(a), nil
	case "f":
		return a, nil
	case "n":
		return Answer{Infeasible: true}, nil
	case "u":
		a.Values = nil
		return a, nil
	}
	return Answer{}, broken("glpsol", "wrote the unknown status %q", status)
}

// readColumn parses "j COLUMN VALUE" or, for a model without integers, "j COLUMN STATUS VALUE DUAL".
func readColumn(a *Answer, f []string, order []int) error {
	if len(f) < 3 || a.Values == nil {
		return broken("glpsol", "wrote the column %v", f)
	}
	value := f[2]
	if len(f) == 5 {
		value = f[3]
	}
	k, err1 := strconv.Atoi(f[1])
	v, err2 := strconv.ParseFloat(value, 64)
	if err1 != nil || err2 != nil || k < 1 || k > len(order) {
		return broken("glpsol", "wrote the column %v", f)
	}
	a.Values[order[k-1]] = v
	return nil
}

// appearance returns the indexes of the variables in the order in which WriteLP first writes them.
func (m *Model) appearance() []int {
	seen := make([]bool, len(m.Variables))
	order := make([]int, 0, len(m.Variables))
	visit := func(k int) {
		if !seen[k] {
			seen[k] = true
			order = append(order, k)
		}
	}
	for _, t := range m.Objective {
		visit(t.Variable)
	}
	for i := range m.Rows {
		if len(m.Rows[i].Terms) == 0 {
			visit(0)
		}
		for _, t := range m.Rows[i].Terms {
			visit(t.Variable)
		}
	}
	for k := range m.Variables {
		visit(k)
	}
	return order
}

// indexByName returns a map from the names of variables to their indexes.
func (m *Model) indexByName() map[string]int {
	index := make(map[string]int, len(m.Variables))
	for k := range m.Variables {
		index[m.Variables[k].Name] = k
	}
	return index
}

// parseValue parses a number in the output of a solver.
func parseValue(solver, text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) {
		return 0, broken(solver, "wrote the number %q", fmt.Sprintf("%.40s", text))
	}
	return v, nil
}
