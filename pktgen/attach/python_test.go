package attach

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/pktgen/endpoint"
)

// pythonTime bounds one Python test file.
const pythonTime = time.Minute

// TestPythonClient runs the tests of the Python package, which any client must pass, against workers and a server in
// this process.
func TestPythonClient(t *testing.T) { runPython(t, "test_client.py", "numpy") }

// TestTorchHook trains with DistributedDataParallel, whose gradients the workers in this process add up.
func TestTorchHook(t *testing.T) { runPython(t, "test_torch.py", "numpy", "torch") }

// python returns the interpreter, which has the modules; without one the test is skipped, or fails where CI is true.
func python(t testing.TB, modules ...string) string {
	t.Helper()
	interpreter := cmp.Or(os.Getenv("OLAFCTL_PYTHON"), "/usr/bin/python3")
	out, err := exec.Command(interpreter, "-c", "import "+strings.Join(modules, ", ")).CombinedOutput()
	if err == nil {
		return interpreter
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s has no %s: %v\n%s", interpreter, strings.Join(modules, " and "), err, out)
	}
	t.Skipf("%s has no %s (apt-get install python3-numpy python3-torch, or set OLAFCTL_PYTHON)", interpreter,
		strings.Join(modules, " and "))
	return ""
}

// runPython runs a Python test file beside a job of two workers that wait, and one worker that does not with its
// server.
func runPython(t *testing.T, file string, modules ...string) {
	interpreter := python(t, modules...)
	folder, err := filepath.Abs("../../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	j := newSumming(t, usual, usual)
	push, server := pushing(t)
	ctx, cancel := context.WithTimeout(t.Context(), pythonTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, interpreter, "-B", filepath.Join(folder, "tests", file))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+folder, "OLAF_TEST_SUMS="+strings.Join(j.addresses, ","),
		"OLAF_TEST_PUSH="+push, "OLAF_TEST_SERVER="+server, "OLAF_TEST_FOLDER="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// pushing starts a worker that does not wait and its server, with a network that loses nothing between them, and
// returns their addresses.
func pushing(t *testing.T) (worker, server string) {
	t.Helper()
	config := Config{System: "olaf", Workers: 1, Largest: 1000, Lanes: 300, Scale: 1 << 16}
	ctx, cancel := context.WithCancelCause(t.Context())
	port, worker := open(t)
	w, err := NewPushes(config, nil, cancel)
	if err != nil {
		t.Fatal(err)
	}
	serverPort, server := open(t)
	u, err := NewUpdates(config, cancel, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	go port.Serve(w)
	go serverPort.Serve(u)
	played := make(chan struct{})
	t.Cleanup(func() { cancel(nil); <-played })
	go func() {
		defer close(played)
		for vector := uint32(0); ctx.Err() == nil; vector++ {
			c := w.Compute(ctx, vector)
			if ctx.Err() == nil {
				w.Sends(0)
				deliver(ctx, w, u, c.Values, config.Lanes)
			}
		}
	}()
	return worker, server
}

// deliver takes the frames of an update to the server, one by one, and their answers back.
func deliver(ctx context.Context, w *Pushes, u *Updates, lanes []uint32, perFrame int) {
	for at := 0; at < len(lanes); at += perFrame {
		frame := lanes[at:min(len(lanes), at+perFrame)]
		a := &endpoint.Aggregate{Vectors: 1, First: at, Values: append([]uint32(nil), frame...)}
		done := make(chan struct{})
		u.ApplyLater(a, func() { close(done) })
		select {
		case <-done:
			w.Apply(a)
		case <-ctx.Done():
			return
		}
	}
}
