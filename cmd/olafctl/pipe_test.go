//go:build unix

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestClosedPipeExitCode checks that a command whose reader has exited returns a shell's exit code for that, without
// output, and cleans up after itself.
func TestClosedPipeExitCode(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, args := range [][]string{{"reg", "dump", "--after", "table1"}, {"bench", "--runs", "1", "--updates", "5", "--keep=false"}, {"version"}} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		reader.Close()
		var stderr bytes.Buffer
		env := testEnvironment(writer, &stderr)
		if code := runPiped(t.Context(), env, args); code != exitPipe {
			t.Errorf("%v: exit code %d", args, code)
		}
		writer.Close()
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 || bytes.Contains(stderr.Bytes(), []byte("olafctl:")) {
			t.Errorf("%v: %v, %v\n%s", args, left, err, &stderr)
		}
	}
}

// TestUnwrittenOutputIsReported checks that a command reports results that could not be written, unless they were
// discarded on purpose.
func TestUnwrittenOutputIsReported(t *testing.T) {
	for how, flags := range map[string]int{"closed": os.O_RDWR, "thrown away": os.O_WRONLY} {
		null, err := os.OpenFile(os.DevNull, flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		code := runPiped(t.Context(), testEnvironment(null, &stderr), []string{"version"})
		null.Close()
		if said := strings.Contains(stderr.String(), "the results are lost"); code != 0 || said != (how == "closed") {
			t.Errorf("%s: exit code %d, %q", how, code, &stderr)
		}
	}
}
