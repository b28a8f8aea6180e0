package milp

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
	// ErrAbsent says that a solver's program is not installed.
	ErrAbsent = olaf.NewError(olaf.Failed, "solver not installed")
	// ErrSolver says that a solver died, or answered something that is no answer or is not true.
	ErrSolver = olaf.NewError(olaf.Failed, "solver failed")
)

// Answer is what a solver says of a model.
type Answer struct {
	Infeasible bool
	Values     []float64 // of the best point found, by variable; nil where none was found
	Objective  float64   // of that point, as the solver says
	Bound      float64   // no point is below it, as the solver says; −Inf where it says nothing
	Optimal    bool      // the solver says that no point is better, within the gap that was asked for
}

// Limits are what a search may cost and how near it has to come.
type Limits struct {
	Time time.Duration // 0 for none
	Gap  float64       // relative, between point and bound; 0 for a proof
}

// Solver is a program for mixed integer linear programs.
type Solver interface {
	// Name is what --solver calls it.
	Name() string
	// Find says whether it is there; the error matches ErrAbsent and names the Debian package.
	Find() error
	// Solve asks for the least of a model. After the time limit, or when ctx ends, the answer is what was found by then;
	// ctx ending is an error. The error matches ErrAbsent, ErrSolver, or is ctx's.
	Solve(ctx context.Context, m *Model, l Limits) (Answer, error)
}

// Solvers lists the solvers in the order in which they are looked for.
func Solvers() []Solver { return []Solver{Highs{}, CBC{}, GLPK{}} }

// Find is the named solver, or for an empty name the first that is there. The error matches ErrAbsent, or is plain where
// there is no such solver.
func Find(name string) (Solver, error) {
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

// onPath looks a program up.
func onPath(program, pack string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%w: no %s on PATH (Debian package %s)", ErrAbsent, program, pack)
	}
	return path, nil
}

// grace is how long after its time limit a solver may take to say what it found.
const grace = 10 * time.Second

// maxOutput is how much of what a solver prints is kept.
const maxOutput = 256 << 20

// capped keeps what an answer needs and stops a program that never stops talking.
type capped struct{ bytes.Buffer }

func (b *capped) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxOutput {
		return 0, io.ErrShortWrite
	}
	return b.Buffer.Write(p)
}

// command runs a solver's program and returns what it printed. A program that does not end in time is stopped and failed.
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
		return "", fmt.Errorf("%w: %s ended with %w and said %q", ErrSolver, filepath.Base(program), err, said(stderr.String()+stdout.String()))
	}
	return stdout.String(), nil
}

// said is the last line of a program's output, for a message.
func said(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	if len(last) > 160 {
		last = last[:160] + "…"
	}
	return last
}

// inFolder writes the model into a folder of its own, which is gone afterwards, and runs f with the paths of the model and
// of the solution that is to be written.
func inFolder(m *Model, f func(model, solution string) error) (err error) {
	folder, remove, err := tempfolder.Make()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	model := filepath.Join(folder, "model.lp")
	var text bytes.Buffer
	if err := m.WriteLP(&text); err != nil {
		return err
	}
	if err := os.WriteFile(model, text.Bytes(), 0o600); err != nil {
		return err
	}
	return f(model, filepath.Join(folder, "solution.txt"))
}

// broken makes the error of an answer that can't be read.
func broken(solver, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrSolver, solver, fmt.Sprintf(format, args...))
}

// judged completes an answer: an optimal point without a bound is its own.
func judged(a Answer) Answer {
	if a.Optimal && math.IsInf(a.Bound, -1) {
		a.Bound = a.Objective
	}
	return a
}
