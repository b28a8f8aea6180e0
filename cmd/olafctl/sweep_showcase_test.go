package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestShowcase repeats the showcases on docs/guide/sweeps.md and checks that their digests equal those on the page.
func TestShowcase(t *testing.T) {
	if testing.Short() {
		t.Skip("a sweep of seconds")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", "sweeps.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?m)^olafctl (.*)\n([0-9a-f]{64})$").FindAllSubmatch(page, -1)
	if len(found) < 3 {
		t.Fatalf("%d showcases on the page", len(found))
	}
	program := linkedProgram(t)
	for _, f := range found {
		line, want := string(f[1]), string(f[2])
		cmd := exec.Command(program, append(strings.Fields(line), "-q", "--store", t.TempDir())...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), "digest "+want+"\n") {
			t.Errorf("olafctl %s: %v, want digest %s\n%s", line, err, want, out)
		}
	}
}
