package olaf_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
)

func TestKindOf(t *testing.T) {
	gone, spec, damaged := olaf.NewError(olaf.Device, "gone"), olaf.NewError(olaf.Usage, "spec"), olaf.NewError(olaf.Failed, "damaged")
	plain := errors.New("plain")
	for _, c := range []struct {
		name     string
		err      error
		kind     olaf.Kind
		declared bool
	}{
		{"nil", nil, olaf.Failed, false},
		{"plain", plain, olaf.Failed, false},
		{"sentinel", gone, olaf.Device, true},
		{"wrapped", fmt.Errorf("bus: %w", gone), olaf.Device, true},
		{"below a plain one", fmt.Errorf("%w: %w", plain, gone), olaf.Device, true},
		{"outermost", fmt.Errorf("%w: %w", spec, gone), olaf.Usage, true},
		{"failed hides", fmt.Errorf("%w: %w", damaged, spec), olaf.Failed, true},
		{"first of several", errors.Join(plain, fmt.Errorf("close: %w", gone), spec), olaf.Device, true},
		{"several without", errors.Join(plain, fs.ErrNotExist), olaf.Failed, false},
		{"of the same text", fmt.Errorf("%w", olaf.NewError(olaf.Missed, "gone")), olaf.Missed, true},
	} {
		if kind, declared := olaf.KindOf(c.err); kind != c.kind || declared != c.declared {
			t.Errorf("%s: kind %v, declared %v; want %v, %v", c.name, kind, declared, c.kind, c.declared)
		}
	}
	if !errors.Is(fmt.Errorf("bus: %w", gone), gone) || errors.Is(gone, olaf.NewError(olaf.Device, "gone")) {
		t.Error("sentinels match by identity")
	}
}

func TestFieldOf(t *testing.T) {
	bad := olaf.NewError(olaf.Usage, "bad")
	inner := fmt.Errorf("%w: 0 workers", olaf.InField("workers", bad))
	err := fmt.Errorf("spec: %w", olaf.InField("workload", inner))
	if got := olaf.FieldOf(err); got != "workload.workers" {
		t.Errorf("field %q", got)
	}
	if kind, _ := olaf.KindOf(err); kind != olaf.Usage || !errors.Is(err, bad) || err.Error() != "spec: bad: 0 workers" {
		t.Errorf("%v of kind %v", err, kind)
	}
	if olaf.FieldOf(bad) != "" || olaf.InField("workers", nil) != nil {
		t.Error("a field out of nothing")
	}
}

// plainErrors lists errors that declare no kind. Their kind is Failed, unless a wrapped error declares another one.
var plainErrors = []string{
	"ErrAccounting", "ErrEncode", "ErrMalformed", "ErrNotOLAF",
	"capture.ErrIdle", "capture/live.ErrClocks", "pktgen/attach.ErrBye",
	"experiments/bench.ErrInvalid", "experiments/bench.ErrNoRewind", "experiments/bench.ErrRun",
	"experiments/bench/slowmotion.ErrOwnTime",
	"experiments/testbed.ErrSet",
	"backends.ErrIncomplete", // has the kind of the error that it unwraps to
	"fpga/engine/enginetest.ErrFormat", "fpga/netlab.ErrAgain",
	"fpga/pcie.ErrDenied", // has the kind of the error that it unwraps to
	"internal/lockfile.ErrHeld",
	"p4ctl.ErrClosed", "p4ctl.ErrExists", "p4ctl.ErrFull", "p4ctl.ErrNoPipeline", "p4ctl.ErrNotFound", "p4ctl/vnp4.ErrDriver",
	"pktgen/trace.ErrDeparture", "pktgen/trace.ErrMerged",
	"results/figure.ErrFigure", "results/xlsx.ErrBook",
	"tui/keys.ErrBindings",
}

// TestErrorsDeclareKinds checks that the declaration of every exported Err… in the module has a kind.
func TestErrorsDeclareKinds(t *testing.T) {
	declared := map[string]bool{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return err
		}
		return readErrors(p, declared)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(declared) < 50 {
		t.Fatalf("only %d errors found: the walk is broken", len(declared))
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if declared[name] == slices.Contains(plainErrors, name) {
			t.Errorf("%s: declare its kind with olaf.NewError, or list it in plainErrors; not both", name)
		}
	}
	for _, name := range plainErrors {
		if _, there := declared[name]; !there {
			t.Errorf("plainErrors lists %s, which is gone", name)
		}
	}
}

// readErrors records which exported errors of a file have a kind.
func readErrors(file string, declared map[string]bool) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range parsed.Decls {
		vars, ok := decl.(*ast.GenDecl)
		if !ok || vars.Tok != token.VAR {
			continue
		}
		for _, spec := range vars.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, name := range spec.Names {
				if strings.HasPrefix(name.Name, "Err") && i < len(spec.Values) {
					place := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file))+"."+name.Name, "..")
					declared[place] = hasKind(spec.Values[i])
				}
			}
		}
	}
	return nil
}

// hasKind reports whether a sentinel declares a kind, wraps another error, or is an alias.
func hasKind(value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok {
		_, name := value.(*ast.SelectorExpr)
		return name
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "NewError"
	case *ast.SelectorExpr:
		return f.Sel.Name == "NewError" || f.Sel.Name == "Errorf" && len(call.Args) > 1
	}
	return false
}

// TestListErrors checks that several failures keep their kinds and lines, and that an empty list is nil.
func TestListErrors(t *testing.T) {
	device := olaf.NewError(olaf.Device, "no rights")
	err := olaf.ListErrors([]error{errors.New("one"), device})
	if kind, declared := olaf.KindOf(err); kind != olaf.Device || !declared || !errors.Is(err, device) ||
		err.Error() != "one\nno rights" {
		t.Errorf("%v, %v", kind, err)
	}
	if err := olaf.ListErrors(nil); err != nil {
		t.Error(err)
	}
}
