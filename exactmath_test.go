package olaf_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inexact lists the functions of math whose last bits differ between architectures or build levels.
var inexact = strings.Fields(`Acos Acosh Asin Asinh Atan Atan2 Atanh Cbrt Cos Cosh Erf Erfc Erfcinv Erfinv Exp Exp2 Expm1 Gamma
	Hypot J0 J1 Jn Lgamma Log Log10 Log1p Log2 Logb Pow Sin Sincos Sinh Tan Tanh Y0 Y1 Yn`)

// TestDrawsAndResultsUseExactMath rejects inexact functions in all code that draws random numbers, measures or prints.
// Exceptions are training, which depends on its architecture, and figures, which are drawn to fewer digits.
func TestDrawsAndResultsUseExactMath(t *testing.T) {
	files := 0
	for _, folder := range []string{"results", "experiments", "pktgen", "capture", "fpga"} {
		err := filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
			switch p := filepath.ToSlash(p); {
			case err != nil:
				return err
			case p == "results/figure" || p == "experiments/rl":
				return filepath.SkipDir
			case strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_test.go"):
				files++
				checkExactMath(t, p)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Fatalf("only %d Go files found: the walk is broken", files)
	}
}

// checkExactMath fails if a file calls an inexact function.
func checkExactMath(t *testing.T, file string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range tree.Imports {
		for _, of := range []string{"stat", "mathext", "floats"} {
			if strings.HasPrefix(i.Path.Value, `"gonum.org/v1/gonum/`+of) {
				t.Errorf("%s imports %s: add the function to internal/exactmath, with the same bits everywhere", file, i.Path.Value)
			}
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		f, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, _ := f.X.(*ast.Ident)
		switch name := f.Sel.Name; {
		case of != nil && of.Name == "exactmath":
		case of != nil && of.Name == "math" && slices.Contains(inexact, name), name == "NormFloat64", name == "ExpFloat64":
			t.Errorf("%s calls %s, whose bits differ between architectures: call exactmath.%s", file, name, name)
		}
		return true
	})
}
