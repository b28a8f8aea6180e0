package attach

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/trace"
)

// pythonTime bounds one Python test file.
const pythonTime = 3 * time.Minute

// TestPythonClient runs the tests of the Python package, which every client must pass, against workers and a server in
// this process.
func TestPythonClient(t *testing.T) { runPython(t, "test_client.py", "numpy") }

// TestTorchHook trains with DistributedDataParallel, whose gradients are summed by the workers in this process.
func TestTorchHook(t *testing.T) { runPython(t, "test_torch.py", "numpy", "torch") }

// python returns the interpreter, which must have the modules. Otherwise the test is skipped, or fails if CI is true.
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

// runPython runs a Python test file next to a job of two workers that wait, and one worker that does not wait, with its
// server.
func runPython(t *testing.T, file string, modules ...string) {
	interpreter := python(t, modules...)
	folder, err := filepath.Abs("../../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	j := newSumming(t, usual, usual)
	push, server := pushing(t)
	records, recorded, complete := recording(t)
	ctx, cancel := context.WithTimeout(t.Context(), pythonTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, interpreter, "-B", filepath.Join(folder, "tests", file))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+folder, "OLAF_TEST_SUMS="+strings.Join(j.addresses, ","),
		"OLAF_TEST_PUSH="+push, "OLAF_TEST_SERVER="+server, "OLAF_TEST_RECORD="+recorded, "OLAF_TEST_FOLDER="+t.TempDir())
	cmd.WaitDelay = 5 * time.Second // its children keep the output open
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if file == "test_client.py" {
		if err := <-complete; err != nil {
			t.Errorf("the recording ends with %v", err)
		}
		checkRecords(t, records)
	}
}

// TestPipInstallsThePackage installs the package by pip into an environment with the system's packages, without build
// isolation and the network, and imports it from there.
func TestPipInstallsThePackage(t *testing.T) {
	interpreter := python(t, "numpy")
	if out, err := exec.Command(interpreter, "-c", "import setuptools, pip, venv").CombinedOutput(); err != nil {
		t.Skipf("%s cannot install packages (apt-get install python3-pip python3-setuptools python3-venv): %s", interpreter, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), pythonTime)
	defer cancel()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	source, env := filepath.Join(t.TempDir(), "python"), t.TempDir()
	if err := os.CopyFS(source, os.DirFS("../../clients/python")); err != nil { // pip writes into it
		t.Fatal(err)
	}
	run(interpreter, "-m", "venv", "--system-site-packages", "--without-pip", env)
	own := filepath.Join(env, "bin", "python")
	run(own, "-m", "pip", "install", "--no-build-isolation", "--no-index", source)
	if at := run(own, "-c", "import olaf; print(olaf.__file__, olaf.Worker)"); !strings.HasPrefix(at, env) {
		t.Errorf("the package is imported from %s, want it in %s", at, env)
	}
}

// recording starts a recording and returns it with its address and a channel that receives its end.
func recording(t *testing.T) (r *Records, address string, complete <-chan error) {
	t.Helper()
	port, address := open(t)
	port.Many = true
	end := make(chan error, 1)
	r = NewRecords(t.TempDir(), func(err error) { end <- err })
	go port.Serve(r)
	return r, address, end
}

// checkRecords converts what two recorders sent at the same time into a trace and checks that it has their updates with
// their values.
func checkRecords(t *testing.T, r *Records) {
	t.Helper()
	records, err := trace.OpenRecords(r.First())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.trace")
	h := *records.Header()
	h.Payload = true
	file, err := trace.CreateFile(path, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(records.CopyTo(file), file.Close()); err != nil {
		t.Fatal(err)
	}
	if h.Env != "mlp" || h.Workers != 2 || h.Lanes != 3 || file.Rows() != 4 {
		t.Errorf("the trace has %d updates of %+v, want 4 of two workers", file.Rows(), h)
	}
	source, closer, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	gradients, err := os.Open(path + trace.PayloadSuffix)
	if err != nil {
		t.Fatal(err)
	}
	defer gradients.Close()
	payload := trace.NewPayload(gradients, source.Header())
	for i := range 4 {
		var u trace.Update
		if err := source.Next(&u); err != nil {
			t.Fatal(err)
		}
		values, err := payload.Next(&u)
		if want := float32(u.Worker) + float32(u.Seq)/2; err != nil || values[0] != want || u.Reward != float64(u.Seq) {
			t.Errorf("update %d is %+v with %v, %v; want values %v and reward %d", i, u, values, err, want, u.Seq)
		}
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

// deliver takes the frames of an update to the server, one by one, and returns the answers to the worker.
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
