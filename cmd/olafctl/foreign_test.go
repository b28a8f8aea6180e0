//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// Variables that name controllers of other projects, which nothing here installs.
const (
	shellPython = "OLAFCTL_TEST_P4RUNTIME_SHELL" // a Python that can import p4lang's p4runtime_sh
	zhhP4ctl    = "OLAFCTL_TEST_P4CTL"           // p4ctl of zhh2001/p4runtime-go-controller
	goExample   = "OLAFCTL_TEST_GO_EXAMPLE"      // cmd/example of antoninbas/p4runtime-go-client
)

// foreign is another controller with everything that it needs: a fresh agent, and the pipeline as files.
type foreign struct {
	program, address, info, config string
}

var servingAt = regexp.MustCompile(` at (\S+) \(Ctrl-C`)

// newForeign starts an agent for a controller, or skips the test if the variable is not set.
func newForeign(t *testing.T, variable, what string) foreign {
	t.Helper()
	f := foreign{program: os.Getenv(variable)}
	if f.program == "" {
		t.Skipf("without %s; %s names it", what, variable)
	}
	f.address = servingAt.FindStringSubmatch(serveIn(t, func(*cli.Env) {}, "--listen", "127.0.0.1:0"))[1]
	dir := t.TempDir()
	f.info, f.config = filepath.Join(dir, "p4info.txtpb"), filepath.Join(dir, "config.bin")
	ok(t, errors.Join(os.WriteFile(f.info, p4.Twin().InfoText(), 0o644), os.WriteFile(f.config, p4.Twin().DeviceConfig(), 0o644)))
	return f
}

// TestP4RuntimeShell checks a session of p4runtime-shell, which becomes primary with (0, 1) immediately.
func TestP4RuntimeShell(t *testing.T) {
	f := newForeign(t, shellPython, "p4lang/p4runtime-shell")
	cmd := exec.Command(f.program, "testdata/foreign/session.py", f.address, f.info, f.config)
	cmd.Stderr = os.Stderr
	got, err := cmd.Output()
	ok(t, err)
	f.transcript(t, "shell", string(got))
}

var theTime = regexp.MustCompile(`time="[^"]*" `)

// transcript compares a controller's output with docs/reference/p4runtime.md, without the time, this run's paths, and
// protobuf's random double spaces.
func (f foreign) transcript(t *testing.T, name, said string) {
	t.Helper()
	said = strings.NewReplacer(f.address, "ADDRESS", f.info, "INFO", f.config, "CONFIG", "  ", " ").Replace(said)
	said = theTime.ReplaceAllString(said, "")
	golden := "testdata/foreign/" + name + ".txt"
	if *update {
		ok(t, os.WriteFile(golden, []byte(said), 0o644))
	}
	want, err := os.ReadFile(golden)
	ok(t, err)
	if said != string(want) {
		t.Errorf("it said\n%swant\n%s", said, want)
	}
}

// TestP4RuntimePageShowsTranscripts checks that the page shows the controllers' output.
func TestP4RuntimePageShowsTranscripts(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/p4runtime.md")
	ok(t, err)
	for _, name := range []string{"shell", "p4ctl", "example"} {
		said, err := os.ReadFile("testdata/foreign/" + name + ".txt")
		ok(t, err)
		if !bytes.Contains(page, append(append([]byte("```\n"), said...), "```\n"...)) {
			t.Errorf("docs/reference/p4runtime.md does not print %s.txt", name)
		}
	}
}

// TestOtherP4ctl checks a session of another p4ctl that uses a new process for each step, with the same election id.
func TestOtherP4ctl(t *testing.T) {
	f := newForeign(t, zhhP4ctl, "zhh2001/p4runtime-go-controller's p4ctl")
	var session strings.Builder
	worker := " --p4info INFO --table vnp4_1.workers --match address=10.0.0.1"
	for _, s := range []struct {
		args   string
		fails  bool
		output string // a pattern
	}{
		{"connect", false, "election_id=0:1 state=primary primary=true"},
		{"pipeline set --p4info INFO --config CONFIG", false, ""},
		{"pipeline get", false, "tables=3 actions=6"},
		{"table insert" + worker + " --action vnp4_1.set_worker --param cluster_id=1 --param worker_id=5", false, ""},
		{"table insert" + worker + " --action vnp4_1.set_worker --param cluster_id=1 --param worker_id=5", true, "has an entry for 10.0.0.1"},
		{"table modify" + worker + " --action vnp4_1.set_worker --param cluster_id=2 --param worker_id=6", false, ""},
		{"table read --p4info INFO --table vnp4_1.workers", false, `value:"\\x02"} .*value:"\\x06"}`},
		{"packet send --p4info INFO --hex 00 --port 1", false, ""}, // it does not wait for the answer
	} {
		args := strings.Fields(strings.NewReplacer("INFO", f.info, "CONFIG", f.config).Replace(s.args))
		out, err := exec.Command(f.program, append(args, "--addr", f.address)...).CombinedOutput()
		session.WriteString("$ p4ctl " + s.args + "\n" + string(out))
		if (err != nil) != s.fails || !regexp.MustCompile(s.output).Match(out) {
			t.Errorf("%s: %v, want %q\n%s", s.args, err, s.output, out)
		}
	}
	f.transcript(t, "p4ctl", session.String())
}

// TestP4RuntimeGoClientExample checks that the example from p4runtime-go-client, with its fixed election id (0, 1),
// becomes primary, pushes and waits.
func TestP4RuntimeGoClientExample(t *testing.T) {
	f := newForeign(t, goExample, "antoninbas/p4runtime-go-client's example")
	cmd := exec.Command(f.program, "-addr", f.address, "-device-id", "1", "-bin", f.config, "-p4info", f.info)
	stderr, err := cmd.StderrPipe()
	ok(t, err)
	ok(t, cmd.Start())
	var said strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "Ctrl-C to quit") {
			ok(t, cmd.Process.Signal(syscall.SIGINT))
		}
	}
	f.transcript(t, "example", said.String())
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "We are the primary client") || !strings.Contains(said.String(), "Stopping client") {
		t.Errorf("%v\n%s", err, &said)
	}
}
