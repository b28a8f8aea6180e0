package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	traincmd "github.com/olafctl/olaf/cmd/olafctl/train"
	"github.com/olafctl/olaf/internal/test/peer"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
)

// alike lists commands whose output must be identical, byte for byte, on every architecture.
var alike = []string{
	"bench --runs 2 --updates 40 -q -o json",
	"bench --cluster-sigma 0.5 --clusters 5 --runs 2 --updates 40 -q -o json",
	"bench --system iswitch --versus fifo --runs 2 --updates 40 -q -o json",
	"bench --trace builtin:lander8 --clusters 6 --workers 30 --trace-spread 3 --runs 2 -q -o json",
	"bench --system switchml --runs 2 -q -o json",
	"simulate --preset single --duration 20ms -q -o json",
	"simulate --preset multihop --duration 200ms --runs 3 -q -o json",
	"schedule jobs --jobs 6 --seed 3",
	"schedule jobs --jobs 6 --seed 3 -w jobs.yaml --force",
	"schedule plan jobs.yaml -o json",
	"schedule sweep --jobs 4 --seeds 2 -q -o json",
	sweepLine,
	verifyLine,
}

const (
	sweepLine  = "sweep run sweep.yaml -q -o json"
	verifyLine = "verify loss-free --solver z3 -q -o json"
	archSweep  = "command: bench\nruns: 3\noptions: {updates: 30}\nsweep:\n  - slots=4,8\n"
)

// volatile matches lines that differ between two runs of one build or that identify the build: instants, durations, a
// run's id, and the keys of a sweep's cells.
var volatile = regexp.MustCompile(`(?m)^ *("(started|finished|seconds|id|commit|system)": .*|"[0-9a-f]{64}",?)\n`)

// otherBuild describes an olafctl built for another processor and the way to run it on this machine.
type otherBuild struct {
	name    string
	build   []string // environment of go build; nil for the reference
	run     []string // environment of each run
	through func(*testing.T) []string
}

var otherBuilds = []otherBuild{
	{name: "amd64 without FMA", run: []string{"GODEBUG=cpu.fma=off"}},
	{name: "GOAMD64=v3", build: []string{"GOAMD64=v3"}, through: func(t *testing.T) []string {
		if !cpu.X86.HasAVX2 || !cpu.X86.HasBMI2 || !cpu.X86.HasFMA {
			t.Skip("this processor is below GOAMD64=v3")
		}
		return nil
	}},
	{name: "arm64", build: []string{"GOARCH=arm64"}, through: func(t *testing.T) []string {
		return []string{peer.NeedProgram(t, "qemu-aarch64-static")}
	}},
}

// TestSameBytesOnEveryArchitecture runs the commands in alike on the reference and on other builds, and checks that a
// run stored by the reference verifies on each of them.
func TestSameBytesOnEveryArchitecture(t *testing.T) {
	if testing.Short() {
		t.Skip("builds olafctl three times")
	}
	if runtime.GOARCH != "amd64" || !cpu.X86.HasFMA {
		t.Skip("the reference is amd64 with FMA")
	}
	t.Parallel()
	reference := &builtOlafctl{binary: buildFor(t, "GOARCH=amd64", "GOAMD64=v1"), store: t.TempDir()}
	lines := slices.Clone(alike)
	if solver, err := peer.FindProgram("z3"); solver == "" {
		if err != nil {
			t.Error(err)
		}
		lines = slices.DeleteFunc(lines, func(line string) bool { return line == verifyLine })
	}
	want := map[string][]byte{}
	for _, line := range lines {
		want[line] = reference.output(t, line)
	}
	for _, other := range otherBuilds {
		t.Run(other.name, func(t *testing.T) {
			t.Parallel()
			p := &builtOlafctl{store: t.TempDir(), env: other.run, binary: reference.binary}
			if other.through != nil {
				p.through = other.through(t)
			}
			if other.build != nil {
				p.binary = buildFor(t, other.build...)
			}
			for _, line := range lines {
				if line == sweepLine && p.through != nil {
					continue // worker processes are not started through the emulator
				}
				if have := p.output(t, line); !bytes.Equal(have, want[line]) {
					t.Errorf("olafctl %s prints other bytes than on the reference: %s", line, firstDifference(have, want[line]))
				}
			}
			p.store = reference.store
			for _, run := range reference.kept(t) {
				p.output(t, "runs verify "+run)
			}
		})
	}
}

// buildFor builds olafctl with an environment.
func buildFor(t *testing.T, env ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "olafctl")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, ".")
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build for %s: %v\n%s", strings.Join(env, " "), err, out)
	}
	return binary
}

// builtOlafctl is a program with its store, which is also its folder.
type builtOlafctl struct {
	binary, store string
	through, env  []string
}

// output runs a command, which must succeed, and returns its output without volatile lines.
func (p *builtOlafctl) output(t *testing.T, line string) []byte {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.store, "sweep.yaml"), []byte(archSweep), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append(append([]string{}, p.through...), p.binary)
	args = append(args, strings.Fields(line)...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = p.store
	cmd.Env = append(append(os.Environ(), "OLAFCTL_HOME="+p.store, "OLAFCTL_CONFIG="+os.DevNull), p.env...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("olafctl %s: %v\n%s%s", line, err, out, complaint.Bytes())
	}
	return volatile.ReplaceAll(out, nil)
}

// kept returns the ids of the stored runs.
func (p *builtOlafctl) kept(t *testing.T) (runs []string) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(p.store, "runs", "2*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("the reference kept no runs: %v", err)
	}
	for _, f := range folders {
		runs = append(runs, filepath.Base(f))
	}
	return runs
}

// firstDifference returns the first differing line from both outputs.
func firstDifference(have, want []byte) string {
	a, b := strings.Split(string(have), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return strings.TrimSpace(a[i]) + ", want " + strings.TrimSpace(b[i])
		}
	}
	return "one ends before the other"
}

// TestDifferencesNameTheArchitecture checks that a difference in a training run is explained by the architecture,
// naming both builds, unless the architecture is the same.
func TestDifferencesNameTheArchitecture(t *testing.T) {
	differs := fmt.Errorf("%w: the curves differ", archive.ErrMismatch)
	kept := &results.Provenance{Version: "v1.2.3", Go: "go1.30", System: "linux/riscv64"}
	err := traincmd.ExplainArchitecture(differs, kept, "linux/amd64")
	if errors.Is(err, archive.ErrMismatch) || !errors.Is(err, traincmd.ErrArchitecture) {
		t.Errorf("another architecture: got %v, want no mismatch", err)
	}
	for _, want := range []string{"v1.2.3", "go1.30", "linux/riscv64", cli.ToolVersion(), "linux/amd64"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	if err := traincmd.ExplainArchitecture(differs, kept, kept.System); !errors.Is(err, archive.ErrMismatch) {
		t.Errorf("the same architecture: got %v, want the mismatch", err)
	}
}
