package onwire

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/pktgen/attach"
)

// TestProgramsFindThePackage checks that an example outside of any folder with the Python package can import the
// package, and that its errors have a hint if a module is missing.
func TestProgramsFindThePackage(t *testing.T) {
	interpreter := cmp.Or(os.Getenv("OLAFCTL_PYTHON"), "/usr/bin/python3")
	if err := exec.Command(interpreter, "-c", "import numpy").Run(); err != nil {
		t.Skipf("%s has no numpy (apt-get install python3-numpy, or set OLAFCTL_PYTHON)", interpreter)
	}
	example, err := filepath.Abs("../../../clients/python/examples/mlp_async.py")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", "")
	t.Setenv("STEPS", "20")
	t.Setenv("PERIOD", "0.001")
	train := func(command string) (*ProgramReport, error) {
		p := &Program{Command: command, Systems: []string{rl.Ideal}, Seeds: []uint64{1}, Workers: 2, Clusters: 1, Values: 608,
			Lanes: 610, Scale: attach.DefaultScale, Progress: t.Logf, OnPoint: func(Point) {}}
		return p.RunQueues(t.Context(), nil)
	}
	r, err := train(interpreter + " " + example)
	if err != nil {
		t.Fatal(err)
	}
	for k, points := range r.Runs[0].Points {
		if len(points) != 20 || *points[19].Loss >= *points[0].Loss {
			t.Errorf("worker %d reports %d losses from %v to %v, want 20 that fall", k, len(points), *points[0].Loss,
				*points[len(points)-1].Loss)
		}
	}
	if _, err := train(interpreter + " -c 'import numpi'"); err == nil || !strings.Contains(err.Error(), missingHint) {
		t.Errorf("without a module the error is %v, want the hint %q", err, missingHint)
	}
}

// TestPythonExceptionsAreExtracted checks the errors extracted from the output of failing Python programs.
func TestPythonExceptionsAreExtracted(t *testing.T) {
	for said, want := range map[string]string{
		"exit": "",
		"Traceback (most recent call last):\n  File \"x.py\", line 1\n    f()\nValueError: no\n":                                         "ValueError: no",
		"Traceback (most recent call last):\n  a\nA: 1\n\nDuring handling:\n\nTraceback (most recent call last):\n  b\nB: 2\n\nAt:\n  c": "B: 2",
		"Traceback (most recent call last):\n  cut":                                                                                      "",
	} {
		if got := strings.TrimSpace(string(findException([]byte(said)))); got != want {
			t.Errorf("%q names %q, want %q", said, got, want)
		}
	}
}

// TestProgramsGetTorchrunsEnvironment checks the environment of each program: its role, its seed, and for workers the
// variables that torchrun sets.
func TestProgramsGetTorchrunsEnvironment(t *testing.T) {
	folder := t.TempDir()
	command := "sh -c '[ $OLAF_ROLE = worker ] || exec sleep 60; echo $OLAF_ROLE $OLAF_SEED $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $((MASTER_PORT > 0)) $" +
		"(test -S ${OLAF_ATTACH#unix:} && echo socket) > " + folder + "/$OLAF_ROLE$RANK'"
	p := &Program{Command: command, Systems: []string{rl.Ideal}, Seeds: []uint64{7}, Workers: 2, Clusters: 1, Values: 4,
		Lanes: 6, Scale: attach.DefaultScale, Progress: t.Logf, OnPoint: func(Point) {}}
	if _, err := p.RunQueues(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"worker0": "worker 7 0 0 2 127.0.0.1 1 socket", "worker1": "worker 7 1 1 2 127.0.0.1 1 socket"} {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s has %q, %v; want %q", name, got, err, want)
		}
	}
}
