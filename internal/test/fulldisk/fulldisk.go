//go:build unix

// Package fulldisk lets tests simulate writing to a full disk.
package fulldisk

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

// separateEnv is the environment variable that is set in the separate process of a test.
const separateEnv = "OLAFCTL_TEST_APART"

// RunInProcess runs the calling test in a separate process, because the file size limit affects the whole process. It
// returns true in the calling process, where the test must then return, and false in the separate process.
func RunInProcess(t *testing.T) bool {
	t.Helper()
	if os.Getenv(separateEnv) != "" {
		return false
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	test := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$",
		fmt.Sprintf("-test.short=%t", testing.Short()))
	test.Env = append(os.Environ(), separateEnv+"=1")
	if output, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	return true
}

// WithLimit calls do while no file in this separate process can grow beyond room bytes. Writes beyond this size fail,
// as on a full disk.
func WithLimit(t testing.TB, room int64, do func()) {
	t.Helper()
	if os.Getenv(separateEnv) == "" {
		t.Fatal("without its own process")
	}
	var usual unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &usual); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ) // it would end the process before the writer gets the error
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
