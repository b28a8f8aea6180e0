package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// chooser is the name of the variable that is added to a changed package, and of the environment variable that sets it.
const (
	chooser     = "mutantChosen"
	environment = "MUTANT"
)

type runner struct {
	options
	target  *source
	results *kept
}

// build builds the test programs of the package and of its judges, with all mutants in the batch.
func (r *runner) build(batch []*mutant) (*built, error) {
	folder, err := os.MkdirTemp("", "mutate-*")
	if err != nil {
		return nil, err
	}
	b := &built{folder: folder, number: map[*mutant]int{}}
	overlay, err := r.overlay(folder, batch, b.number)
	if err != nil {
		b.remove()
		return nil, err
	}
	for i, pkg := range r.packages() {
		program := filepath.Join(folder, fmt.Sprintf("judge%d.test", i))
		cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./"+pkg)
		if said, err := cmd.CombinedOutput(); err != nil {
			b.remove()
			return nil, fmt.Errorf("build %s: %w: %s", pkg, err, bytes.TrimSpace(said))
		}
		if _, err := os.Stat(program); err == nil { // a package without tests has no test program
			b.judges = append(b.judges, judge{pkg, program})
		}
	}
	return b, nil
}

// overlay writes the changed files and the overlay table that makes the compiler use them instead of the originals.
func (r *runner) overlay(folder string, batch []*mutant, number map[*mutant]int) (string, error) {
	place := map[string]string{}
	write := func(original string, text []byte) error {
		copied := filepath.Join(folder, fmt.Sprintf("%d.go", len(place)))
		place[original] = copied
		return os.WriteFile(copied, text, 0o600)
	}
	if len(batch) == 1 && batch[0].fn == nil {
		m := batch[0]
		if err := write(m.file.path, apply(m.file.text, []edit{m.edit})); err != nil {
			return "", err
		}
	} else {
		for i, m := range batch {
			number[m] = i + 1
		}
		for _, f := range r.target.files {
			if text := r.target.withCopies(f, batch, number); text != nil {
				if err := write(f.path, text); err != nil {
					return "", err
				}
			}
		}
		chooserFile := filepath.Join(filepath.Dir(r.target.files[0].path), "zz_mutant_chosen.go")
		text := fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar %s, _ = "+
			"strconv.Atoi(os.Getenv(%q))\n", r.target.pkg.Name, chooser, environment)
		if err := write(chooserFile, []byte(text)); err != nil {
			return "", err
		}
	}
	table, err := json.Marshal(map[string]any{"Replace": place})
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, "overlay.json")
	return name, os.WriteFile(name, table, 0o600)
}

// withCopies returns the text of a file in which every mutated function first checks whether one of its mutated copies
// was selected. It returns nil for a file without mutants.
func (s *source) withCopies(f *sourceFile, batch []*mutant, number map[*mutant]int) []byte {
	var edits []edit
	var copies bytes.Buffer
	asked := map[*ast.FuncDecl]*dispatch{}
	for _, m := range batch {
		if m.file != f {
			continue
		}
		d := asked[m.fn]
		if d == nil {
			d = s.dispatch(m)
			asked[m.fn] = d
			edits = append(edits, d.names...)
		}
		name := fmt.Sprintf("mutant%d%s", number[m], m.fn.Name.Name)
		d.ask(number[m], name)
		fmt.Fprintf(&copies, "\n%s\n", s.copyOf(m, name))
	}
	if len(asked) == 0 {
		return nil
	}
	for fn, d := range asked {
		at := s.offset(fn.Body.Lbrace) + 1
		edits = append(edits, edit{at, at, d.text.String()})
	}
	return append(apply(f.text, edits), copies.Bytes()...)
}

// copyOf returns the mutated function under a new name.
func (s *source) copyOf(m *mutant, name string) []byte {
	start, end := s.offset(m.fn.Pos()), s.offset(m.fn.End())
	at := s.offset(m.fn.Name.Pos())
	edits := []edit{{at - start, at - start + len(m.fn.Name.Name), name}, {m.edit.start - start, m.edit.end - start, m.edit.text}}
	return apply(m.file.text[start:end], edits)
}

// dispatch is the call to a mutated copy at the beginning of a function.
type dispatch struct {
	names   []edit // names for unnamed parameters
	call    string // receiver and dot, written before the copy's name
	args    string // type arguments and arguments, written after the name
	returns bool
	text    strings.Builder
}

func (d *dispatch) ask(number int, name string) {
	if d.returns {
		fmt.Fprintf(&d.text, " if %s == %d { return %s%s%s };", chooser, number, d.call, name, d.args)
	} else {
		fmt.Fprintf(&d.text, " if %s == %d { %s%s%s; return };", chooser, number, d.call, name, d.args)
	}
}

func (s *source) dispatch(m *mutant) *dispatch {
	fn := m.fn
	d := &dispatch{returns: fn.Type.Results != nil && len(fn.Type.Results.List) > 0}
	if fn.Recv != nil {
		d.call = strings.Join(s.nameAll(d, fn.Recv), "") + "."
	}
	if fn.Type.TypeParams != nil && fn.Recv == nil {
		d.args = "[" + strings.Join(s.nameAll(d, fn.Type.TypeParams), ", ") + "]"
	}
	args := s.nameAll(d, fn.Type.Params)
	if n := len(fn.Type.Params.List); n > 0 {
		if _, open := fn.Type.Params.List[n-1].Type.(*ast.Ellipsis); open {
			args[len(args)-1] += "..."
		}
	}
	d.args += "(" + strings.Join(args, ", ") + ")"
	return d
}

// nameAll returns the names of a function's parameters. It first gives names to unnamed parameters.
func (s *source) nameAll(d *dispatch, list *ast.FieldList) (names []string) {
	fresh := func(at, end int, gap string) {
		name := fmt.Sprintf("given%d", at)
		d.names = append(d.names, edit{at, end, name + gap})
		names = append(names, name)
	}
	for _, field := range list.List {
		if len(field.Names) == 0 {
			at := s.offset(field.Type.Pos())
			fresh(at, at, " ")
		}
		for _, n := range field.Names {
			if n.Name == "_" {
				fresh(s.offset(n.Pos()), s.offset(n.End()), "")
			} else {
				names = append(names, n.Name)
			}
		}
	}
	return names
}
