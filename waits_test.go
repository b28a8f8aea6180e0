package olaf_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// waits lists the tests and test helpers that let time pass, and why they cannot await an event instead: a channel, a
// context, a line from a child, a pipe, or the time of a bubble (testing/synctest).
var waits = map[string]string{
	"capture/probe_test.go Next":                                             "the time is a bubble's",
	"cmd/olafctl/script_store_test.go find":                                  "another process makes the file, below folders that are not there yet and so can't be watched",
	"cmd/olafctl/far_cost_linux_test.go delayCopy":                           "the time is that of the cable",
	"cmd/olafctl/held_linux_test.go TestHoldersShareDevices":                 "agents and holders on other hosts end, and notify only their own heads",
	"cmd/olafctl/testbed_roles_linux_test.go sendARP":                        "other frames come at any time of a run",
	"cmd/olafctl/testbed_roles_linux_test.go TestHoldersOutliveTheirHead":    "an agent on another host starts, and notifies only its own head",
	"cmd/olafctl/hosts_linux_test.go harm":                                   "how long the cable is dead is the fault itself",
	"cmd/olafctl/hosts_linux_test.go harmBench":                              "a process is killed at any moment of its life, drawn by a seed",
	"experiments/testbed/saturate/hop_linux_test.go measureUsage":            "a processor that sleeps between packets is what is measured",
	"experiments/testbed/sshlink/lifeline_test.go TestAgentEndsAfterSilence": "the time is a bubble's",
	"experiments/bench/card_live_linux_test.go Wait":                         "it is the clock that the card lives by",
	"experiments/sweep/queue/queue_test.go awaitCount":                       "a machine's own count follows the result that others see, and nothing tells of it",
	"experiments/testbed/testbedtest/hosts_linux.go AwaitIdle":               "processes of other namespaces end, and tell nobody",
	"experiments/testbed/testbedtest/traces_linux.go AwaitGone":              "the kernel frees programs and mounts of namespaces some time after their last descriptor, and tells nobody",
	"fpga/pcie/pcivm/card_test.go live":                                      "it is the clock that the card lives by",
	"fpga/netlab/netlabtest/pair_linux.go Cut":                               "how long the cable is dead is the fault itself",
	"fpga/realtime/clock_linux_test.go TestClockOf":                          "a reading is held up, as a busy machine does it; the clock is the kernel's",
	"fpga/realtime/faults_linux_test.go TestStalledPacer":                    "a pacer is held up, and what it counts under way tells nobody",
	"fpga/xdp/aggregator_linux_test.go interleave":                           "a program of the kernel writes a word of a map, and tells nobody",
	"fpga/xdp/attach_linux_test.go expectSum":                                "a program of the kernel writes a word of a map, and tells nobody",
	"fpga/xdp/sums_linux_test.go start":                                      "the end of its patience with a child that says nothing",
	"fpga/xdp/sums_linux_test.go vector":                                     "a process is killed at any moment of its life, drawn by a seed",
	"p4ctl/agent/listen_test.go TestStopWaits":                               "whoever did not wait for this handler would be earlier, and what does not happen is no event",
	"p4ctl/script_test.go TestPausesGrow":                                    "the time is a bubble's",
	"p4ctl/script_test.go TestSessionTranscripts":                            "the time is a bubble's",
	"p4ctl/session_test.go await":                                            "the end of its patience with events of another kind",
	"tui/queues/queues_test.go BenchmarkBench":                               "a dashboard is drawn as often as on a terminal while a bench is timed",
	"tui/queues/queues_test.go Tick":                                         "a dashboard is drawn as often as on a terminal while a bench is timed",
}

// waiting lists the functions that let time pass. time.After in a select only bounds a hang.
var waiting = map[string]bool{"time.Sleep": true, "time.After": true, "time.Tick": true, "time.NewTicker": true, "time.NewTimer": true,
	"time.AfterFunc": true, "runtime.Gosched": true, "unix.Nanosleep": true}

// slept matches a script's command that lets time pass.
var slept = regexp.MustCompile(`\bsleep\s+[0-9.$]`)

// TestNothingWaitsForTime reads every test, every test helper (folders with names in test), and every script of
// commands, and rejects waits that are not listed.
func TestNothingWaitsForTime(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		p = filepath.ToSlash(p)
		switch {
		case err != nil || d.IsDir():
			return err
		case strings.HasSuffix(p, ".txtar"):
			text, err := os.ReadFile(p)
			if slept.Match(text) {
				t.Errorf("%s sleeps", p)
			}
			return err
		case strings.HasSuffix(p, "_test.go"), strings.HasSuffix(p, ".go") && strings.HasSuffix(path.Dir(p), "test"):
			return whoWaits(p, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for who := range found {
		if waits[who] == "" {
			t.Errorf("%s lets time pass: await an event instead, or say in waits why there is none", who)
		}
	}
	for who := range waits {
		if !found[who] {
			t.Errorf("%s lets no time pass any more: take it off waits", who)
		}
	}
}

// whoWaits finds the functions of a test file that let time pass.
func whoWaits(file string, found map[string]bool) error {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CommClause); ok && c.Comm != nil && isBound(c.Comm) {
				for _, s := range c.Body {
					ast.Inspect(s, func(n ast.Node) bool { return noted(n, file, f, found) })
				}
				return false
			}
			return noted(n, file, f, found)
		})
	}
	return nil
}

// noted records a call that lets time pass.
func noted(n ast.Node, file string, f *ast.FuncDecl, found map[string]bool) bool {
	if call, ok := n.(*ast.CallExpr); ok && waiting[called(call)] {
		found[fmt.Sprintf("%s %s", file, f.Name.Name)] = true
	}
	return true
}

// isBound reports whether a case of a select is a timeout.
func isBound(s ast.Stmt) bool {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	receive, ok := e.X.(*ast.UnaryExpr)
	if !ok {
		return false
	}
	call, ok := receive.X.(*ast.CallExpr)
	return ok && called(call) == "time.After"
}

// called returns PACKAGE.FUNCTION for a call.
func called(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	of, ok := f.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return of.Name + "." + f.Sel.Name
}
