package olaf_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is a Markdown page in the repository.
type page struct {
	name, text string
	generated  bool // written by a generator; size and style are not counted
}

// readPages returns README, the other pages at the top, and all pages of docs.
func readPages(t *testing.T) []page {
	t.Helper()
	names := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	err := filepath.WalkDir("docs", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil || len(names) < 40 {
		t.Fatalf("found %d pages: %v", len(names), err)
	}
	var pages []page
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitN(string(text), "\n", 6)
		head := strings.Join(lines[:min(5, len(lines))], " ")
		pages = append(pages, page{name, string(text), strings.Contains(head, "Generated")})
	}
	return pages
}

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	anyWord   = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
	sentences = regexp.MustCompile(`[.!?:]\s`)
	pageLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// slug returns the anchor that GitHub gives a heading.
func slug(title string) string {
	title = pageLink.ReplaceAllString(title, "")
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

// TestLinksInPages checks that every relative link leads to a file, and every anchor to a heading.
func TestLinksInPages(t *testing.T) {
	anchors := map[string][]string{}
	pages := readPages(t)
	for _, p := range pages {
		for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(p.text, ""), -1) {
			anchors[p.name] = append(anchors[p.name], slug(m[1]))
		}
	}
	links := 0
	for _, p := range pages {
		for _, m := range pageLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(p.text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := p.name
			if file != "" {
				target = path.Join(path.Dir(p.name), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", p.name, m[1])
			} else if anchor != "" && !slices.Contains(anchors[target], anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", p.name, m[1], target)
			}
		}
	}
	if links < 150 {
		t.Errorf("found only %d links; the search is broken", links)
	}
}

// TestIndexNamesEveryPage checks that each page of docs is one click away from the index.
func TestIndexNamesEveryPage(t *testing.T) {
	const index = "docs/README.md"
	text, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range readPages(t) {
		if rel, ok := strings.CutPrefix(p.name, "docs/"); ok && p.name != index && !strings.Contains(string(text), "("+rel+")") {
			t.Errorf("%s does not link to %s", index, p.name)
		}
	}
}

// TestPagesStayShort checks the limits of README, the guide, the notes and all pages that are not generated.
func TestPagesStayShort(t *testing.T) {
	words, counted, long := map[string]int{}, 0, 0
	for _, p := range readPages(t) {
		if p.name == "README.md" {
			if n := strings.Count(p.text, "\n"); n > 150 {
				t.Errorf("README.md has %d lines; at most 150 are allowed", n)
			}
		}
		if p.generated {
			continue
		}
		text := codeBlock.ReplaceAllString(p.text, "")
		n := len(anyWord.FindAllString(text, -1))
		words["all"] += n
		words[path.Dir(p.name)] += n
		if path.Dir(p.name) == "docs/guide" && n > 1500 {
			t.Errorf("%s has %d words; a page of the guide has at most 1,500", p.name, n)
		}
		for _, s := range sentences.Split(prose(text), -1) {
			if n := len(anyWord.FindAllString(s, -1)); n >= 3 {
				counted++
				if n > 30 {
					long++
				}
			}
		}
	}
	for folder, most := range map[string]int{"all": 45000, "docs/notes": 15000} {
		if words[folder] > most {
			t.Errorf("%s: %d words in pages that are not generated; at most %d are allowed", folder, words[folder], most)
		}
	}
	if share := 100 * float64(long) / float64(max(counted, 1)); share > 4 {
		t.Errorf("%.1f %% of %d sentences have more than 30 words; at most 4 %% are allowed", share, counted)
	}
}

// prose returns the running text of a page: without tables and headings, and with a full stop for every empty line.
func prose(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case line == "":
			lines = append(lines, ".")
		case !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#"):
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ") + " "
}

// pageInCode matches the path of a page, a drawing or an example in comments, help and messages.
var pageInCode = regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.(?:md|cc|yaml|svg)\b`)

// TestPathsOfPagesExist checks that comments, help texts, messages and test data name pages that exist.
func TestPathsOfPagesExist(t *testing.T) {
	listed, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		t.Skip("not a Git work tree")
	}
	found := 0
	for name := range strings.Lines(string(listed)) {
		name = strings.TrimSpace(name)
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 || name == "docs_test.go" ||
			strings.Contains(name, "/testdata/kept/") {
			continue // stored runs keep their original texts
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, named := range pageInCode.FindAllString(string(text), -1) {
			found++
			if _, err := os.Stat(named); err != nil {
				t.Errorf("%s names %s, which does not exist", name, named)
			}
		}
	}
	if found < 100 {
		t.Errorf("found only %d paths; the search is broken", found)
	}
}

var (
	testCommand = regexp.MustCompile("(?:\\bgo|\\$\\(GO\\)) test [^`\n]*")
	runPattern  = regexp.MustCompile(` -(?:run|bench) ('[^']*'|\S+)`)
	testFolder  = regexp.MustCompile(` (\./[\w/-]*)`)
	testName    = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
)

// TestCommandsInPagesSelectTests checks that every part of a -run or -bench pattern in a page or the Makefile matches a
// test of the packages in its command. Otherwise the command passes without testing anything.
func TestCommandsInPagesSelectTests(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, p := range append(readPages(t), page{name: "Makefile", text: string(makefile)}) {
		for _, command := range testCommand.FindAllString(strings.ReplaceAll(p.text, "-run\n", "-run "), -1) {
			names := testsIn(t, command)
			for _, m := range runPattern.FindAllStringSubmatch(command, -1) {
				pattern, _, _ := strings.Cut(strings.ReplaceAll(strings.Trim(m[1], "'"), "$$", "$"), "/")
				if pattern == "^$" || strings.EqualFold(pattern, "xxx") || strings.Contains(pattern, "{") {
					continue // no tests, or a name that the shell inserts
				}
				parts := []string{pattern}
				if !strings.Contains(pattern, "(") {
					parts = strings.Split(pattern, "|")
				}
				for _, part := range parts {
					checked++
					if !slices.ContainsFunc(names, regexp.MustCompile(part).MatchString) {
						t.Errorf("%s: no test matches %s in: %s", p.name, part, command)
					}
				}
			}
		}
	}
	if checked < 30 {
		t.Errorf("checked only %d patterns; the search is broken", checked)
	}
}

// testsIn returns the names of the tests in the packages of a go test command, or of all packages if it names none.
func testsIn(t *testing.T, command string) (names []string) {
	t.Helper()
	base := "."
	if strings.Contains(command, "-C internal/tools") {
		base = "internal/tools"
	}
	folders := testFolder.FindAllStringSubmatch(command, -1)
	if len(folders) == 0 || strings.Contains(command, "./...") {
		folders = [][]string{{"", "./..."}}
	}
	for _, m := range folders {
		found, err := filepath.Glob(filepath.Join(base, m[1], "*_test.go"))
		if m[1] == "./..." {
			var listed []byte
			listed, err = exec.Command("git", "ls-files", filepath.Join(base, "*_test.go")).Output()
			found = strings.Fields(string(listed))
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range testName.FindAllStringSubmatch(string(text), -1) {
				names = append(names, f[1])
			}
		}
	}
	return names
}
