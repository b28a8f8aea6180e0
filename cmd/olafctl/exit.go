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
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/capture/replay"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/playback"
	"github.com/olafctl/olaf/fpga/remote"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/columns"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/export"
	"github.com/olafctl/olaf/results/store"
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

// exitError carries the code of a command that has already said what is to be said when err is nil.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// codeOfKind maps kinds of errors to exit codes; the first match wins.
var codeOfKind = []struct {
	kind error
	code int
}{
	{context.Canceled, exitInterrupted},
	{context.DeadlineExceeded, exitUnknown},
	{experiments.ErrSpec, exitUsage},
	{experiments.ErrBackend, exitUsage},
	{experiments.ErrUnknown, exitUsage},
	{netsim.ErrTopology, exitUsage},
	{netsim.ErrLong, exitUsage},
	{pktgen.ErrWorkload, exitUsage},
	{rl.ErrConfig, exitUsage},
	{trace.ErrScaling, exitUsage},
	{trace.ErrFormat, exitUsage},
	{trace.ErrVersion, exitUsage},
	{trace.ErrTruncated, exitUsage},
	{trace.ErrInvalid, exitUsage},
	{trace.ErrPayload, exitUsage},
	{columns.ErrFormat, exitFailed}, // of a kept run
	{store.ErrDamaged, exitFailed},
	{store.ErrUnknown, exitUsage},
	{store.ErrIncomplete, exitUsage},
	{store.ErrName, exitUsage},
	{store.ErrNewer, exitUsage},
	{compare.ErrDifferent, exitUsage},
	{experiments.ErrDiffers, exitMissed},
	{archive.ErrMismatch, exitMissed},
	{archive.ErrDocumentOnly, exitUsage},
	{export.ErrExists, exitUsage},
	{engine.ErrConfig, exitUsage},
	{capture.ErrExists, exitUsage},
	{capture.ErrFormat, exitUsage},
	{capture.ErrCut, exitUsage},
	{capture.ErrLink, exitUsage},
	{capture.ErrTime, exitUsage},
	{capture.ErrTimeBackwards, exitUsage},
	{capture.ErrNoOLAF, exitUsage},
	{live.ErrInterface, exitUsage},
	{live.ErrOptions, exitUsage},
	{live.ErrPermission, exitUsage},
	{live.ErrUnsupported, exitUsage},
	{live.ErrGone, exitDevice},
	{replay.ErrTruncated, exitUsage},
	{agent.ErrInsecure, exitUsage},
	{agent.ErrListen, exitUsage},
	{agent.ErrJournal, exitUsage},
	{pktgen.ErrLimit, exitDevice},
	{pktgen.ErrState, exitDevice},
	{pktgen.ErrImage, exitDevice},
	{p4ctl.ErrUnreachable, exitDevice},
	{p4ctl.ErrElectionInUse, exitDevice},
	{experiments.ErrMissed, exitMissed},
	{p4ctl.ErrPreempted, exitDevice},
	{p4ctl.ErrNotPrimary, exitDevice},
	{p4ctl.ErrTables, exitUsage},
	{remote.ErrUnreachable, exitDevice},
	{remote.ErrInUse, exitDevice},
	{remote.ErrProtocol, exitDevice},
	{playback.ErrSession, exitUsage},
	{playback.ErrDiverged, exitMissed},
	{pcie.ErrNoCard, exitDevice},
	{pcie.ErrNotOurs, exitDevice},
	{pcie.ErrBusy, exitDevice},
	{pcie.ErrStale, exitDevice},
	{fpga.ErrGone, exitDevice},
	{fpga.ErrRefused, exitDevice},
	{fpga.ErrAddress, exitDevice},
	{olaf.ErrUnit, exitUsage},
	{fs.ErrExist, exitUsage},
	{fs.ErrNotExist, exitUsage}, // a file that the user named
	{fs.ErrPermission, exitUsage},
	{syscall.EISDIR, exitUsage},
	{syscall.ENOTDIR, exitUsage},
}

func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	for _, k := range codeOfKind {
		if errors.Is(err, k.kind) {
			return k.code
		}
	}
	return exitFailed
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
