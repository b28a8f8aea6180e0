package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// TestInterruptEndsReadingATrace checks that an interrupt ends every command that reads a trace, with a message and
// without creating a file.
func TestInterruptEndsReadingATrace(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to := filepath.Join(t.TempDir(), "out")
	for name, args := range map[string][]string{
		"info":    {"trace", "info", "builtin:lander8"},
		"convert": {"trace", "convert", "builtin:lander8", to + ".csv"},
		"scale":   {"trace", "scale", "builtin:lander8", "-q", "-w", to + ".trace"},
		"plot":    {"trace", "plot", "builtin:lander8", "-w", to + ".svg"},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			env := process()
			env.Stdout, env.Stderr = &bytes.Buffer{}, &said
			if code := run(ctx, env, args); code != cli.ExitInterrupted || !strings.Contains(said.String(), "interrupted after 0 updates of the trace") {
				t.Errorf("exit %d: %s", code, said.String())
			}
		})
	}
	if left, _ := os.ReadDir(filepath.Dir(to)); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
