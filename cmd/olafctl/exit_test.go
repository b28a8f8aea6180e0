package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/results/store"
)

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, exitDone},
		{errors.New("plain"), exitFailed},
		{usageError("--slots: %w", fpga.ErrRefused), exitUsage},
		{&exitError{kind: olaf.Unknown}, exitUnknown},
		{fmt.Errorf("bench: %w", pcie.ErrChanged), exitDevice},
		{errors.Join(errors.New("close"), olaf.NewError(olaf.Missed, "missed")), exitMissed},
		// What ended the work counts before what broke because of it, but a command may know better.
		{fmt.Errorf("%w: %w", fpga.ErrGone, context.Canceled), exitInterrupted},
		{fmt.Errorf("%w: %w", fpga.ErrGone, context.DeadlineExceeded), exitUnknown},
		{&exitError{olaf.Failed, context.Canceled}, exitFailed},
		// A file that is not there is the user's mistake, unless the program lost it.
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, exitUsage},
		{fmt.Errorf("%w: %w", store.ErrDamaged, fs.ErrNotExist), exitFailed},
		{errors.Join(fs.ErrExist, fpga.ErrGone), exitDevice},
	} {
		if code := exitCode(c.err); code != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, code, c.code)
		}
	}
}
