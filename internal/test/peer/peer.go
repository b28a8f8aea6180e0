// Package peer finds external programs for comparison tests. In CI the programs are required. Elsewhere, a test is
// skipped if its program is missing or if -short is set.
package peer

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// FindProgram looks for a program in PATH. It returns "" if the test should be skipped. The error explains how to
// install the program in CI.
func FindProgram(program string) (path string, err error) {
	if testing.Short() {
		return "", nil
	}
	path, err = exec.LookPath(program)
	if err != nil && os.Getenv("CI") == "true" {
		return "", fmt.Errorf("%s is not installed; 'make peers' installs it", program)
	}
	return path, nil
}

// NeedProgram returns the path of a program. If there is none, it skips the test.
func NeedProgram(t testing.TB, program string) (path string) {
	t.Helper()
	path, err := FindProgram(program)
	switch {
	case err != nil:
		t.Fatal(err)
	case path == "":
		t.Skipf("without %s; 'make peers' installs it", program)
	}
	return path
}
