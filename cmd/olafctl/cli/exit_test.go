package cli

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
		{nil, ExitDone},
		{errors.New("plain"), ExitFailed},
		{UsageError("--slots: %w", fpga.ErrRefused), ExitUsage},
		{&Exit{Kind: olaf.Unknown}, ExitUnknown},
		{fmt.Errorf("bench: %w", pcie.ErrChanged), ExitDevice},
		{errors.Join(errors.New("close"), olaf.NewError(olaf.Missed, "missed")), ExitMissed},
		// An interruption comes before the errors it causes, but an Exit overrides both.
		{fmt.Errorf("%w: %w", fpga.ErrGone, context.Canceled), ExitInterrupted},
		{fmt.Errorf("%w: %w", fpga.ErrGone, context.DeadlineExceeded), ExitUnknown},
		{&Exit{olaf.Failed, context.Canceled}, ExitFailed},
		// A missing file is a usage error, unless the program itself lost the file.
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, ExitUsage},
		{fmt.Errorf("%w: %w", store.ErrDamaged, fs.ErrNotExist), ExitFailed},
		{errors.Join(fs.ErrExist, fpga.ErrGone), ExitDevice},
	} {
		if code := ExitCode(c.err); code != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, code, c.code)
		}
	}
}
