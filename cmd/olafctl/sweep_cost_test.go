package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	"github.com/olafctl/olaf/experiments/sweep"
)

// linkedProgram creates a link to this test binary with the program's name, which makes the binary act as the program.
func linkedProgram(tb testing.TB) string {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "olafctl")
	if err := os.Link(self, path); err != nil {
		tb.Skip(err) // the temporary folder is on another file system
	}
	return path
}

// swept runs a sweep with the program in a new store and returns its cost, including all workers.
func swept(b *testing.B, path string, args ...string) (wall, cpu time.Duration) {
	b.Helper()
	cmd := exec.Command(path, append(args, "-q", "-o", "csv", "--store", b.TempDir())...)
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// BenchmarkSweepTinyCells measures the CPU time per cell for cells with almost no work, over all processes from the
// command line to the stored sweep.
func BenchmarkSweepTinyCells(b *testing.B) {
	path := linkedProgram(b)
	const cells = 40 * 50
	var cpu time.Duration
	for b.Loop() {
		_, used := swept(b, path, strings.Fields("bench --sweep slots=2..41 --sweep out-rate=1G..50G:1G --versus none --runs 1 --updates 2 --workers 9")...)
		cpu += used
	}
	b.ReportMetric(cpu.Seconds()*1e3/float64(b.N*cells), "cpu-ms/cell")
}

// longCell is the minimum work for a cell in a sweep of 1,000 cells.
const longCell = 20 * time.Millisecond

// BenchmarkSweepLongCells compares a sweep of 1,000 cells, each of at least 20 ms, with a loop in a single worker
// process, whose time is divided by the number of cores.
func BenchmarkSweepLongCells(b *testing.B) {
	path := linkedProgram(b)
	line := strings.Fields("bench --sweep slots=2..26 --sweep out-rate=1G..40G:1G --versus none --runs 1 --updates 4500")
	looped := loop(b, path, &sweep.File{Command: "bench", Sweep: []string{line[2], line[4]}, Options: map[string]string{"versus": "none", "updates": line[len(line)-1]}, Runs: 1})
	const cells = 1000
	if one := looped / cells; one < longCell {
		b.Fatalf("a cell takes %v in the loop, and shall take %v or more: give it more --updates", one, longCell)
	}
	var wall time.Duration
	for b.Loop() {
		took, _ := swept(b, path, line...)
		wall += took
	}
	b.ReportMetric(looped.Seconds()*1e3/cells, "looped-ms/cell")
	b.ReportMetric(wall.Seconds()*1e3/float64(b.N*cells), "wall-ms/cell")
	b.ReportMetric(wall.Seconds()/float64(b.N)/(looped.Seconds()/float64(runtime.GOMAXPROCS(0))), "of-the-loop")
}

// loop runs all cells in one worker without storing the results.
func loop(b *testing.B, path string, file *sweep.File) time.Duration {
	b.Helper()
	plan, err := file.Resolve(sweepCommands(process()), false)
	if err != nil {
		b.Fatal(err)
	}
	if plan.Build, err = sweep.ThisBuild(path); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(path, "sweep", sweepcmd.WorkerName)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	w, err := sweep.StartProcess(context.Background(), "loop", cmd, plan.Build)
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	for i := range plan.Cells {
		if _, err := w.Do(context.Background(), plan.Job(i, 0)); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(began)
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return took
}
