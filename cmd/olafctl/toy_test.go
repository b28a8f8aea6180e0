package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
)

// toyRows contains the table rows that the recipes in docs/reference/extending.md add, in addition to the files in
// testdata/toy/toys.txtar and generated code. They add two queues, a switch program, a system, a device and an export
// format.
var toyRows = []struct{ file, after, row string }{
	{"fpga/engine/disciplines.go", "{Name: \"fifo\", Code: 0, make: newFIFO},\n", "{Name: \"half\", Code: 2, make: newHalf},\n{Name: \"deaf\", Code: 3, make: newDeaf},\n"},
	{"fpga/program/programs/programs.go", "\t\"github.com/olafctl/olaf/fpga/program\"\n", "\t\"github.com/olafctl/olaf/fpga/program/echo\"\n"},
	{"fpga/program/programs/programs.go", "xagg.Describe()", ", echo.Describe()"},
	{"experiments/system/system.go", "all := Set{", "echoSystem(), "},
	{"cmd/olafctl/devices.go", "backends.RTLDevice(), ", "backends.Toy(), "},
	{"results/export/formats.go", "var formats = []Format{\n", "listMarkdown,\n"},
}

// TestToys builds the program with additional queues, a switch program, a system, a device and an export format,
// without other changes to the tree, and checks that every command can use them. The additions in this test are the
// cost of adding a new one.
func TestToys(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program again")
	}
	b := &builder{t: t, root: filepath.Join("..", ".."), dir: t.TempDir(), replace: map[string]string{}}
	for _, r := range toyRows {
		b.insert(r.file, r.after, r.row)
	}
	script, err := txtar.ParseFile(filepath.Join("testdata", "toy", "toys.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range script.Files {
		if strings.HasSuffix(f.Name, ".go") {
			b.file(f.Name, string(f.Data))
		}
	}
	b.generate()
	bin := b.build("./cmd/olafctl", "bin/olafctl")
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "toy"),
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "find": find},
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(bin)+string(filepath.ListSeparator)+env.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_DATA_HOME", filepath.Join(env.WorkDir, "data"))
			return nil
		},
	})
}

// TestAddingADepartureOrder adds a queue that serves the newest update first, with a file and two rows, and runs the
// engine's comparison with the slow reference on random traffic.
func TestAddingADepartureOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the engine's tests again")
	}
	b := &builder{t: t, root: filepath.Join("..", ".."), dir: t.TempDir(), replace: map[string]string{}}
	b.insert("fpga/engine/disciplines.go", "{Name: \"fifo\", Code: 0, make: newFIFO},\n", "{Name: \"lcfs\", Code: 2, make: newLCFS},\n")
	b.insert("fpga/engine/enginetest/reference.go", "var rules = map[string]rule{", "\"lcfs\": {place: func(int) int { return 0 }}, ")
	b.file("fpga/engine/lcfs.go", lastComeFirstServed)
	b.run(b.root, "go", "test", "-vet=off", "-overlay", b.overlay(), "-run", "TestPortEqualsReference", "./fpga/engine")
}

// TestAddingADashboardPage adds a page in the middle of the dashboard, with a file and a row, and runs the dashboard's
// tests. Only a golden file with the tab bar may change.
func TestAddingADashboardPage(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the dashboard's tests again")
	}
	b := &builder{t: t, root: filepath.Join("..", ".."), dir: t.TempDir(), replace: map[string]string{}}
	b.insert("tui/queues/queues.go", "s.devicesPage(), ", "s.sentPage(), ")
	b.file("tui/queues/sent.go", sentPage)
	b.file("tui/queues/sent_test.go", sentPageTest)
	b.run(b.root, "go", "test", "-vet=off", "-overlay", b.overlay(), "-skip", "TestPages/form", "./tui/queues")
}

const sentPage = `package queues

import (
	"fmt"

	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

func (s *session) sentPage() tui.Page {
	return tui.Page{Title: "Sent", About: "The number of updates that were sent.", Draw: func(_ *tui.Frame, r screen.Region) {
		if s.snapshot != nil {
			r.Text(0, 0, theme.Text, fmt.Sprintf("%d updates sent so far", s.snapshot.Sent))
		}
	}}
}
`

const sentPageTest = `package queues

import (
	"strings"
	"testing"
)

func TestSentPage(t *testing.T) {
	text := shown(at(t, instant, nil), 160, 40, nil).open("Sent").Text()
	for _, want := range []string{"updates sent so far", "6 Sent", "7 Results"} {
		if !strings.Contains(text, want) {
			t.Errorf("the new page or its tab lacks %q:\n%s", want, text)
		}
	}
}
`

// lastComeFirstServed moves each arrival ahead of the waiting updates.
const lastComeFirstServed = `package engine

import "github.com/olafctl/olaf"

type lcfs struct{ fifo }

func newLCFS(cfg Config) Discipline { return &lcfs{fifo{store: newStore(cfg)}} }

func (l *lcfs) Offer(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Outcome {
	o := l.fifo.Offer(now, u, lanes, inside)
	if o.Class != Appended {
		return o
	}
	for k := l.waiting - 1; k > 0; k-- {
		a, b := l.wrap(l.head+k), l.wrap(l.head+k-1)
		l.places[a], l.places[b] = l.places[b], l.places[a]
		for i := range int32(l.stride) {
			x, y := a*int32(l.stride)+i, b*int32(l.stride)+i
			l.lanes[x], l.lanes[y] = l.lanes[y], l.lanes[x]
		}
	}
	o.Slot = Slot(l.head)
	return o
}
`

// builder builds with some files of the tree replaced.
type builder struct {
	t         *testing.T
	root, dir string
	replace   map[string]string
}

// insert adds a row to a file, which may already have additions.
func (b *builder) insert(name, after, row string) {
	b.t.Helper()
	path := filepath.Join(b.root, filepath.FromSlash(name))
	if _, err := os.Stat(filepath.Join(b.dir, filepath.FromSlash(name))); err == nil {
		path = filepath.Join(b.dir, filepath.FromSlash(name))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), after)
	if !found {
		b.t.Fatalf("%s has no %q", name, after)
	}
	b.file(name, before+after+row+rest)
}

// file replaces or adds a file.
func (b *builder) file(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.put(name)
}

// put copies an existing file.
func (b *builder) put(name string) {
	b.t.Helper()
	original, err := filepath.Abs(filepath.Join(b.root, filepath.FromSlash(name)))
	if err != nil {
		b.t.Fatal(err)
	}
	b.replace[original] = filepath.Join(b.dir, filepath.FromSlash(name))
}

// generate runs go generate ./fpga/regmap.
func (b *builder) generate() {
	b.t.Helper()
	gen := b.build("./fpga/regmap/gen", "gen")
	if err := os.MkdirAll(filepath.Join(b.dir, "docs", "reference"), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(b.dir, "fpga", "regmap"), 0o755); err != nil {
		b.t.Fatal(err)
	}
	b.run(filepath.Join(b.dir, "fpga", "regmap"), gen)
	b.put("fpga/regmap/registers.go")
	b.put("fpga/regmap/olaf_regs.svh")
}

func (b *builder) build(pkg, to string) string {
	b.t.Helper()
	out := filepath.Join(b.dir, filepath.FromSlash(to))
	b.run(b.root, "go", "build", "-overlay", b.overlay(), "-o", out, pkg)
	return out
}

// overlay writes the list of replaced files for the go command and returns its path.
func (b *builder) overlay() string {
	b.t.Helper()
	overlay, err := json.Marshal(map[string]any{"Replace": b.replace})
	if err != nil {
		b.t.Fatal(err)
	}
	list := filepath.Join(b.dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return list
}

func (b *builder) run(dir, name string, args ...string) {
	b.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
