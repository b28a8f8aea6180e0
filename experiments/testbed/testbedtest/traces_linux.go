package testbedtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// Traces are possible leftovers of a testbed: programs in the kernel, interfaces, mounts, processes.
type Traces struct {
	programs      map[ebpf.ProgramID]bool
	links, mounts string
}

// RecordTraces records the state before a testbed.
func RecordTraces(t testing.TB) *Traces {
	t.Helper()
	tr := &Traces{programs: map[ebpf.ProgramID]bool{}, links: linkNames(t), mounts: namespaceMounts(t)}
	for _, id := range testbedPrograms() {
		tr.programs[id] = true
	}
	return tr
}

// patience is the longest time for the kernel to clean up: it removes namespaces and programs some time after their
// last descriptor.
const patience = time.Minute

// AwaitGone waits until nothing remains of processes with a marker in their environment: no process, no program without
// an owner, no interface in this namespace, no mount of a namespace.
func (tr *Traces) AwaitGone(t testing.TB, marker string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) { // there is no notification
		left := tr.findLeft(t, marker)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind: %s", strings.Join(left, "; "))
		}
	}
}

func (tr *Traces) findLeft(t testing.TB, marker string) (findLeft []string) {
	processes, held := listDescriptors(t, marker)
	findLeft = append(findLeft, processes...)
	for _, id := range testbedPrograms() {
		if !tr.programs[id] && !held[fmt.Sprint(uint32(id))] {
			findLeft = append(findLeft, fmt.Sprintf("program %d, which no process holds", id))
		}
	}
	if now := linkNames(t); now != tr.links {
		findLeft = append(findLeft, fmt.Sprintf("interfaces %s, were %s", now, tr.links))
	}
	if now := namespaceMounts(t); now != tr.mounts {
		findLeft = append(findLeft, "mounts "+now)
	}
	return findLeft
}

// ours contains the names of the programs that a testbed attaches.
var ours = []string{"arrive", "pass"}

// testbedPrograms returns all programs in the kernel with a testbed's names.
func testbedPrograms() (ids []ebpf.ProgramID) {
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // gone meanwhile
		}
		if info, err := p.Info(); err == nil && slices.Contains(ours, info.Name) {
			ids = append(ids, id)
		}
		_ = p.Close()
	}
	return ids
}

// listDescriptors returns the processes with a marker in their environment, and the kernel programs that any process
// has open.
func listDescriptors(t testing.TB, marker string) (marked []string, held map[string]bool) {
	held = map[string]bool{}
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range entries { // any of them may end meanwhile
		if environment, _ := os.ReadFile(process + "/environ"); bytes.Contains(environment, []byte(marker)) {
			marked = append(marked, "process "+filepath.Base(process))
		}
		files, _ := filepath.Glob(process + "/fdinfo/*")
		for _, f := range files {
			text, _ := os.ReadFile(f)
			for line := range strings.Lines(string(text)) {
				if id, ok := strings.CutPrefix(line, "prog_id:"); ok {
					held[strings.TrimSpace(id)] = true
				}
			}
		}
	}
	return marked, held
}

// linkNames returns the names of the interfaces in this namespace.
func linkNames(t testing.TB) string {
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// namespaceMounts returns the mounts of namespaces, which would keep them alive.
func namespaceMounts(t testing.TB) string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var of []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, " nsfs ") {
			of = append(of, strings.TrimSpace(line))
		}
	}
	return strings.Join(of, "; ")
}
