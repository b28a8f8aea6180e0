package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/olafctl/olaf"
)

// Exit codes, stable for scripts (docs/output.md).
const (
	exitDone        = 0
	exitFailed      = 1   // the run failed or is invalid
	exitUsage       = 2   // flags, files or names that make no sense
	exitDevice      = 3   // the device refused, is gone, or another controller took it
	exitMissed      = 4   // an expectation was missed or a property violated
	exitUnknown     = 5   // no answer within the time limit
	exitInterrupted = 130 // Ctrl-C or a signal
)

// exitCodes gives every kind of failure its exit code.
var exitCodes = map[olaf.Kind]int{
	olaf.Failed:      exitFailed,
	olaf.Usage:       exitUsage,
	olaf.Device:      exitDevice,
	olaf.Missed:      exitMissed,
	olaf.Unknown:     exitUnknown,
	olaf.Interrupted: exitInterrupted,
}

// exitError is a command's own verdict, above all kinds of the errors in it. Without err the command has already said why.
type exitError struct {
	kind olaf.Kind
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", exitCodes[e.kind])
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{olaf.Usage, fmt.Errorf(format, args...)}
}

// named are failures of the system that concern a file which the user named.
var named = []error{fs.ErrExist, fs.ErrNotExist, fs.ErrPermission, syscall.EISDIR, syscall.ENOTDIR}

// kindOf looks for what ended the work first, then for what an error says itself, and only then at what the system said.
func kindOf(err error) olaf.Kind {
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.kind
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

func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	return exitCodes[kindOf(err)]
}

// oneLine folds an error into a single line for people. What several steps failed of is said once.
func oneLine(err error) string {
	var said []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}
