//go:build unix

// Package fulldisk lets tests write where there is no room left.
package fulldisk

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

// apart is set in the environment of a test's own process.
const apart = "OLAFCTL_TEST_APART"

// Apart runs the calling test in a process of its own, as whoever runs tests writes files too, and says that it did: then
// the caller has nothing left to do. In that process it says no.
func Apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(apart) != "" {
		return false
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	test := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$",
		fmt.Sprintf("-test.short=%t", testing.Short()))
	test.Env = append(os.Environ(), apart+"=1")
	if said, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	return true
}

// At calls do while no file of this process, which must be a test's own, can grow beyond room bytes: what does not fit is
// cut off there, and its writer is told, as on a disk that gets full.
func At(t testing.TB, room int64, do func()) {
	t.Helper()
	if os.Getenv(apart) == "" {
		t.Fatal("without its own process")
	}
	var usual unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &usual); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ) // which would end the process before the writer hears of it
	defer signal.Reset(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(room), Max: usual.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &usual); err != nil {
			t.Error(err)
		}
	}()
	do()
}
