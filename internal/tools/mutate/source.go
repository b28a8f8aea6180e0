package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// source is an unchanged package with type information.
type source struct {
	fset  *token.FileSet
	files []*sourceFile
	info  *types.Info
	pkg   *packages.Package
}

type sourceFile struct {
	path string // absolute path
	text []byte
	tree *ast.File
}

// mutant is a small wrong change to the text of a file.
type mutant struct {
	id   string // function, change and index among equal ones; stable as long as these lines do not change
	line int
	file *sourceFile
	fn   *ast.FuncDecl // nil for a change outside functions
	edit edit
}

// edit replaces the bytes from start to end in a file.
type edit struct {
	start, end int
	text       string
}

func (m *mutant) place() string { return fmt.Sprintf("%s:%d", filepath.Base(m.file.path), m.line) }

func load(pkg string) (*source, error) {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
		packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedExportFile
	s := &source{fset: token.NewFileSet()}
	found, err := packages.Load(&packages.Config{Mode: mode, Fset: s.fset}, "./"+pkg)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 || len(found[0].Errors) > 0 || len(found[0].GoFiles) == 0 {
		return nil, fmt.Errorf("%s is not one package that compiles", pkg)
	}
	s.pkg, s.info = found[0], found[0].TypesInfo
	for i, tree := range s.pkg.Syntax {
		text, err := os.ReadFile(s.pkg.CompiledGoFiles[i])
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, &sourceFile{s.pkg.CompiledGoFiles[i], text, tree})
	}
	return s, nil
}

// draw returns a sample of the mutants that compile. It orders the mutants by a hash of seed and mutant. If code
// elsewhere in the package changes, most of the sample therefore stays the same.
func (s *source) draw(all []*mutant, n int, seed uint64) (sample []*mutant, broken int) {
	lot := func(m *mutant) string {
		sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), m.id...))
		return string(sum[:])
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *mutant) int { return strings.Compare(lot(a), lot(b)) })
	for _, m := range all {
		if n > 0 && len(sample) == n {
			break
		}
		if s.compiles(m) {
			sample = append(sample, m)
		} else {
			broken++
		}
	}
	return sample, broken
}

// unseen returns the mutants that were not in samples that have already been reviewed. The samples for the first group
// of seeds were drawn from all mutants, and those for each further group from the mutants that were left.
func (s *source) unseen(all []*mutant, o options) []*mutant {
	left := slices.Clone(all)
	for _, seeds := range o.seen {
		looked := map[*mutant]bool{}
		for _, seed := range seeds {
			sample, _ := s.draw(left, o.n, seed)
			for _, m := range sample {
				looked[m] = true
			}
		}
		left = slices.DeleteFunc(left, func(m *mutant) bool { return looked[m] })
	}
	return left
}

// compiles reports whether the package with the change passes the type checker. An unused import is not an error,
// because the original function is still there.
func (s *source) compiles(m *mutant) bool {
	trees := make([]*ast.File, 0, len(s.files))
	for _, f := range s.files {
		tree := f.tree
		if f == m.file {
			var err error
			if tree, err = parser.ParseFile(s.fset, f.path, apply(f.text, []edit{m.edit}), parser.SkipObjectResolution); err != nil {
				return false
			}
		}
		trees = append(trees, tree)
	}
	good := true
	config := types.Config{
		Importer: importer(s.pkg.Types.Imports()),
		Sizes:    s.pkg.TypesSizes,
		Error: func(err error) {
			if !strings.Contains(err.Error(), "imported and not used") {
				good = false
			}
		},
	}
	_, _ = config.Check(s.pkg.PkgPath, s.fset, trees, nil) // the function above collects the errors
	return good
}

// importer returns the imported packages with which the package was loaded.
type importer []*types.Package

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if at := slices.IndexFunc(i, func(p *types.Package) bool { return p.Path() == path }); at >= 0 {
		return i[at], nil
	}
	return nil, errors.New("not imported before: " + path)
}

// apply performs several edits that do not overlap and returns the new text.
func apply(text []byte, edits []edit) []byte {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.start]...), e.text...)
		at = e.end
	}
	return append(out, text[at:]...)
}

// functionName returns the name of a function. For a method, it includes the type of the receiver.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	return strings.TrimPrefix(types.ExprString(fn.Recv.List[0].Type), "*") + "." + fn.Name.Name
}
