//go:build !linux

package bench

import (
	"context"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed/saturate"
)

func feedAll(context.Context, *saturate.Report, saturate.Recorder, func()) error { return cli.ErrLinux }
