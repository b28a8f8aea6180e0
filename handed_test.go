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

// TestSetsAreHandedDown checks that sets of systems and programs are built only in main packages and generators; all
// other code gets them as parameters.
func TestSetsAreHandedDown(t *testing.T) {
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

// TestAsks checks that TestSetsAreHandedDown finds every kind of use.
func TestAsks(t *testing.T) {
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
