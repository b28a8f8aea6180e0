package onwire

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKilledHeadEndsPrograms kills the process that trains, with SIGKILL, while its programs and the processes that they
// started hang: all of them end.
func TestKilledHeadEndsPrograms(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "programs")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	programs, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer programs.Close()
	held, err := os.OpenFile(fifo, os.O_WRONLY, 0) // until all programs have opened it
	if err != nil {
		t.Fatal(err)
	}
	if err := programs.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	head := exec.Command(os.Args[0])
	head.Env = append(os.Environ(), "ONWIRE_HEAD="+fifo)
	errors := new(strings.Builder)
	head.Stderr = errors
	if err := head.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(programs)
	for range headWorkers {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatalf("the programs do not start: %v; %s", err, errors)
		}
	}
	if err := head.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil {
		t.Errorf("programs run on after their head was killed: %q, %v", rest, err)
	}
	_ = head.Wait() // it was killed
}
