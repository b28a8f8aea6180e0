//go:build unix

package testbed

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestUmaskDoesNotExcludeUsers checks that after a reservation with a umask that hides new files, other users are still
// able to lock and read the folder.
func TestUmaskDoesNotExcludeUsers(t *testing.T) {
	r, _ := newReservations(t)
	mask := syscall.Umask(0o077)
	err := reserveFor(t, r, "alice@desk", "paper", "card")
	syscall.Umask(mask)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(r.Dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no reservation, %v", err)
	}
	for _, name := range append(files, filepath.Join(r.Dir, ".lock")) {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v; want it readable by all", filepath.Base(name), info.Mode(), err)
		}
	}
}
