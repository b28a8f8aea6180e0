package text_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/text"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestPageFits compares a bench's page at every width with a golden file, and checks that no line is wider.
func TestPageFits(t *testing.T) {
	for _, v := range []text.View{{Width: 44}, {Width: 80}, {Width: 120}, {Width: 80, Explain: true}} {
		var page bytes.Buffer
		if err := text.Bench(&page, v, example.Result(3).Bench, "an example, not a measurement"); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(page.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > v.Width {
				t.Errorf("%d characters at a width of %d: %s", n, v.Width, line)
			}
		}
		name := fmt.Sprintf("bench%d.txt", v.Width)
		if v.Explain {
			name = "explain.txt"
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(page.Bytes(), want) {
			t.Errorf("%s differs; if that is meant, run with -update\n%s", path, page.String())
		}
	}
}
