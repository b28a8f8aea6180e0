package olaf_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// target matches the declaration of a fuzz target.
var target = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\) `)

// TestEveryFuzzTargetHasACorpus checks that each fuzz target has a committed corpus of a few small inputs, which plain
// tests also run, and that each corpus has a target.
func TestEveryFuzzTargetHasACorpus(t *testing.T) {
	targets, corpora := map[string]bool{}, map[string]int{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		p = filepath.ToSlash(p)
		folder := path.Dir(p)
		if under, name, ok := strings.Cut("/"+folder, "/testdata/fuzz/"); ok {
			corpora[path.Join(strings.TrimPrefix(under, "/"), name)]++
			return checkInput(t, p)
		}
		if !strings.HasSuffix(p, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(p)
		for _, m := range target.FindAllSubmatch(text, -1) {
			targets[path.Join(folder, string(m[1]))] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range targets {
		if corpora[name] == 0 {
			t.Errorf("%s has no corpus: keep what 'go test -fuzz' found for it in testdata/fuzz/%s", name, path.Base(name))
		}
	}
	for name := range corpora {
		if !targets[name] {
			t.Errorf("%s has a corpus of %d inputs, and no such target", name, corpora[name])
		}
	}
	if len(targets) < 60 {
		t.Errorf("%d targets were found: the search is broken", len(targets))
	}
}

// checkInput checks that go can read an input file and that it is small.
func checkInput(t *testing.T, file string) error {
	const most = 100 << 10
	text, err := os.ReadFile(file)
	if !bytes.HasPrefix(text, []byte("go test fuzz v1\n")) || len(text) > most {
		t.Errorf("%s is no input of a fuzz target, or has more than %d bytes", file, most)
	}
	return err
}
