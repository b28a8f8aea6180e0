package aomcheck

import (
	"context"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fake writes a shell script that replaces a solver.
func fake(t *testing.T, name, body string) Solver {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Solver{Name: name, Program: path, Package: name}
}

func TestSolverAnswers(t *testing.T) {
	tests := []struct {
		name, body string
		want       Status
		err        error
	}{
		{"sat without values", "echo sat", satStatus, nil},
		{"sat with values", "echo sat; echo '((x (/ 1.0 3.0)) (y (- 2)) (z (- (/ 1 2))) (b true))'", satStatus, nil},
		{"unsat, then an error about values", "echo unsat; echo '(error \"no model\")'; exit 1", unsatStatus, nil},
		{"its own unknown", "echo unknown", unknownStatus, nil},
		{"hangs", "exec sleep 30", unknownStatus, nil},
		{"dies silently", "exit 139", unknownStatus, ErrSolver},
		{"dies by a signal", "kill -9 $$", unknownStatus, ErrSolver},
		{"complains", "echo '(error \"line 3: unknown constant\")'; exit 1", unknownStatus, ErrSolver},
		{"talks nonsense", "echo maybe", unknownStatus, ErrSolver},
		{"says nothing", "true", unknownStatus, ErrSolver},
		{"answers after an error", "echo '(error \"ignored line\")'; echo unsat", unknownStatus, ErrSolver},
		{"cuts its values short", "echo sat; echo '((x 1.0)'", unknownStatus, ErrSolver},
		{"has values that are no numbers", "echo sat; echo '((x 1e999999999))'", unknownStatus, ErrSolver},
		{"divides by zero", "echo sat; echo '((x (/ 1 0)))'", unknownStatus, ErrSolver},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if tt.name == "hangs" {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			}
			defer cancel()
			got, err := fake(t, "solver", tt.body).Run(ctx, []byte("(check-sat)\n"))
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if err == nil && got.Status != tt.want {
				t.Errorf("status %v, want %v", got.Status, tt.want)
			}
			if tt.name == "sat with values" {
				if x := got.Values["x"].(*big.Rat); x.RatString() != "1/3" || got.Values["b"] != true || got.Values["z"].(*big.Rat).RatString() != "-1/2" {
					t.Errorf("values %v", got.Values)
				}
			}
		})
	}
}

func TestAbsentSolverNamesThePackage(t *testing.T) {
	_, err := Solver{Name: "z3", Program: "no-such-solver-here", Package: "z3"}.Run(t.Context(), nil)
	if !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "Debian package z3") {
		t.Errorf("got %v", err)
	}
}

func TestPortfolio(t *testing.T) {
	slow, quick, broken := fake(t, "slow", "exec sleep 600"), fake(t, "quick", "echo unsat"), fake(t, "broken", "exit 1")
	yes := fake(t, "yes", "echo sat")
	start := time.Now()
	if a, err := askFirst(t.Context(), []Solver{slow, quick}, nil); err != nil || a.Status != unsatStatus || a.Solver != "quick" {
		t.Errorf("first of slow and quick: %v, %v", a, err)
	}
	if time.Since(start) > 5*time.Minute {
		t.Error("the slow solver was waited for")
	}
	if a, err := askFirst(t.Context(), []Solver{broken, quick}, nil); err != nil || a.Status != unsatStatus {
		t.Errorf("first of broken and quick: %v, %v", a, err)
	}
	if _, err := askFirst(t.Context(), []Solver{broken, broken}, nil); !errors.Is(err, ErrSolver) {
		t.Errorf("two broken solvers: %v", err)
	}
	if _, err := askAll(t.Context(), []Solver{yes, quick}, nil); !errors.Is(err, ErrDisagree) {
		t.Errorf("sat and unsat: %v", err)
	}
	if a, err := askAll(t.Context(), []Solver{quick, quick}, nil); err != nil || a.Status != unsatStatus || a.Solver != "quick+quick" {
		t.Errorf("two that agree: %v, %v", a, err)
	}
}

// TestScriptText checks the text of a dump: units, named assertions, decimals, and no comparisons that the ranges
// decide.
func TestScriptText(t *testing.T) {
	s := &Script{TickPS: 100_000_000, UnitPS: 1_000_000_000, Unit: "ms"} // ticks of 0.1 ms
	x := s.Real("x", 0, 20)
	y := s.Real("y", 5, 30)
	s.Report("x")
	s.Assert("decided by the ranges", s.Le(x, y.Shift(15)))
	s.Assert("open", implies(s.Lt(x, y), s.Eq(y.Times(2).Minus(x), makeConstant(-3))))
	want := `; all times are in ms
(set-option :produce-models true)
(set-logic QF_LRA)
(declare-const x Real)
(declare-const y Real)
(assert (! (and (<= 0.0 x) (<= x 2.0)) :named |1 range x|))
(assert (! (and (<= 0.5 y) (<= y 3.0)) :named |2 range y|))
(assert (! (=> (< (+ x (- y)) 0.0) (= (+ (- x) (* 2.0 y)) (- 0.3))) :named |3 open|))
(check-sat)
(get-value (x))
`
	if string(s.Text()) != want {
		t.Errorf("got\n%s", s.Text())
	}
}

func FuzzParseValues(f *testing.F) {
	for _, seed := range []string{"((x (/ 1.0 3.0)) (y true))", "()", "((x (- (/ 7 2))))", "((((", "((x 1.0) y)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := parseValues(text)
		if err == nil && values == nil {
			t.Error("neither values nor an error")
		}
	})
}
