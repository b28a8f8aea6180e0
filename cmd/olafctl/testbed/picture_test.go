package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// TestOutputIsDrawnWithTimes checks that output is printed and drawn with times, and that failures are not drawn.
func TestOutputIsDrawnWithTimes(t *testing.T) {
	clock := time.Unix(0, 0)
	var printed bytes.Buffer
	env := &cli.Env{Stdout: &printed, Stderr: &printed, Now: func() time.Time { return clock }}
	path := filepath.Join(t.TempDir(), "p.svg")
	var f pictureFlags
	run := func(err error) error {
		cmd := &cobra.Command{Use: "demo"}
		f.Add(cmd)
		cmd.Flags().Bool("short", false, "")
		cmd.Flags().Int("workers", 4, "")
		if err := cmd.ParseFlags([]string{"--short", "--workers=3", "--record", path}); err != nil {
			t.Fatal(err)
		}
		return f.RecordOutput(cmd, env, func(env *cli.Env) error {
			fmt.Fprint(env.Stderr, "half ")
			clock = clock.Add(1500 * time.Millisecond)
			fmt.Fprint(env.Stderr, "a line\na < b\n")
			clock = clock.Add(time.Second)
			fmt.Fprintln(env.Stdout, "done")
			return err
		})
	}
	if err := run(nil); err != nil {
		t.Fatal(err)
	}
	drawn, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"$ demo --short --workers 3<", "1.5 s", "half a line", "a &lt; b", "2.5 s", "done"} {
		if n := strings.Count(string(drawn), want); n != 1 {
			t.Errorf("%q is drawn %d times:\n%s", want, n, drawn)
		}
	}
	if !strings.HasPrefix(printed.String(), "half a line\na < b\ndone\nwrote ") {
		t.Errorf("printed %q", printed.String())
	}
	if err := run(nil); err == nil {
		t.Error("replaced a file without --force")
	}
	failed := errors.New("it failed")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := run(failed); !errors.Is(err, failed) {
		t.Errorf("said %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("drew what failed")
	}
}
