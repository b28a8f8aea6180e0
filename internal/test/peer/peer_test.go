package peer

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "there")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv("CI", "")
	found := program
	if testing.Short() {
		found = ""
	}
	if path, err := FindProgram("there"); path != found || err != nil {
		t.Errorf("%q, %v", path, err)
	}
	if path, err := FindProgram("absent"); path != "" || err != nil {
		t.Errorf("absent: %q, %v", path, err)
	}
	t.Setenv("CI", "true")
	if _, err := FindProgram("absent"); (err == nil) != testing.Short() {
		t.Errorf("absent in CI: %v", err)
	}
}
