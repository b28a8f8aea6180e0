package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/p4ctl"
)

// Exit codes, stable for scripts (docs/reference/output.md).
const (
	ExitDone        = 0
	ExitFailed      = 1   // the run failed or is invalid
	ExitUsage       = 2   // flags, files or names that make no sense
	ExitDevice      = 3   // the device refused, is gone, or another controller took it
	ExitMissed      = 4   // an expectation was missed or a property violated
	ExitUnknown     = 5   // no answer within the time limit
	ExitInterrupted = 130 // Ctrl-C or a signal
)

// exitCodes gives every kind of failure its exit code.
var exitCodes = map[olaf.Kind]int{
	olaf.Failed:      ExitFailed,
	olaf.Usage:       ExitUsage,
	olaf.Device:      ExitDevice,
	olaf.Missed:      ExitMissed,
	olaf.Unknown:     ExitUnknown,
	olaf.Interrupted: ExitInterrupted,
}

// Exit is a command's own verdict, above all kinds of the errors in it. Without Err the command has already said why.
type Exit struct {
	Kind olaf.Kind
	Err  error
}

func (e *Exit) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", exitCodes[e.Kind])
	}
	return e.Err.Error()
}

func (e *Exit) Unwrap() error { return e.Err }

// UsageError formats a mistake of the user's.
func UsageError(format string, args ...any) error {
	return &Exit{olaf.Usage, fmt.Errorf(format, args...)}
}

// named are failures of the system that concern a file which the user named.
var named = []error{fs.ErrExist, fs.ErrNotExist, fs.ErrPermission, syscall.EISDIR, syscall.ENOTDIR}

// kindOf looks for what ended the work first, then for what an error says itself, and only then at what the system said.
func kindOf(err error) olaf.Kind {
	var exit *Exit
	switch {
	case errors.As(err, &exit):
		return exit.Kind
	case errors.Is(err, context.Canceled):
		return olaf.Interrupted
	case errors.Is(err, context.DeadlineExceeded):
		return olaf.Unknown
	}
	if kind, declared := olaf.KindOf(err); declared {
		return kind
	}
	if slices.ContainsFunc(named, func(kind error) bool { return errors.Is(err, kind) }) {
		return olaf.Usage
	}
	return olaf.Failed
}

// ExitCode is what the process ends with.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	return exitCodes[kindOf(err)]
}

// OneLine folds an error into a single line for people. What several steps failed of is said once.
func OneLine(err error) string {
	var said []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}

// Lines are what people are told of an error: one line, or one of each failure where these have remedies of their own.
func Lines(err error) []string {
	var list olaf.List
	if !errors.As(err, &list) || list.Error() != err.Error() { // something is said beside it
		return []string{OneLine(err)}
	}
	var lines []string
	for _, each := range list {
		lines = append(lines, OneLine(each))
	}
	return lines
}

// Stopped says in one word what a signal ended before there was anything to tell of.
func Stopped(ctx context.Context, err error) error {
	var told *Exit
	if ctx.Err() == nil || errors.As(err, &told) || !errors.Is(err, context.Canceled) && p4ctl.Code(err) != codes.Canceled {
		return err
	}
	return &Exit{olaf.Interrupted, errors.New("interrupted")}
}

// Interrupted says in words that a signal ended the work.
func Interrupted(err error) error {
	return interruptedAs(err, "interrupted; what is shown is partial")
}

// GeneratorInterrupted is Interrupted of work in which a generator played on a device.
func GeneratorInterrupted(err error) error {
	return interruptedAs(err, "interrupted; the generator is stopped, and what is shown is partial")
}

// NothingToShow is Interrupted of work of which no run was complete.
func NothingToShow(err error) error {
	return interruptedAs(err, "interrupted before a run was complete; there is nothing to show")
}

func interruptedAs(err error, said string) error {
	if errors.Is(err, context.Canceled) {
		return &Exit{olaf.Interrupted, errors.New(said)}
	}
	return err
}
