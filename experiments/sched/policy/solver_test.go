package policy

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
)

var update = flag.Bool("update", false, "rewrite golden files")

// small returns a problem whose model fits on a page.
func small(t *testing.T) *sched.Problem {
	t.Helper()
	p := three(
		sched.Job{Volume: gigabits(12), Update: 200 * olaf.Millisecond, Workers: map[string]int{"u": 1}, Server: "v"},
		sched.Job{Arrival: olaf.Second, Volume: gigabits(4), Workers: map[string]int{"u": 1, "w": 1}, Server: "v"},
	)
	p.Units[0].INC, p.Units[1].Ports, p.Reconfiguration = 1, 2, 100*olaf.Millisecond
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLPFile compares the model with a golden file.
func TestLPFile(t *testing.T) {
	var got bytes.Buffer
	if err := modelOf(t, small(t), sched.AllRepairs).WriteLP(&got); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/small.lp"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the model is not that of %s; see with -update and git diff", golden)
	}
}

// pretend puts a shell script first in PATH that replaces a solver.
func pretend(t *testing.T, name, script string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

// TestSolverErrors checks the errors for solvers that are absent, broken or wrong.
func TestSolverErrors(t *testing.T) {
	// CBC writes its solution to its last argument.
	writes := func(text string) string { return "for last; do :; done; cat > $last <<'END'\n" + text + "END\n" }
	for name, c := range map[string]struct {
		program, script string
		solver          Solver
		kind            error
		want            string
	}{
		"crashes":   {"cbc", "echo out of memory >&2; exit 3\n", cbc{}, ErrSolver, `cbc ended with exit status 3 and said "out of memory"`},
		"is killed": {"cbc", "kill -9 $$\n", cbc{}, ErrSolver, "cbc ended with signal: killed"},
		"is silent": {"cbc", "exit 0\n", cbc{}, ErrSolver, "cbc wrote no solution"},
		"babbles":   {"cbc", writes("fine, thank you\n"), cbc{}, ErrSolver, `cbc wrote the status line "fine, thank you"`},
		"breaks off": {"glpsol", `while [ "$1" != --write ]; do shift; done; echo 's mip 1 1 o 1' > $2` + "\n", glpk{}, ErrSolver,
			"glpsol wrote a solution that breaks off"},
		"invents variables": {"cbc", writes("Optimal - objective value 1\n0 nobody 1 0\n"), cbc{}, ErrSolver, `cbc wrote the line "0 nobody 1 0"`},
		"says impossible":   {"cbc", writes("Infeasible - objective value 0\n"), cbc{}, ErrSolver, "cbc reports that there is no schedule of 2s, but tw has one"},
		"sends nothing":     {"cbc", writes("Optimal - objective value 1\n0 t_end 1 0\n"), cbc{}, ErrSolver, "cbc answered with a schedule that is none"},
		"bound too high": {"cbc", `echo 'Lower bound: 2.5'` + "\n" + writes("Stopped on time (no integer solution - continuous used) - objective value 0\n"), cbc{}, ErrSolver,
			"cbc reports that no schedule is below 3s, but there is one of 2s"},
		"highs without a status": {"highs", `while [ "$1" != --solution_file ]; do shift; done; echo hello > $2` + "\n", Highs{}, ErrSolver, "highs wrote a solution without a status"},
	} {
		t.Run(name, func(t *testing.T) {
			pretend(t, c.program, c.script)
			_, err := PlanExactly(context.Background(), small(t), ExactOptions{Solver: c.solver, Repairs: sched.AllRepairs, Limits: Limits{Time: time.Minute}})
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAbsentSolvers(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	pythons = []string{"python3"}
	defer func() { pythons = []string{"python3", "/usr/bin/python3"} }()
	for name, want := range map[string]string{
		"cbc":    "no cbc on PATH (Debian package coinor-cbc)",
		"glpsol": "no glpsol on PATH (Debian package glpk-utils)",
		"highs":  "no highs on PATH and no scipy of python3 (Debian package python3-scipy)",
		"":       "(Debian package python3-scipy); no cbc on PATH (Debian package coinor-cbc); no glpsol",
	} {
		if _, err := FindSolver(name); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	if _, err := FindSolver("gurobi"); err == nil || err.Error() != `there is no solver "gurobi"; there are highs, cbc and glpsol` {
		t.Errorf("%v", err)
	}
	for _, s := range Solvers() {
		if _, err := s.Solve(context.Background(), &Model{}, Limits{}); !errors.Is(err, ErrAbsent) {
			t.Errorf("%s: %v", s.Name(), err)
		}
	}
}

// TestCancelledSearchEnds checks that a long search ends if it is cancelled as soon as it has begun.
func TestCancelledSearchEnds(t *testing.T) {
	began := filepath.Join(t.TempDir(), "began")
	if err := exec.Command("mkfifo", began).Run(); err != nil {
		t.Skip(err)
	}
	pretend(t, "cbc", "echo > "+began+"; exec sleep 600\n")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		if _, err := os.ReadFile(began); err != nil {
			t.Error(err)
		}
	}()
	_, err := PlanExactly(ctx, small(t), ExactOptions{Solver: cbc{}, Repairs: sched.AllRepairs})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestTooLargeModelIsRejected checks that a model that is too large is rejected before it is built.
func TestTooLargeModelIsRejected(t *testing.T) {
	p := small(t)
	p.Jobs[1].Arrival = 200 * olaf.Hour
	if _, err := PlanExactly(context.Background(), p, ExactOptions{Solver: glpk{}, Repairs: sched.AllRepairs}); !errors.Is(err, ErrTooBig) {
		t.Error(err)
	}
}

// TestFallbackToPolicyPlan checks that the policy's plan is returned and that the result says so.
func TestFallbackToPolicyPlan(t *testing.T) {
	pretend(t, "cbc", "echo 'Lower bound: 1.2'\nfor last; do :; done\necho 'Stopped on time (no integer solution - continuous used) - objective value 0' > $last\n")
	got, err := PlanExactly(context.Background(), small(t), ExactOptions{Solver: cbc{}, Repairs: sched.AllRepairs})
	if err != nil {
		t.Fatal(err)
	}
	if p := got.Proof; p.Status == sched.Within || p.From != "tw" || p.Bound > got.Outcome.CTBTI || got.Policy.Name != "milp" {
		t.Errorf("%+v", p)
	}
}

// TestExactHorizon checks that the error for a short horizon names one that works.
func TestExactHorizon(t *testing.T) {
	for _, s := range quick(present(t)) {
		_, err := PlanExactly(context.Background(), small(t), ExactOptions{Solver: s, Repairs: sched.AllRepairs, Horizon: 1})
		if !errors.Is(err, ErrInfeasible) || !strings.Contains(err.Error(), "1 slots are too few; the shortest horizon that works is 2") {
			t.Errorf("%s: %v", s.Name(), err)
		}
		if _, err := PlanExactly(context.Background(), small(t), ExactOptions{Solver: s, Repairs: sched.AllRepairs, Horizon: 2}); err != nil {
			t.Errorf("%s: %v", s.Name(), err)
		}
	}
}

// TestSearchPrefersSharedConnections checks that the search finds the plan that shares a connection instead of changing
// it.
func TestSearchPrefersSharedConnections(t *testing.T) {
	p, err := sched.GenerateProblem(func() sched.Workload {
		s := sched.PaperWorkload(8, 3)
		s.Units, s.Ports, s.INC, s.PerSecond = 4, 2, 1, 100
		return s
	}())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range quick(present(t)) {
		o := ExactOptions{Solver: s, Repairs: sched.AllRepairs, Limits: Limits{Time: 20 * time.Second}}
		any, err := PlanExactly(context.Background(), p, o)
		if err != nil {
			t.Fatal(err)
		}
		o.Fewest = true
		few, err := PlanExactly(context.Background(), p, o)
		if err != nil {
			t.Fatal(err)
		}
		if few.Outcome.CTBTI != any.Outcome.CTBTI || few.Outcome.Reconfigurations > any.Outcome.Reconfigurations {
			t.Errorf("%s: %+v, before %+v", s.Name(), few.Outcome, any.Outcome)
		}
		t.Logf("%s: %d reconfigurations, before %d", s.Name(), few.Outcome.Reconfigurations, any.Outcome.Reconfigurations)
	}
}

// TestReaders checks the readers with the files of real solvers.
func TestReaders(t *testing.T) {
	m := &Model{Variables: []Variable{{Name: "a"}, {Name: "b"}}, Objective: []Term{{1, 1}}}
	for name, c := range map[string]struct {
		answer func() (Answer, error)
		want   Answer
	}{
		"glpk, optimal, columns as the file names them": {func() (Answer, error) {
			return readGLPK(m, "c Status:\ns mip 1 2 o 2.5\ni 1 0\nj 1 7\nj 2 8\ne o f\n", "+    58: >>>>>   2.5 >=   2.25 10% (5; 0)\n")
		}, Answer{Values: []float64{8, 7}, Objective: 2.5, Bound: 2.25, Optimal: true}},
		"glpk, a limit": {func() (Answer, error) {
			return readGLPK(m, "s mip 1 2 f 2.5\nj 1 7\nj 2 8\ne o f\n", "+ 9: mip = 3.0 >= -inf (1; 0)\n")
		}, Answer{Values: []float64{8, 7}, Objective: 2.5, Bound: math.Inf(-1)}},
		"glpk, no integers": {func() (Answer, error) {
			return readGLPK(m, "s bas 1 2 f f 2.5\nj 1 b 7 0\nj 2 l 8 1\ne o f\n", "")
		}, Answer{Values: []float64{8, 7}, Objective: 2.5, Bound: 2.5, Optimal: true}},
		"glpk, none": {func() (Answer, error) { return readGLPK(m, "s mip 1 2 n 0\nj 1 0\nj 2 0\ne o f\n", "") }, Answer{Infeasible: true}},
		"cbc, optimal": {func() (Answer, error) {
			return readCBC(m, "Optimal - objective value 2.5\n      0 b  7  0\n**    1 a 8 0\n", "")
		}, Answer{Values: []float64{8, 7}, Objective: 2.5, Bound: 2.5, Optimal: true}},
		"cbc, a limit": {func() (Answer, error) {
			return readCBC(m, "Stopped on time - objective value 2.5\n 0 b 7 0\n", "Lower bound:                    2.000\n")
		}, Answer{Values: []float64{0, 7}, Objective: 2.5, Bound: 2}},
		"cbc, none": {func() (Answer, error) { return readCBC(m, "Integer infeasible - objective value 0\n", "") }, Answer{Infeasible: true}},
		"highs": {func() (Answer, error) {
			return readHighs(m, "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 2.5\n# Columns 2\na 8\nb 7\n# Rows 0\n", "  Dual bound        2.25\n")
		}, Answer{Values: []float64{8, 7}, Objective: 2.5, Bound: 2.25, Optimal: true}},
		"highs, nothing found": {func() (Answer, error) {
			return readHighs(m, "Model status\nTime limit reached\n\n# Primal solution values\nNone\n", "  Dual bound        2.25 (2.25)\n")
		}, Answer{Bound: 2.25}},
		"scipy, a limit": {func() (Answer, error) {
			return readScipy(m, `{"status": 1, "message": "", "objective": 2.5, "bound": 2.25, "values": [8, 7]}`)
		}, Answer{Values: []float64{8, 7}, Objective: 2.5, Bound: 2.25}},
		"scipy, none": {func() (Answer, error) { return readScipy(m, `{"status": 2, "message": "infeasible"}`) }, Answer{Infeasible: true}},
	} {
		got, err := c.answer()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Infeasible != c.want.Infeasible || got.Optimal != c.want.Optimal || got.Objective != c.want.Objective ||
			!c.want.Infeasible && got.Bound != c.want.Bound || len(got.Values) != len(c.want.Values) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
			continue
		}
		for k := range got.Values {
			if got.Values[k] != c.want.Values[k] {
				t.Errorf("%s: %v, want %v", name, got.Values, c.want.Values)
			}
		}
	}
}

// FuzzReaders reads random solver output; an answer has a value for every variable or none.
func FuzzReaders(f *testing.F) {
	f.Add("s mip 1 2 o 2.5\nj 1 7\nj 2 8\ne o f\n", "+ 58: >>>>> 2.5 >= 2.25 10% (5; 0)\n")
	f.Add("Optimal - objective value 2.5\n 0 b 7 0\n", "Lower bound: x\n")
	f.Add("Model status\nOptimal\n# Primal solution values\nFeasible\nObjective 2.5\n# Columns 2\na 8\nb 7\n", "  Dual bound  1\n")
	f.Add(`{"status": 1, "objective": 2.5, "values": [8, 7]}`, "")
	m := &Model{Variables: []Variable{{Name: "a"}, {Name: "b"}}}
	f.Fuzz(func(t *testing.T, text, log string) {
		for _, read := range []func() (Answer, error){
			func() (Answer, error) { return readGLPK(m, text, log) },
			func() (Answer, error) { return readCBC(m, text, log) },
			func() (Answer, error) { return readHighs(m, text, log) },
			func() (Answer, error) { return readScipy(m, text) },
		} {
			a, err := read()
			if err == nil && a.Values != nil && len(a.Values) != len(m.Variables) || err == nil && a.Optimal && a.Values == nil {
				t.Fatalf("%+v", a)
			}
			if err != nil && !errors.Is(err, ErrSolver) {
				t.Fatal(err)
			}
		}
	})
}
