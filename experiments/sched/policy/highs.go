package policy

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Highs is a Solver that runs HiGHS. It uses HiGHS's own program if that is installed, and otherwise the version in
// scipy.
type Highs struct{}

// Name returns the name of HiGHS's program.
func (Highs) Name() string { return "highs" }

//go:embed highs.py
var script string

// pythons lists the Python interpreters in the order in which they are tried. The first on PATH may lack scipy while
// the system's interpreter has it.
var pythons = []string{"python3", "/usr/bin/python3"}

// findPython returns a Python interpreter that has scipy.optimize.milp, which needs scipy 1.9 or newer. The error
// matches ErrAbsent.
func findPython() (string, error) {
	for _, name := range pythons {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if exec.Command(path, "-c", script, "version").Run() == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: no highs on PATH and no scipy of python3 (Debian package python3-scipy)", ErrAbsent)
}

// hasProgram reports whether HiGHS's own program is installed.
func (Highs) hasProgram() bool {
	_, err := exec.LookPath("highs")
	return err == nil
}

// Find checks that HiGHS's own program or scipy is installed.
func (s Highs) Find() error {
	if s.hasProgram() {
		return nil
	}
	_, err := findPython()
	return err
}

// Solve implements Solver.
func (s Highs) Solve(ctx context.Context, m *Model, l Limits) (Answer, error) {
	if path, err := exec.LookPath("highs"); err == nil {
		return s.program(ctx, path, m, l)
	}
	answers, err := s.SolveAll(ctx, []*Model{m}, l)
	if err != nil {
		return Answer{}, err
	}
	return answers[0], nil
}

// program solves m with HiGHS's own program.
func (s Highs) program(ctx context.Context, path string, m *Model, l Limits) (Answer, error) {
	arguments := func(model, solution string) ([]string, error) {
		options := solution + ".options"
		text := fmt.Sprintf("mip_rel_gap = %s\nmip_abs_gap = 0\nthreads = 1\nlog_file = %s\n", formatNumber(l.Gap), solution+".log")
		if l.Time > 0 {
			text += fmt.Sprintf("time_limit = %s\n", formatNumber(l.Time.Seconds()))
		}
		return []string{"--options_file", options, "--solution_file", solution, model},
			os.WriteFile(options, []byte(text), 0o600)
	}
	return solveFile(ctx, m, l, path, arguments, readHighs)
}

var highsBound = regexp.MustCompile(`(?m)^ +Dual bound +(\S+)`)

// readHighs parses a solution file that HiGHS wrote. The file contains the status of the model, "# Primal solution
// values", "Feasible", "Objective VALUE", "# Columns N", and a line with name and value for each variable.
func readHighs(m *Model, text, log string) (Answer, error) {
	a := Answer{Bound: math.Inf(-1)}
	if found := highsBound.FindStringSubmatch(log); found != nil {
		if v, err := strconv.ParseFloat(found[1], 64); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
			a.Bound = v
		}
	}
	head, rest, _ := strings.Cut(text, "# Primal solution values")
	_, status, ok := strings.Cut(head, "Model status")
	if !ok {
		return Answer{}, broken("highs", "wrote a solution without a status")
	}
	switch status = strings.TrimSpace(status); status {
	case "Optimal":
		a.Optimal = true
	case "Infeasible", "Primal infeasible or unbounded":
		return Answer{Infeasible: true}, nil
	case "Time limit reached", "Iteration limit reached", "Solution limit reached", "Interrupted by user":
	default:
		return Answer{}, broken("highs", "wrote the unknown status %q", lastLine(status))
	}
	lines := strings.Split(strings.TrimSpace(rest), "\n")
	if len(lines) < 2 || strings.TrimSpace(lines[0]) != "Feasible" {
		if a.Optimal {
			return Answer{}, broken("highs", "reports optimal and wrote no point")
		}
		return a, nil
	}
	objective, ok := strings.CutPrefix(lines[1], "Objective ")
	v, err := parseValue("highs", strings.TrimSpace(objective))
	if !ok || err != nil {
		return Answer{}, broken("highs", "wrote the objective %q", lastLine(lines[1]))
	}
	a.Objective = v
	if a.Values, err = highsColumns(m, lines[2:]); err != nil {
		return Answer{}, err
	}
	return withBound(a), nil
}

func highsColumns(m *Model, lines []string) ([]float64, error) {
	if len(lines) < 1+len(m.Variables) || !strings.HasPrefix(lines[0], "# Columns") {
		return nil, broken("highs", "wrote a solution that breaks off")
	}
	index, values := m.indexByName(), make([]float64, len(m.Variables))
	for _, line := range lines[1 : 1+len(m.Variables)] {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		k, known := index[name]
		v, err := parseValue("highs", strings.TrimSpace(number))
		if !known || err != nil {
			return nil, broken("highs", "wrote the line %q", lastLine(line))
		}
		values[k] = v
	}
	return values, nil
}

// document is a model in the JSON format that highs.py reads. Infinities are strings, because JSON cannot represent
// them.
type document struct {
	Cost    []float64 `json:"cost"`
	Values  []float64 `json:"values"`
	Columns []int     `json:"columns"`
	Starts  []int     `json:"starts"`
	Low     []string  `json:"low"`
	High    []string  `json:"high"`
	Lower   []string  `json:"lower"`
	Upper   []string  `json:"upper"`
	Integer []int     `json:"integer"`
	Gap     float64   `json:"gap"`
	Seconds float64   `json:"seconds"`
}

func documentOf(m *Model, l Limits) document {
	d := document{Cost: make([]float64, len(m.Variables)), Starts: []int{0}, Gap: l.Gap, Seconds: l.Time.Seconds(),
		Values: []float64{}, Columns: []int{}}
	for _, t := range m.Objective {
		d.Cost[t.Variable] += t.Coefficient
	}
	for i := range m.Variables {
		v := &m.Variables[i]
		integer := 0
		if v.Integer {
			integer = 1
		}
		d.Lower, d.Upper, d.Integer = append(d.Lower, formatNumber(v.Lower)), append(d.Upper, formatNumber(v.Upper)), append(d.Integer, integer)
	}
	for i := range m.Rows {
		r := &m.Rows[i]
		for _, t := range r.Terms {
			d.Values, d.Columns = append(d.Values, t.Coefficient), append(d.Columns, t.Variable)
		}
		d.Starts = append(d.Starts, len(d.Values))
		low, high := "-inf", "inf"
		if r.Sense != AtMost {
			low = formatNumber(r.Right)
		}
		if r.Sense != AtLeast {
			high = formatNumber(r.Right)
		}
		d.Low, d.High = append(d.Low, low), append(d.High, high)
	}
	return d
}

// answered is one line in the output of highs.py.
type answered struct {
	Status    int       `json:"status"`
	Message   string    `json:"message"`
	Objective *float64  `json:"objective"`
	Bound     *float64  `json:"bound"`
	Values    []float64 `json:"values"`
}

// SolveAll solves several models in a single run of scipy, whose start takes longer than solving a small model.
func (s Highs) SolveAll(ctx context.Context, models []*Model, l Limits) ([]Answer, error) {
	path, err := findPython()
	if err != nil {
		return nil, err
	}
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, m := range models {
		if err := enc.Encode(documentOf(m, l)); err != nil {
			return nil, err
		}
	}
	all := l
	all.Time *= time.Duration(len(models))
	out, err := command(ctx, all, &in, path, "-c", script)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(models) {
		return nil, broken("scipy", "answered %d of %d models", len(lines), len(models))
	}
	answers := make([]Answer, len(models))
	for i, line := range lines {
		if answers[i], err = readScipy(models[i], line); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// readScipy parses one answer from highs.py. The status is 0 for an optimal solution, 1 for a limit, and 2 for an
// infeasible model.
func readScipy(m *Model, line string) (Answer, error) {
	var got answered
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		return Answer{}, broken("scipy", "answered %q", lastLine(line))
	}
	a := Answer{Bound: math.Inf(-1), Optimal: got.Status == 0}
	switch {
	case got.Status == 2:
		return Answer{Infeasible: true}, nil
	case got.Status != 0 && got.Status != 1:
		return Answer{}, broken("scipy", "failed: %s", lastLine(got.Message))
	case got.Values != nil && (len(got.Values) != len(m.Variables) || got.Objective == nil), got.Values == nil && a.Optimal:
		return Answer{}, broken("scipy", "answered with %d of %d values", len(got.Values), len(m.Variables))
	}
	if got.Bound != nil {
		a.Bound = *got.Bound
	}
	if a.Values = got.Values; a.Values != nil {
		a.Objective = *got.Objective
	}
	return withBound(a), nil
}
