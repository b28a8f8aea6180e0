package olaf_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestTemporaryFilesAreSwept checks that only internal/tempfolder makes files in the shared temporary folder; it
// removes the leftovers of killed processes.
func TestTemporaryFilesAreSwept(t *testing.T) {
	made := 0
	for folder, files := range sources(t) {
		for path, tree := range files {
			ast.Inspect(tree, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !temporary(call) {
					return true
				}
				made++
				if !slices.Contains([]string{"internal/tempfolder", "internal/tools/mutate"}, folder) { // mutate is only for developers
					t.Errorf("%s leaves files behind when it is killed: use internal/tempfolder", path)
				}
				return true
			})
		}
	}
	if made == 0 {
		t.Error("not even internal/tempfolder was found: the search is broken")
	}
}

// temporary reports whether a call makes a file or folder in the shared temporary folder.
func temporary(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	of, _ := f.X.(*ast.Ident)
	where, shared := call.Args[0].(*ast.BasicLit)
	return of != nil && of.Name == "os" && strings.HasSuffix(f.Sel.Name, "Temp") && shared && where.Value == `""`
}
