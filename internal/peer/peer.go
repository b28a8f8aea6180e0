// Package peer finds other people's programs that tests hold against ours. In CI they must be there, elsewhere a test goes
// without, and -short asks for none.
package peer

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Find looks for a program on PATH; it is empty where the tests go without. The error says how to get it in CI.
func Find(program string) (path string, err error) {
	if testing.Short() {
		return "", nil
	}
	path, err = exec.LookPath(program)
	if err != nil && os.Getenv("CI") == "true" {
		return "", fmt.Errorf("%s is not installed; 'make peers' installs it", program)
	}
	return path, nil
}

// Need gives the path of a program, or skips the test.
func Need(t testing.TB, program string) (path string) {
	t.Helper()
	path, err := Find(program)
	switch {
	case err != nil:
		t.Fatal(err)
	case path == "":
		t.Skipf("without %s; 'make peers' installs it", program)
	}
	return path
}
