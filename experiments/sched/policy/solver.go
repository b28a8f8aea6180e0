package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/tempfolder"
)

// Kinds of solver errors; match them with errors.Is.
var (
	// ErrAbsent reports that the program of a solver is not installed.
	ErrAbsent = olaf.NewError(olaf.Failed, "solver not installed")
	// ErrSolver reports that a solver crashed or returned an invalid answer.
	ErrSolver = olaf.NewError(olaf.Failed, "solver failed")
)

// Answer is the answer of a solver for one model.
type Answer struct {
	Infeasible bool
	Values     []float64 // best point found, by variable; nil if there is none
	Objective  float64   // objective at that point, by the solver
	Bound      float64   // lower bound by the solver; −Inf if there is none
	Optimal    bool      // the solver found no better point within the requested gap
}

// Limits limits the time and the precision of a search.
type Limits struct {
	Time time.Duration // 0 for none
	Gap  float64       // relative, between point and bound; 0 for a proof
}

// Solver is a program for mixed integer linear programs.
type Solver interface {
	// Name returns the solver's name for --solver.
	Name() string
	// Find returns an error if the solver is not installed. The error matches ErrAbsent and names the Debian package.
	Find() error
	// Solve minimises a model. After the time limit, it returns the best answer found so far. If ctx ends, it returns
	// an error. Errors match ErrAbsent or ErrSolver, or are the context's.
	Solve(ctx context.Context, m *Model, l Limits) (Answer, error)
}

// Solvers returns the solvers in order of preference.
func Solvers() []Solver { return []Solver{Highs{}, cbc{}, glpk{}} }

// FindSolver returns the solver with the given name or, if the name is empty, the first solver that is installed. The
// error matches ErrAbsent, except for an unknown name.
func FindSolver(name string) (Solver, error) {
	var absent []string
	for _, s := range Solvers() {
		switch {
		case name == s.Name():
			return s, s.Find()
		case name == "":
			err := s.Find()
			if err == nil {
				return s, nil
			}
			absent = append(absent, strings.TrimPrefix(err.Error(), ErrAbsent.Error()+": "))
		}
	}
	if name == "" {
		return nil, fmt.Errorf("%w: %s", ErrAbsent, strings.Join(absent, "; "))
	}
	return nil, fmt.Errorf("there is no solver %q; there are highs, cbc and glpsol", name)
}

// onPath returns the path of a program. The error names the Debian package pack, which contains the program.
func onPath(program, pack string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%w: no %s on PATH (Debian package %s)", ErrAbsent, program, pack)
	}
	return path, nil
}

// grace is the time that a solver may take to report its result after its time limit.
const grace = 10 * time.Second

// maxOutput is the maximum amount of solver output, in bytes, that is stored.
const maxOutput = 256 << 20

// capped is a buffer whose Write fails after too much output.
type capped struct{ bytes.Buffer }

func (b *capped) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxOutput {
		return 0, io.ErrShortWrite
	}
	return b.Buffer.Write(p)
}

// command runs the program of a solver and returns its output. It stops a program that does not end in time and returns
// an error.
func command(ctx context.Context, l Limits, stdin io.Reader, program string, args ...string) (string, error) {
	limited := ctx
	if l.Time > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, l.Time+grace)
		defer cancel()
	}
	cmd := exec.CommandContext(limited, program, args...)
	cmd.WaitDelay = time.Second
	cmd.Stdin = stdin
	var stdout, stderr capped
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case limited.Err() != nil:
		return "", fmt.Errorf("%w: %s did not end %v after its time limit", ErrSolver, filepath.Base(program), grace)
	case err != nil:
		return "", fmt.Errorf("%w: %s ended with %w and said %q", ErrSolver, filepath.Base(program), err,
			lastLine(stderr.String()+stdout.String()))
	}
	return stdout.String(), nil
}

// lastLine returns the last line in the output of a program. It is used in messages.
func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	if len(last) > 160 {
		last = last[:160] + "…"
	}
	return last
}

// solveFile solves a model with the program at path, which reads an LP file and writes its solution to a file. Both are
// in a temporary folder. arguments returns the program's arguments for the two files. read parses the solution and the
// program's output.
func solveFile(ctx context.Context, m *Model, l Limits, path string,
	arguments func(model, solution string) ([]string, error),
	read func(m *Model, text, log string) (Answer, error)) (answer Answer, err error) {
	folder, remove, err := tempfolder.MakeFolder()
	if err != nil {
		return Answer{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	model, solution := filepath.Join(folder, "model.lp"), filepath.Join(folder, "solution.txt")
	var lp bytes.Buffer
	if err := m.WriteLP(&lp); err != nil {
		return Answer{}, err
	}
	if err := os.WriteFile(model, lp.Bytes(), 0o600); err != nil {
		return Answer{}, err
	}
	args, err := arguments(model, solution)
	if err != nil {
		return Answer{}, err
	}
	out, err := command(ctx, l, nil, path, args...)
	if err != nil {
		return Answer{}, err
	}
	text, err := os.ReadFile(solution)
	if err != nil {
		return Answer{}, broken(filepath.Base(path), "wrote no solution and said %q", lastLine(out))
	}
	return read(m, string(text), out)
}

// broken returns the error for an answer that cannot be parsed.
func broken(solver, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrSolver, solver, fmt.Sprintf(format, args...))
}

// withBound adds the missing bound to the answer for an optimal point. The point's objective is the bound.
func withBound(a Answer) Answer {
	if a.Optimal && math.IsInf(a.Bound, -1) {
		a.Bound = a.Objective
	}
	return a
}
