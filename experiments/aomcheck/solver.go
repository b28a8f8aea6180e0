package aomcheck

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/olafctl/olaf"
)

// Kinds of solver errors; match them with errors.Is.
var (
	// ErrAbsent reports that the solver's program is not on PATH.
	ErrAbsent = olaf.NewError(olaf.Failed, "solver not installed")
	// ErrSolver reports that a solver crashed or gave an invalid answer.
	ErrSolver = olaf.NewError(olaf.Failed, "solver failed")
	// ErrDisagree reports that one solver found a script satisfiable and another did not.
	ErrDisagree = olaf.NewError(olaf.Failed, "solvers disagree")
)

// Status is a solver's answer.
type Status int

const (
	// unknownStatus means that the solver had no answer within the time limit or printed "unknown".
	unknownStatus Status = iota
	satStatus
	unsatStatus
)

func (s Status) String() string { return [...]string{"unknown", "sat", "unsat"}[s] }

// Solver is a program that reads SMT-LIB 2 from standard input or from a file named in its last argument.
type Solver struct {
	Name    string   // z3 or cvc5, for messages
	Program string   // executable, looked up on PATH
	Args    []string // make the program read standard input
	Package string   // Debian package
}

// Z3 returns the z3 solver. It uses z3's older simplex, which takes about half as long as the default one on these
// scripts (docs/guide/proofs.md).
func Z3() Solver {
	return Solver{Name: "z3", Program: "z3", Args: []string{"-smt2", "-in", "smt.arith.solver=2"}, Package: "z3"}
}

// cvc5 returns the cvc5 solver.
func cvc5() Solver {
	return Solver{Name: "cvc5", Program: "cvc5", Args: []string{"--lang=smt2", "--quiet"}, Package: "cvc5"}
}

// solverAnswer is a solver's answer to one script.
type solverAnswer struct {
	Status Status
	Solver string
	Wall   time.Duration
	// Values contains the reported variables of a satisfiable script: *big.Rat in the script's unit, or bool.
	Values map[string]any
}

// Find looks up the program on PATH. The error names its Debian package.
func (v Solver) Find() (string, error) {
	path, err := exec.LookPath(v.Program)
	if err != nil {
		return "", fmt.Errorf("%w: no %s on PATH (Debian package %s)", ErrAbsent, v.Program, v.Package)
	}
	return path, nil
}

// Run runs the solver on the script. If ctx ends first, the status is Unknown. The error matches ErrAbsent or
// ErrSolver.
func (v Solver) Run(ctx context.Context, script []byte) (solverAnswer, error) {
	answer := solverAnswer{Solver: v.Name}
	path, err := v.Find()
	if err != nil {
		return answer, err
	}
	start := time.Now()
	cmd := exec.CommandContext(ctx, path, v.Args...)
	cmd.WaitDelay = time.Second
	cmd.Stdin = bytes.NewReader(script)
	var stdout, stderr cappedBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	runErr := cmd.Run()
	answer.Wall = time.Since(start)
	if ctx.Err() != nil {
		return answer, nil
	}
	status, rest, ok := verdict(stdout.String())
	if !ok {
		return answer, fmt.Errorf("%w: %s %s", ErrSolver, v.Name, complaint(stdout.String(), stderr.String(), runErr))
	}
	answer.Status = status
	// After unsat, both solvers report an error for the value query and exit with an error status, but the verdict is
	// valid.
	if status == satStatus && strings.TrimSpace(rest) != "" {
		if answer.Values, err = parseValues(rest); err != nil {
			return answer, fmt.Errorf("%w: %s said sat, but %w", ErrSolver, v.Name, err)
		}
	}
	return answer, nil
}

// verdict parses the first word of the output as a status. Error messages before it are not an answer.
func verdict(out string) (Status, string, bool) {
	word, rest, _ := strings.Cut(strings.TrimLeft(out, " \t\r\n"), "\n")
	switch strings.TrimSpace(word) {
	case "sat":
		return satStatus, rest, true
	case "unsat":
		return unsatStatus, rest, true
	case "unknown", "timeout":
		return unknownStatus, rest, true
	}
	return unknownStatus, "", false
}

func complaint(stdout, stderr string, runErr error) string {
	answer := cmp.Or(strings.TrimSpace(stdout), strings.TrimSpace(stderr))
	answer, _, _ = strings.Cut(answer, "\n")
	if len(answer) > 120 {
		answer = answer[:120] + "…"
	}
	switch {
	case runErr != nil && answer != "":
		return fmt.Sprintf("ended with %v and said %q", runErr, answer)
	case runErr != nil:
		return fmt.Sprintf("ended with %v and said nothing", runErr)
	}
	return fmt.Sprintf("said %q instead of sat or unsat", answer)
}

// cappedBuffer stores as much output as a solver's model can need and drops the rest.
type cappedBuffer struct{ bytes.Buffer }

const maxOutput = 64 << 20

func (b *cappedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxOutput {
		return 0, io.ErrShortWrite
	}
	return b.Buffer.Write(p)
}

// askFirst runs all solvers in parallel, returns the first definite answer, and stops the other solvers. The error of a
// solver is ignored if another solver answers. The answer is Unknown if all solvers ran out of time. If no solver
// answered, askFirst returns an error.
func askFirst(ctx context.Context, solvers []Solver, script []byte) (solverAnswer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var unknown *solverAnswer
	var failed error
	for r := range runAll(ctx, solvers, script) {
		switch {
		case r.err != nil:
			failed = errors.Join(failed, r.err)
		case r.answer.Status != unknownStatus:
			return r.answer, nil
		default:
			unknown = &r.answer
		}
	}
	if unknown != nil {
		return *unknown, nil
	}
	return solverAnswer{}, failed
}

// askAll runs all solvers to completion. If two of them give contradictory answers, the error matches ErrDisagree.
func askAll(ctx context.Context, solvers []Solver, script []byte) (solverAnswer, error) {
	var best solverAnswer
	for r := range runAll(ctx, solvers, script) {
		if r.err != nil {
			return solverAnswer{}, r.err
		}
		if r.answer.Status == unknownStatus {
			continue
		}
		if best.Status != unknownStatus && best.Status != r.answer.Status {
			return solverAnswer{}, fmt.Errorf("%w: %s says %v, %s says %v", ErrDisagree,
				best.Solver, best.Status, r.answer.Solver, r.answer.Status)
		}
		if best.Status == unknownStatus {
			best = r.answer
		} else {
			best.Solver += "+" + r.answer.Solver
			best.Wall = max(best.Wall, r.answer.Wall)
		}
	}
	return best, nil
}

type result struct {
	answer solverAnswer
	err    error
}

func runAll(ctx context.Context, solvers []Solver, script []byte) <-chan result {
	// The channel has room for every result, so that a stopped solver never blocks.
	results := make(chan result, len(solvers))
	var running sync.WaitGroup
	for _, v := range solvers {
		running.Go(func() {
			a, err := v.Run(ctx, script)
			results <- result{a, err}
		})
	}
	go func() {
		running.Wait()
		close(results)
	}()
	return results
}
