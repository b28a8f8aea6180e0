package olaf_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// builders lists, by package, the functions that build a set of systems or programs, or look something up in one that
// they build.
var builders = map[string][]string{
	"github.com/olafctl/olaf/experiments/system":    {"All"},
	"github.com/olafctl/olaf/fpga/program/programs": {"AllPrograms"},
}

// TestSetsArePassedAsArguments checks that sets of systems and programs are built only in main packages and generators;
// all other code gets them as parameters.
func TestSetsArePassedAsArguments(t *testing.T) {
	for _, files := range sources(t) {
		for file, tree := range files {
			if !begins(file, tree) && asks(tree) {
				t.Errorf("%s builds the set of what there is: take it as a value from who calls (docs/reference/extending.md)",
					filepath.ToSlash(file))
			}
		}
	}
}

// begins reports whether a file is the start of a program or of a generator.
func begins(file string, tree *ast.File) bool {
	return tree.Name.Name == "main" && (filepath.Base(file) == "main.go" || !strings.HasPrefix(filepath.ToSlash(file), "cmd/"))
}

// openers lists the packages that open devices. Rooms get open functions through the table of devices that cmd builds,
// so that they do not depend on the libraries of devices that they do not use.
var openers = []string{"backends", "fpga/host", "fpga/pcie", "fpga/playback", "fpga/realtime", "fpga/rtl", "fpga/xdp"}

// parts lists the openers that rooms import for other parts than devices: programs of the kernel and paced links, which
// testbeds from files and loops on real wires place between hosts.
var parts = map[string][]string{
	"experiments/bench/wired":      {"fpga/host", "fpga/realtime"},
	"experiments/testbed/demo":     {"fpga/xdp"},
	"experiments/testbed/lab":      {"fpga/realtime", "fpga/xdp"},
	"experiments/testbed/saturate": {"fpga/xdp"},
}

// TestOnlyCommandsImportBackends checks that only the programs in cmd import rows of the table of devices, and that
// rooms do not import the packages that open devices. Tests and their helpers may.
func TestOnlyCommandsImportBackends(t *testing.T) {
	for folder, files := range sources(t) {
		folder = filepath.ToSlash(folder)
		have := map[string]bool{}
		for _, tree := range files {
			for _, i := range tree.Imports {
				opener, _ := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/")
				have[opener] = tree.Name.Name != "main" && slices.Contains(openers, opener)
			}
		}
		top, _, _ := strings.Cut(folder, "/")
		for _, opener := range openers {
			allowed := slices.Contains(parts[folder], opener)
			switch {
			case have[opener] == allowed, strings.HasSuffix(folder, "test"):
			case allowed:
				t.Errorf("%s no longer imports %s: remove it from parts", folder, opener)
			case opener == "backends" || top != "backends" && top != "fpga" && top != "cmd":
				t.Errorf("%s imports %s: let cmd hand in a row of the table of devices (docs/reference/architecture.md)", folder, opener)
			}
		}
	}
}

// asks reports whether a file mentions one of the builders, under any import name. A dot import counts as a mention.
func asks(tree *ast.File) (found bool) {
	named := map[string][]string{}
	for _, i := range tree.Imports {
		of, err := strconv.Unquote(i.Path.Value)
		if err != nil || builders[of] == nil {
			continue
		}
		name := path.Base(of)
		if i.Name != nil {
			name = i.Name.Name
		}
		found, named[name] = found || name == ".", builders[of]
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if f, ok := n.(*ast.SelectorExpr); ok {
			of, ok := f.X.(*ast.Ident)
			found = found || ok && slices.Contains(named[of.Name], f.Sel.Name)
		}
		return !found
	})
	return found
}

// TestSetUsesAreFound checks that TestSetsArePassedAsArguments finds every kind of use.
func TestSetUsesAreFound(t *testing.T) {
	const systems, all = `"github.com/olafctl/olaf/experiments/system"`, `"github.com/olafctl/olaf/fpga/program/programs"`
	for text, want := range map[string]bool{
		"import " + systems + "; var x = system.All()":                    true,
		"import " + systems + "; var x system.Set":                        false,
		"import s " + systems + "; var x = s.All()":                       true,
		"import . " + systems + "; var x = All()":                         true,
		"import system " + all + "; var x = system.AllPrograms()":         true,
		"import " + all + "; var x = programs.AllPrograms":                true,
		`import "example.com/system"; var x = system.All()`:               false,
		"import s " + systems + `; import "system"; var x = system.All()`: false,
	} {
		tree, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if have := asks(tree); have != want {
			t.Errorf("%s: asks is %v", text, have)
		}
	}
}
