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
	ExitUsage       = 2   // invalid flags, files or names
	ExitDevice      = 3   // the device rejected a request, is gone, or was taken over by another controller
	ExitMissed      = 4   // an expectation was missed or a property violated
	ExitUnknown     = 5   // no answer within the time limit
	ExitInterrupted = 130 // Ctrl-C or a signal
)

// exitCodes maps every kind of failure to its exit code.
var exitCodes = map[olaf.Kind]int{
	olaf.Failed:      ExitFailed,
	olaf.Usage:       ExitUsage,
	olaf.Device:      ExitDevice,
	olaf.Missed:      ExitMissed,
	olaf.Unknown:     ExitUnknown,
	olaf.Interrupted: ExitInterrupted,
}

// Exit is an error with a kind that overrides the kinds of the errors that it wraps. If Err is nil, the command has
// already printed the reason.
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

// UsageError returns an error about the user's input.
func UsageError(format string, args ...any) error {
	return &Exit{olaf.Usage, fmt.Errorf(format, args...)}
}

// fileErrors lists the system errors about a file that the user named.
var fileErrors = []error{fs.ErrExist, fs.ErrNotExist, fs.ErrPermission, syscall.EISDIR, syscall.ENOTDIR}

// kindOf returns the kind of an error: the kind of an Exit, of an interruption or of a timeout, or else the kind that
// the error declares. An error about a file that the user named is a usage error.
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
	if slices.ContainsFunc(fileErrors, func(kind error) bool { return errors.Is(err, kind) }) {
		return olaf.Usage
	}
	return olaf.Failed
}

// ExitCode returns the process exit code for an error.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	return exitCodes[kindOf(err)]
}

// OneLine joins an error's text into a single line and removes repeated parts.
func OneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// ErrorLines returns the lines to print for an error: one line, or a line for each member of an olaf.List. Each line
// has its own remedy.
func ErrorLines(err error) []string {
	var list olaf.List
	if !errors.As(err, &list) || list.Error() != err.Error() { // the error adds text to the list
		return []string{OneLine(err)}
	}
	return olaf.Map(list, OneLine)
}

// ShortenInterrupt reduces the error of an interrupted command to "interrupted" if nothing has been printed.
func ShortenInterrupt(ctx context.Context, err error) error {
	var told *Exit
	if ctx.Err() == nil || errors.As(err, &told) || !errors.Is(err, context.Canceled) &&
		p4ctl.Code(err) != codes.Canceled {
		return err
	}
	return &Exit{olaf.Interrupted, errors.New("interrupted")}
}

// MarkInterrupted returns the error for an interrupted command whose output is partial. It returns other errors
// unchanged.
func MarkInterrupted(err error) error {
	return markCanceled(err, "interrupted; what is shown is partial")
}

// MarkGeneratorInterrupted is like MarkInterrupted for a command that also stopped the generator on a device.
func MarkGeneratorInterrupted(err error) error {
	return markCanceled(err, "interrupted; the generator is stopped, and what is shown is partial")
}

// MarkNothingToShow is like MarkInterrupted for a command that was interrupted before its first run was complete.
func MarkNothingToShow(err error) error {
	return markCanceled(err, "interrupted before the first run was complete; there is nothing to show")
}

func markCanceled(err error, message string) error {
	if errors.Is(err, context.Canceled) {
		return &Exit{olaf.Interrupted, errors.New(message)}
	}
	return err
}
