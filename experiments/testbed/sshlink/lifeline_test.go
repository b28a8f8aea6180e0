package sshlink

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// startAgent starts an agent's side on pipes. It returns the head's ends, and the code with which the process would exit.
func startAgent(t *testing.T) (alive context.Context, in *io.PipeWriter, out *bufio.Reader, exits <-chan int) {
	t.Helper()
	agentIn, in := io.Pipe()
	headOut, agentOut := io.Pipe()
	out = bufio.NewReader(headOut)
	t.Cleanup(func() {
		for _, end := range []io.Closer{in, agentIn, agentOut, headOut} {
			_ = end.Close() // closing a pipe cannot fail
		}
	})
	hello, codes := make(chan string, 1), make(chan int, 1)
	go func() {
		line, _ := out.ReadString('\n')
		hello <- line
		_, _ = io.WriteString(in, "\n"+goWord+"\n")
	}()
	alive, ready, err := attend(t.Context(), agentIn, agentOut, Build{Hash: "abc", Version: "v1", Platform: "linux/amd64"},
		func(code int) { codes <- code })
	if err != nil {
		t.Fatal(err)
	}
	if line := <-hello; line != helloWord+" abc v1 linux/amd64\n" {
		t.Fatalf("the greeting is %q", line)
	}
	go func() { _ = ready() }()
	if line, err := out.ReadString('\n'); err != nil || line != readyWord+"\n" {
		t.Fatalf("after the greeting came %q, %v", line, err)
	}
	return alive, in, out, codes
}

// TestAgentEndsWithItsInput checks that an agent ends at the end of its standard input.
func TestAgentEndsWithItsInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alive, in, out, exits := startAgent(t)
		go io.Copy(io.Discard, out)
		in.Close()
		<-alive.Done()
		if !errors.Is(context.Cause(alive), ErrHeadGone) {
			t.Errorf("it ended because of %v", context.Cause(alive))
		}
		if code := <-exits; code != exitLost {
			t.Errorf("with a device that does not close it exits with %d, want %d", code, exitLost)
		}
	})
}

// TestAgentEndsAfterSilence checks that an agent continues as long as there are signs of life, and ends Patience after
// the last one.
func TestAgentEndsAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alive, in, out, exits := startAgent(t)
		var beats atomic.Int64
		go func() {
			for {
				if _, err := out.ReadString('\n'); err != nil {
					return
				}
				beats.Add(1)
			}
		}()
		for range 30 {
			time.Sleep(beat)
			if alive.Err() != nil {
				t.Fatal("it ended despite of signs of life")
			}
			_, _ = io.WriteString(in, "\n")
		}
		last := time.Now()
		<-alive.Done()
		if silent := time.Since(last); silent != Patience {
			t.Errorf("it ended after %v of silence, want %v", silent, Patience)
		}
		if n := beats.Load(); n < 30 {
			t.Errorf("it gave %d signs of life in %v", n, 30*beat)
		}
		if code := <-exits; code != exitLost {
			t.Errorf("with a device that does not close it exits with %d, want %d", code, exitLost)
		}
	})
}

// TestScriptsQuoteTheirArguments checks that a script's arguments survive the shell, which runs them as on the other
// host.
func TestScriptsQuoteTheirArguments(t *testing.T) {
	o := Options{}
	args := []string{`a b`, `'`, `"$HOME"`, `$(false)`, "`x`", `\`, ``, `*`, "é"}
	cmd := o.command(Address{Host: "lab"}, nil, append([]string{`for a in "$@"; do echo "[$a]"; done`}, args...))
	remote := cmd.Args[len(cmd.Args)-1]
	out, err := exec.Command("sh", "-c", remote).Output()
	if want := "[" + strings.Join(args, "]\n[") + "]\n"; err != nil || string(out) != want {
		t.Errorf("%s printed %q, %v; want %q", remote, out, err, want)
	}
}

// TestBuildsMatch checks which agents' builds may serve a head.
func TestBuildsMatch(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	own, err := ReadBuild(path, "(devel) abc changed")
	if err != nil || len(own.Hash) != 32 || strings.Contains(own.Version, " ") {
		t.Fatalf("%+v, %v", own, err)
	}
	other, arm, older := own, own, own
	other.Hash = "other"
	arm.Hash, arm.Platform = "arm", "linux/arm64"
	older.Hash, older.Platform, older.Version = "arm", "linux/arm64", "v0.1_-"
	for b, want := range map[Build]bool{own: true, other: false, arm: true, older: false} {
		if own.matches(b) != want {
			t.Errorf("%+v serves %+v: %v", b, own, !want)
		}
	}
}

// TestKilledAgentRunsCleanup checks that if an agent is killed, the other host's script runs the command for this case
// and removes the private folder, and that it does not run the command if the agent ends by itself.
func TestKilledAgentRunsCleanup(t *testing.T) {
	folder := t.TempDir()
	stub, log := filepath.Join(folder, "stub"), filepath.Join(folder, "log")
	private := filepath.Join(folder, "private")
	for end, want := range map[string]string{"kill -9 $$": "serve\nreg write -d pci:x\n", "exit 3": "serve\n"} {
		program := "#!/bin/sh\ncase $2 in serve) echo serve >>" + log + "; [ -d " + private + " ] && " + end + ";; esac\nshift; echo \"$*\" >>" + log + "\n"
		if err := errors.Join(os.WriteFile(stub, []byte(program), 0o700), os.RemoveAll(log)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", agentScript, "olafctl", private, stub, "hash", "", "device reg write -d pci:x", "-d", "pci:x")
		out, _ := cmd.Output() // the exit code is the agent's
		if !strings.HasPrefix(string(out), hostWord+" ") || !strings.HasSuffix(string(out), " "+stub+" installed\n") {
			t.Errorf("the script printed %q", out)
		}
		if got, err := os.ReadFile(log); err != nil || string(got) != want {
			t.Errorf("after %s the programs were %q, want %q (%v)", end, got, want, err)
		}
		if _, err := os.Stat(private); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after %s the private folder is there (%v)", end, err)
		}
	}
}

// TestAdviceNamesTheHost checks that commands in advice reach the host as ssh did, with its user and port.
func TestAdviceNamesTheHost(t *testing.T) {
	for message, want := range map[string]struct{ plain, whole string }{
		"lab@q: Permission denied (publickey).":            {"'ssh -o BatchMode=yes q true'", "'ssh -o BatchMode=yes -p 2222 lab@q true'"},
		"Host key verification failed.":                    {"'ssh q'", "'ssh -p 2222 lab@q'"},
		"WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!": {"'ssh-keygen -R q'", `'ssh-keygen -R "[q]:2222"'`},
	} {
		for a, want := range map[Address]string{{Host: "q"}: want.plain, {User: "lab", Host: "q", Port: 2222}: want.whole} {
			if err := explainEnd(a, exitSSH, []string{message}); !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), ".;") {
				t.Errorf("%s: %v, want advice with %s", a.Name(), err, want)
			}
		}
	}
}

// TestShellFailuresAreNoConnectionFailures checks which errors of a session are those of ssh, and which those of the
// shell on the other host or of this host's shell.
func TestShellFailuresAreNoConnectionFailures(t *testing.T) {
	for line, want := range map[string]struct {
		code int
		kind error
		text string
	}{
		"mkdir: cannot create directory '/tmp/x': No space left on device": {1, ErrShell, "q: the shell there failed with exit code 1: mkdir: " +
			"cannot create directory '/tmp/x': No space left on device; free some space there"},
		"olafctl-sh: 7: olafctl: Permission denied": {126, ErrShell, "q: the shell there failed with exit code 126: olafctl-sh: 7: olafctl: Permission denied"},
		"olafctl-sh: 7: sudo: not found": {127, ErrShell, "q: the shell there failed with exit code 127: olafctl-sh: 7: sudo: not found; " +
			"install sudo there, or log in as root and leave sudo out of the file"},
		"olafctl-ssh: 1: exec: /nowhere/ssh: not found": {127, ErrSSH, "no ssh connection to q: olafctl-ssh: 1: exec: /nowhere/ssh: not found; correct OLAFCTL_SSH"},
		"ssh: Could not resolve hostname q: Name or service not known": {exitSSH, ErrSSH, "no ssh connection to q: ssh: Could not resolve hostname q: " +
			"Name or service not known; check the name, or add the host to ~/.ssh/config"},
	} {
		if err := explainEnd(Address{Host: "q"}, want.code, []string{line}); !errors.Is(err, want.kind) || err.Error() != want.text {
			t.Errorf("%q: %v, want %s", line, err, want.text)
		}
	}
}
