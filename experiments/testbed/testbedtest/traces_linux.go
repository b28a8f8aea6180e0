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

// Traces records what a testbed could leave behind: programs in the kernel, interfaces, mounts and processes.
type Traces struct {
	programs      map[ebpf.ProgramID]bool
	links, mounts string
}

// RecordTraces records the state of this machine before a testbed is built.
func RecordTraces(t testing.TB) *Traces {
	t.Helper()
	tr := &Traces{programs: map[ebpf.ProgramID]bool{}, links: linkNames(t), mounts: namespaceMounts(t)}
	for _, id := range testbedPrograms() {
		tr.programs[id] = true
	}
	return tr
}

// patience is the longest time that the kernel may take to clean up. It removes namespaces and programs some time after
// their last descriptor was closed.
const patience = time.Minute

// AwaitGone waits until nothing is left of processes that have the marker in their environment. There must be no such
// process, no program without an owner, no interface in this namespace, and no mount of a namespace.
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

func (tr *Traces) findLeft(t testing.TB, marker string) (left []string) {
	processes, held := listDescriptors(t, marker)
	left = append(left, processes...)
	for _, id := range testbedPrograms() {
		if !tr.programs[id] && !held[fmt.Sprint(uint32(id))] {
			left = append(left, fmt.Sprintf("program %d, which no process holds", id))
		}
	}
	if now := linkNames(t); now != tr.links {
		left = append(left, fmt.Sprintf("interfaces %s, were %s", now, tr.links))
	}
	if now := namespaceMounts(t); now != tr.mounts {
		left = append(left, "mounts "+now)
	}
	return left
}

// ours contains the names of the programs that testbeds attach.
var ours = []string{"arrive", "pass"}

// testbedPrograms returns the ids of all programs in the kernel that have the name of a testbed's program.
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

// listDescriptors returns the processes that have the marker in their environment, and the kernel programs that any
// process has open.
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

// namespaceMounts returns the mounts of namespaces. A mount would keep its namespace alive.
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
