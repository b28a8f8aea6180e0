package olaf_test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	// filed matches a file in a page, and the names that the page places in it.
	filed  = regexp.MustCompile("`([\\w./-]+)`((?: \\(`\\w+`\\))?)")
	linked = regexp.MustCompile(`\]\(([^)#]+)`)
	word   = regexp.MustCompile(`\w+`)
)

// TestExtendingPageNamesExistingCode checks that every file named in docs/reference/extending.md exists and contains
// the names given for it. NAME stands for a file that does not exist yet, in a folder that does.
func TestExtendingPageNamesExistingCode(t *testing.T) {
	page, err := os.ReadFile("docs/reference/extending.md")
	if err != nil {
		t.Fatal(err)
	}
	text, files, names := string(page), 0, 0
	for _, m := range linked.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(path.Join("docs/reference", m[1])); err != nil {
			t.Error(err)
		}
	}
	for _, m := range filed.FindAllStringSubmatch(text, -1) {
		file := m[1]
		if known, _, below := strings.Cut(file, "NAME"); below {
			file = path.Dir(known + "x")
		}
		top, _, _ := strings.Cut(file, "/")
		if _, err := os.Stat(top); err != nil && path.Ext(file) != ".go" && path.Ext(file) != ".md" {
			continue // not a file, but a claim, an experiment or a word
		}
		files++
		raw, err := os.ReadFile(file)
		if err != nil && !isFolder(file) {
			t.Error(err)
			continue
		}
		if name := word.FindString(m[2]); name != "" {
			names++
			if !regexp.MustCompile(`\b` + name + `\b`).Match(raw) {
				t.Errorf("%s has no %s", file, name)
			}
		}
	}
	if files < 60 || names < 20 {
		t.Errorf("%d files and %d names in them were found: the search is broken", files, names)
	}
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
