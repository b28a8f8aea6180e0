//go:build unix

package main

import (
	"bytes"
	"os"
	"testing"
)

// TestReaderThatLeaves holds that a command whose reader went away ends with a shell's code for that, in silence, and with
// nothing left behind.
func TestReaderThatLeaves(t *testing.T) {
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
		if code := piped(t.Context(), env, args); code != exitPipe {
			t.Errorf("%v: exit code %d", args, code)
		}
		writer.Close()
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 || bytes.Contains(stderr.Bytes(), []byte("olafctl:")) {
			t.Errorf("%v: %v, %v\n%s", args, left, err, &stderr)
		}
	}
}
