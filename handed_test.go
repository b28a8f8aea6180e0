package olaf_test

import (
	"go/ast"
	"path/filepath"
	"strings"
	"testing"
)

// asking are the files below cmd that build the set of systems, or of programs, in place of being handed it, each with its reason.
// A name on this list is a debt: nothing new goes there.
var asking = map[string]string{
	"experiments/netsim/station.go":  "a topology names its system, and is read without the set",
	"experiments/netsim/waiting.go":  "a topology names its system, and is read without the set",
	"experiments/netsim/schema.go":   "the schema of that file",
	"experiments/job/plan.go":        "a job that is read from JSON names its system",
	"experiments/lot/training.go":    "a training that is read from JSON names its system",
	"experiments/bench/file.go":      "the schema of a specification",
	"experiments/bench/spec.go":      "a specification without Systems takes those of this build",
	"experiments/bench/lot.go":       "a specification that is read from JSON comes without Systems",
	"experiments/testbed/device.go":  "an Access without Programs takes those of this build",
	"fpga/regmap/gen/disciplines.go": "a program by itself, which writes the register map of this build",
}

// TestSetsAreHandedDown reads every file that is no test: only cmd and papers build the sets of systems and programs, and
// whoever is below is handed them.
func TestSetsAreHandedDown(t *testing.T) {
	found := map[string]bool{}
	for folder, files := range sources(t) {
		folder = filepath.ToSlash(folder)
		if strings.HasPrefix(folder, "cmd/") || strings.HasPrefix(folder, "experiments/paper/") {
			continue
		}
		for file, tree := range files {
			if file = filepath.ToSlash(file); !asks(tree) {
				continue
			}
			if found[file] = true; asking[file] == "" {
				t.Errorf("%s builds the set of what there is: take it as a value from who calls (docs/extending.md)", file)
			}
		}
	}
	for file := range asking {
		if !found[file] {
			t.Errorf("%s is listed, and is handed what it needs: take it off the list", file)
		}
	}
}

// asks says whether a file mentions one of the functions that build a set.
func asks(tree *ast.File) (found bool) {
	ast.Inspect(tree, func(n ast.Node) bool {
		if f, ok := n.(*ast.SelectorExpr); ok && f.Sel.Name == "All" {
			of, ok := f.X.(*ast.Ident)
			found = found || ok && (of.Name == "system" || of.Name == "programs")
		}
		return !found
	})
	return found
}
