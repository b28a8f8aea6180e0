package olaf_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestTemporaryFilesAreSwept reads every file of the product: what is made in the folder that all programs share for a while
// is made by internal/tempfolder, which sweeps away what killed processes left there.
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
				if !slices.Contains([]string{"internal/tempfolder", "internal/tools/mutate"}, folder) { // the latter is of developers
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

// temporary tells whether a call makes a file or folder where all programs make theirs.
func temporary(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	of, _ := f.X.(*ast.Ident)
	where, shared := call.Args[0].(*ast.BasicLit)
	return of != nil && of.Name == "os" && strings.HasSuffix(f.Sel.Name, "Temp") && shared && where.Value == `""`
}
