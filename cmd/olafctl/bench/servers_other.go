//go:build !linux

package bench

import (
	"context"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed/feed"
)

func feedAll(context.Context, *feed.Report, feed.Recorder, func()) error { return cli.ErrLinux }
