package olaf_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tenants returns the names of disciplines, switch programs, papers and baselines: the rows of package engine, the
// folders of papers and programs, and the unpublished systems.
func tenants(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, file := range []string{"fpga/engine/disciplines.go", "experiments/system/baselines.go"} {
		rows, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for row := range rowNames(rows) {
			names[row] = true
		}
	}
	for _, folder := range []string{"fpga/program", "experiments/paper"} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() && e.Name() != "vector" && e.Name() != "versus" {
				names[e.Name()] = true
			}
		}
	}
	return names
}

// rowNames returns the names that a file declares in literals of disciplines (with a code) and systems (with a
// discipline).
func rowNames(file *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		row, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		fields := map[string]ast.Expr{}
		for _, e := range row.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok {
					fields[key.Name] = pair.Value
				}
			}
		}
		if text, ok := fields["Name"].(*ast.BasicLit); ok && (fields["Code"] != nil || fields["Discipline"] != nil) {
			name, _ := strconv.Unquote(text.Value)
			names[name] = true
		}
		return true
	})
	return names
}

// TestNoCodeComparesNames checks that no code outside tests compares the name of a system, program or discipline, since
// its descriptor declares what it can do. Files and folders named after one may use its name.
func TestNoCodeComparesNames(t *testing.T) {
	names := tenants(t)
	if !names["fifo"] || !names["olaf"] || !names["iswitch"] || !names["ring"] {
		t.Fatalf("only %v are known: the search is broken", names)
	}
	found, all := 0, sources(t)
	elsewhere := map[string]string{} // constants of all packages, under their qualified names
	for _, files := range all {
		for _, tree := range files {
			for constant, name := range namedConstants(files, names) {
				elsewhere[tree.Name.Name+"."+constant] = name
			}
		}
	}
	for _, files := range all {
		constants := namedConstants(files, names)
		maps.Copy(constants, elsewhere)
		for file, tree := range files {
			for _, name := range compared(tree, names, constants) {
				found++
				if !named(file, names) {
					t.Errorf("%s compares with %q: ask its descriptor for what matters here (docs/reference/extending.md)", file, name)
				}
			}
		}
	}
	t.Logf("%d comparisons, all in files of their own", found)
}

// named reports whether a file or one of its folders has one of the names.
func named(file string, names map[string]bool) bool {
	parts := strings.Split(strings.TrimSuffix(filepath.ToSlash(file), ".go"), "/")
	return slices.ContainsFunc(parts, func(part string) bool { return names[part] })
}

// TestNameComparisonsAreFound checks that each way to compare is found.
func TestNameComparisonsAreFound(t *testing.T) {
	names := map[string]bool{"olaf": true}
	for source, want := range map[string]int{
		`if q == "olaf" {}`:                                 1,
		`if "olaf" != q {}`:                                 1,
		`switch q { case "a", "olaf": }`:                    1,
		`if strings.HasPrefix(id, "olaf/") {}`:              1,
		`if strings.EqualFold(q, "OLAF") {}`:                1,
		`if _, ok := strings.CutPrefix(q, "olaf "); ok {}`:  1,
		`if slices.Contains([]string{"olaf"}, q) {}`:        1,
		`if map[string]bool{"olaf": true}[q] {}`:            1,
		`const mine = "olaf"; if q == mine {}`:              1,
		`const mine Kind = "olaf"; switch q { case mine: }`: 1,
		`if q == string(queues.Olaf) {}`:                    0, // the constant's package is checked instead
		`x := Row{Name: "olaf"}; _ = x`:                     0,
		`run("olaf", 3)`:                                    0,
		`q = cmp.Or(q, "olaf")`:                             0,
		`if q == "olafctl" {}`:                              0,
	} {
		tree, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {"+source+"}", 0)
		if err != nil {
			t.Fatal(source, err)
		}
		constants := namedConstants(map[string]*ast.File{"x.go": tree}, names)
		if name, ok := constants["mine"]; ok {
			constants["x.mine"] = name
		}
		if got := len(compared(tree, names, constants)); got != want {
			t.Errorf("%s: %d comparisons, want %d", source, got, want)
		}
	}
}

// sources parses all files that are not tests, by folder and path.
func sources(t *testing.T) map[string]map[string]*ast.File {
	all, count := map[string]map[string]*ast.File{}, 0
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := filepath.Dir(p)
		if all[folder] == nil {
			all[folder] = map[string]*ast.File{}
		}
		all[folder][p] = tree
		count++
		return nil
	})
	if err != nil || count < 100 {
		t.Fatalf("%d files: %v", count, err)
	}
	return all
}

// namedConstants returns the constants of a package whose value is one of the names.
func namedConstants(files map[string]*ast.File, names map[string]bool) map[string]string {
	found := map[string]string{}
	for _, tree := range files {
		ast.Inspect(tree, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, value := range spec.Values {
					if name, ok := tenant(value, names, nil); ok && i < len(spec.Names) {
						found[spec.Names[i].Name] = name
					}
				}
			}
			return true
		})
	}
	return found
}

// tenant returns the name that an expression evaluates to. A name in front of a slash or a space counts, as in an
// experiment's id.
func tenant(e ast.Expr, names map[string]bool, constants map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.Ident:
		name, ok := constants[e.Name]
		return name, ok
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			name, ok := constants[of.Name+"."+e.Sel.Name]
			return name, ok
		}
	case *ast.CallExpr: // a conversion
		if to, ok := e.Fun.(*ast.Ident); ok && to.Name == "string" && len(e.Args) == 1 {
			return tenant(e.Args[0], names, constants)
		}
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		word, _, _ := strings.Cut(strings.ToLower(text), "/")
		word, _, _ = strings.Cut(word, " ")
		return word, err == nil && e.Kind == token.STRING && names[word]
	}
	return "", false
}

// comparing lists the packages whose functions compare texts or derive one from others.
var comparing = []string{"strings", "slices", "bytes", "cmp"}

// compared lists the names that a file compares with.
func compared(tree *ast.File, names map[string]bool, constants map[string]string) (found []string) {
	look := func(of ...ast.Expr) {
		for _, e := range of {
			if name, ok := tenant(e, names, constants); ok {
				found = append(found, name)
			}
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				look(n.X, n.Y)
			}
		case *ast.CaseClause:
			look(n.List...)
		case *ast.IndexExpr:
			if set, ok := n.X.(*ast.CompositeLit); ok {
				look(elements(set)...)
			}
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			if of, ok := f.X.(*ast.Ident); !ok || !slices.Contains(comparing, of.Name) || f.Sel.Name == "Or" {
				break
			}
			look(n.Args...)
			for _, arg := range n.Args {
				if set, ok := arg.(*ast.CompositeLit); ok {
					look(elements(set)...)
				}
			}
		}
		return true
	})
	return found
}

// elements returns the keys of a composite literal, or its values if it has no keys.
func elements(c *ast.CompositeLit) (out []ast.Expr) {
	for _, e := range c.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			e = pair.Key
		}
		out = append(out, e)
	}
	return out
}
