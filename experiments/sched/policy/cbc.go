package policy

import (
	"context"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// cbc is a Solver that runs COIN-OR's branch-and-cut solver.
type cbc struct{}

// Name returns the name of CBC's program.
func (cbc) Name() string { return "cbc" }

// Find checks that CBC's program is installed.
func (cbc) Find() error {
	_, err := onPath("cbc", "coinor-cbc")
	return err
}

// Solve implements Solver.
func (s cbc) Solve(ctx context.Context, m *Model, l Limits) (Answer, error) {
	path, err := onPath("cbc", "coinor-cbc")
	if err != nil {
		return Answer{}, err
	}
	arguments := func(model, solution string) ([]string, error) {
		args := []string{model, "timeMode", "elapsed", "ratioGap", formatNumber(l.Gap), "allowableGap", "0"}
		if l.Time > 0 {
			args = append(args, "seconds", strconv.FormatFloat(l.Time.Seconds(), 'f', 3, 64))
		}
		return append(args, "solve", "solution", solution), nil
	}
	return solveFile(ctx, m, l, path, arguments, readCBC)
}

var cbcBound = regexp.MustCompile(`(?m)^Lower bound: +(\S+)`)

// readCBC parses a solution file. The file has one line with the status and one line for each variable that is not 0,
// with number, name, value and reduced cost. A value that violates a bound has ** before it.
func readCBC(m *Model, text, log string) (Answer, error) {
	a := Answer{Bound: math.Inf(-1)}
	if found := cbcBound.FindStringSubmatch(log); found != nil {
		v, err := parseValue("cbc", found[1])
		if err != nil {
			return Answer{}, err
		}
		a.Bound = v
	}
	status, rest, _ := strings.Cut(text, "\n")
	what, objective, ok := strings.Cut(status, " - objective value ")
	if !ok {
		return Answer{}, broken("cbc", "wrote the status line %q", lastLine(status))
	}
	switch what = strings.TrimSpace(what); {
	case what == "Optimal":
		a.Optimal = true
	case strings.HasPrefix(what, "Infeasible"), strings.HasPrefix(what, "Integer infeasible"):
		return Answer{Infeasible: true}, nil
	case strings.Contains(what, "no integer solution"):
		return a, nil
	case strings.HasPrefix(what, "Stopped on"):
	default:
		return Answer{}, broken("cbc", "wrote the unknown status %q", what)
	}
	var err error
	if a.Objective, err = parseValue("cbc", strings.TrimSpace(objective)); err != nil {
		return Answer{}, err
	}
	index := m.indexByName()
	a.Values = make([]float64, len(m.Variables))
	for line := range strings.Lines(rest) {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "**"))
		if len(f) == 0 {
			continue
		}
		if len(f) < 3 {
			return Answer{}, broken("cbc", "wrote the line %q", lastLine(line))
		}
		k, known := index[f[1]]
		v, err := parseValue("cbc", f[2])
		if !known || err != nil {
			return Answer{}, broken("cbc", "wrote the line %q", lastLine(line))
		}
		a.Values[k] = v
	}
	return withBound(a), nil
}
