package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestDestructiveWritesAskAtATerminal checks the effect of answers to the questions that commands ask before they
// change a shared device.
func TestDestructiveWritesAskAtATerminal(t *testing.T) {
	target := startServe(t)
	entries := func() int {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), testEnvironment(&stdout, &stderr), []string{"cluster", "list", "-o", "csv", "--target", target}); code != 0 {
			t.Fatal(stderr.String())
		}
		return strings.Count(stdout.String(), "\n") - 1 // the header
	}
	for _, c := range []struct {
		line, answer string
		asks         bool
		code         int
		asked        string
		left         int // workers and clusters afterwards
	}{
		{"cluster add 10.1.0.1=1 10.1.0.2=2 --cluster 3", "", true, 0, "", 1},
		{"cluster move 10.1.0.1 --to 4", "n\n", true, 1, "write this? [y/N]", 1},
		{"cluster rm --cluster 3", "\n", true, 1, "deleted in the tables of", 1},
		{"tables clear", "no\n", true, 1, "deleted in the tables of", 1},
		{"tables clear --dry-run", "no\n", true, 0, "", 1},
		{"cluster move 10.1.0.1 --to 4", "y\n", true, 0, "write this? [y/N]", 2},
		{"tables clear", "", false, 0, "", 0},
		{"cluster add 10.1.0.1=1 --cluster 3", "", true, 0, "", 1},
		{"tables clear --yes", "no\n", true, 0, "", 0},
		{"tables clear", "no\n", true, 0, "", 0}, // nothing to lose
	} {
		var stdout, stderr bytes.Buffer
		env := testEnvironment(&stdout, &stderr)
		env.Stdin, env.Asks = strings.NewReader(c.answer), c.asks
		code := run(t.Context(), env, append(strings.Fields(c.line), "--target", target))
		if asked := strings.Contains(stderr.String(), "[y/N]"); code != c.code || asked != (c.asked != "") || !strings.Contains(stderr.String(), c.asked) {
			t.Errorf("%s, answered %q: exit %d, %q; want exit %d and the question %q", c.line, c.answer, code, stderr.String(), c.code, c.asked)
		}
		if got := entries(); got != c.left {
			t.Errorf("%s, answered %q, left %d clusters, want %d", c.line, c.answer, got, c.left)
		}
	}
}

func TestRegisterWritesAskAtATerminal(t *testing.T) {
	device := "grpc:" + startServe(t)
	for answer, want := range map[string]int{"n\n": 1, "y\n": 0} {
		var stdout, stderr bytes.Buffer
		env := testEnvironment(&stdout, &stderr)
		env.Stdin, env.Asks = strings.NewReader(answer), true
		code := run(t.Context(), env, []string{"reg", "write", "queue.depth=16", "-d", device})
		if code != want || !strings.Contains(stderr.String(), "write queue.depth=16 to "+device+"? [y/N]") {
			t.Errorf("answered %q: exit %d, %q; want the question and exit %d", answer, code, stderr.String(), want)
		}
	}
}
