package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/fpga/program/vector"
)

const root = "../../.."

// cases returns the numbers of the study's cases, in its order.
func cases() (all []string) {
	for _, s := range []struct {
		of   string
		many int
	}{{"I", 14}, {"A", 15}, {"S", 6}} {
		for i := range s.many {
			all = append(all, fmt.Sprint(s.of, i+1))
		}
	}
	return all
}

var caseRow = regexp.MustCompile("^\\| ([IAS][0-9]+) \\| (.+) \\| `([^`]+)`(?: \\(`(Test[A-Za-z]+)`\\))? \\|$")

// TestCases checks that docs/reference/vectors.md has a row for every case that the study numbers, that the case's
// vector has the same title and passes, and that the named test exists.
func TestCases(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/reference/vectors.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		m := caseRow.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		found = append(found, m[1])
		if m[4] != "" {
			holds(t, m[3], m[4])
		} else {
			plays(t, m[1], m[2], m[3])
		}
	}
	if missing := cases(); !slices.Equal(slices.Compact(found), missing) {
		t.Errorf("the table has the cases %v, the study %v", found, missing)
	}
}

// holds reports whether a file contains a test.
func holds(t *testing.T, file, name string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil || !strings.Contains(string(source), "func "+name+"(t *testing.T)") {
		t.Errorf("%s has no %s: %v", file, name, err)
	}
}

// plays checks that a vector shows the case that the table states, and that it passes.
func plays(t *testing.T, number, shows, name string) {
	t.Helper()
	files, err := filepath.Glob("../*/testdata/vectors/" + name + ".txt")
	if err != nil || len(files) != 1 {
		t.Errorf("%s: %d files are called %s", number, len(files), name)
		return
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	v, err := vector.ParseVector(f)
	if err != nil {
		t.Fatal(err)
	}
	if about := strings.TrimSuffix(strings.Join(v.About, " "), " ("+number+")"); about != shows {
		t.Errorf("%s: the vector says %q, the table %q", number, about, shows)
	}
	s, err := v.Build(AllPrograms())
	if err == nil {
		err = vector.PlayVector(v, s)
	}
	if err != nil {
		t.Errorf("%s, %s: %v", number, name, err)
	}
}
