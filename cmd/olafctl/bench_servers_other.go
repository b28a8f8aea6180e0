//go:build !linux

package main

import (
	"context"

	"github.com/olafctl/olaf/experiments/testbed/feed"
)

func feedAll(context.Context, *feed.Report, feed.Recorder, func()) error { return errLinux }
