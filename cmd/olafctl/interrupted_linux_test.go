package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
)

// findProcess returns the process that has a marker in its environment and these words in its command line.
func findProcess(t *testing.T, marker string, words ...string) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range all { // any of them may end meanwhile
		environment, _ := os.ReadFile(process + "/environ")
		text, _ := os.ReadFile(process + "/cmdline")
		line := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
		line[0] = filepath.Base(line[0])
		lacks := slices.ContainsFunc(words, func(word string) bool {
			return !slices.Contains(line, word) && !bytes.Contains(environment, []byte("\x00"+word))
		})
		if bytes.Contains(environment, []byte(marker)) && !lacks {
			pid, err := strconv.Atoi(filepath.Base(process))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("no process has %q", words)
	return 0
}

// TestInterruptedProcessesEndTheTraining presses Ctrl-C in one process of a training run over real packets, while a
// worker's program and the server's program hang and another waits. It checks that the command exits with the reason,
// and that no process, kernel program, interface or namespace is left.
func TestInterruptedProcessesEndTheTraining(t *testing.T) {
	if !canReal() {
		t.Skip("no rights for real packets")
	}
	t.Setenv("PATH", pathOfOlafctl(t)+":"+os.Getenv("PATH"))
	for _, c := range []struct {
		name, device, system string
		process              []string // words of its command line, or of its environment
		code                 int
		says                 string
	}{
		{"head", "xdp:", "xagg", []string{"train"}, 130, "interrupted"},
		{"head at a switch in this process", "host:", "ring", []string{"train"}, 130, "interrupted"},
		{"a worker's program", "xdp:", "xagg", []string{"attached", "RANK=1"}, 1, "worker 1: signal: interrupt"},
		{"the server's program", "xdp:", "olaf", []string{"attached", "OLAF_ROLE=server"}, 1, "server: signal: interrupt"},
		{"the program of a server around a switch", "host:", "ps --mode async", []string{"attached", "OLAF_ROLE=server"}, 1, "server: signal: interrupt"},
		{"a worker", "xdp:", "xagg", []string{"olafctl", "worker", "0"}, 1, ""},
		{"the server", "xdp:", "xagg", []string{"olafctl", "ps"}, 1, "ended before the programs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			traces, marker := testbedtest.RecordTraces(t), fmt.Sprintf("OLAF_TEST_MARK=%d:%s.", os.Getpid(), c.name)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			cmd := exec.CommandContext(ctx, "olafctl", append(strings.Fields("train --workers 2 --values 40 --system "+c.system),
				"--program", "attached", "-d", c.device)...)
			cmd.Env = append(os.Environ(), "OLAFCTL_CONFIG=/dev/null", "OLAFCTL_HOME="+t.TempDir(), "ATTACHED_HANGS=1", marker)
			said, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			hanging := 2
			if c.system == "olaf" || strings.HasSuffix(c.system, "async") {
				hanging++
			}
			lines := bufio.NewReader(said)
			for hanging > 0 {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatalf("%q, %v", line, err)
				}
				if strings.HasSuffix(line, ": hangs\n") {
					hanging--
				}
			}
			if err := syscall.Kill(findProcess(t, marker, c.process...), syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(lines)
			if err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code is checked instead
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(rest), c.says) {
				t.Errorf("the command exits with %d: %s; want %d and %q", code, rest, c.code, c.says)
			}
			traces.AwaitGone(t, marker)
		})
	}
}
