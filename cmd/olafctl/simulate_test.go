package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// TestInterruptBeforeFirstResult checks that without results no partial result is announced, and that the folder for
// captures is removed.
func TestInterruptBeforeFirstResult(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	folder := filepath.Join(t.TempDir(), "captures")
	var stdout, stderr bytes.Buffer
	code := run(ctx, testEnvironment(&stdout, &stderr), []string{"simulate", "--preset", "multihop", "--keep=false", "-q", "--pcap", folder})
	want := "not written: " + folder + "\nolafctl: interrupted before the first run was complete; there is nothing to show\n"
	if code != cli.ExitInterrupted || stdout.Len() > 0 || stderr.String() != want {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}
