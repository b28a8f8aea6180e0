package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
)

// canReal reports whether this process may create namespaces and load programs.
func canReal() bool {
	return netlab.CheckRights(slices.Concat(netlab.NamespaceRights, netlab.PacketRights, xdp.LoadRights)...) == nil
}

// TestInterruptedDemo checks the message of a demo that is interrupted before it has results.
func TestInterruptedDemo(t *testing.T) {
	if !canReal() {
		t.Skip("without the rights to make namespaces and load programs")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var stdout, stderr bytes.Buffer
	code := run(ctx, testEnvironment(&stdout, &stderr), []string{"testbed", "demo", "--short"})
	if code != cli.ExitInterrupted || stdout.Len() > 0 || !strings.Contains(stderr.String(), "there is nothing to show") {
		t.Errorf("%d: %s%s", code, &stdout, &stderr)
	}
}
