package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf/internal/test/peer"
	"github.com/olafctl/olaf/internal/test/raced"
)

// repository is the path of the top folder, relative to this package.
var repository = filepath.Join("..", "..")

// TestPages runs the console blocks in the guide and in README line by line, as a reader would, and checks the output.
func TestPages(t *testing.T) {
	raced.SkipRaced(t)
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "guide", "*.md"))
	if err != nil || len(pages) < 15 {
		t.Fatalf("found %d pages of the guide: %v", len(pages), err)
	}
	commands := 0
	for _, path := range append(pages, filepath.Join(repository, "README.md")) {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		story := consoleScript(string(page))
		commands += strings.Count(string(story.Comment), "\nprints ")
		if len(story.Comment) == 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".md"), func(t *testing.T) {
			for _, m := range neededProgram.FindAllStringSubmatch(string(page), -1) {
				peer.NeedProgram(t, m[1])
			}
			script := filepath.Join(t.TempDir(), "page.txtar")
			if err := os.WriteFile(script, txtar.Format(story), 0o644); err != nil {
				t.Fatal(err)
			}
			testscript.Run(t, testscript.Params{
				Files: []string{script},
				Cmds:  map[string]func(*testscript.TestScript, bool, []string){"prints": prints},
				Setup: func(e *testscript.Env) error {
					e.Setenv("OLAFCTL_HOME", e.WorkDir+"/store")
					return nil
				},
			})
		})
	}
	if commands < 40 {
		t.Errorf("the pages have %d tested commands; the search for them is broken", commands)
	}
}

// neededProgram matches the comment in which a page names a program that its commands need.
var neededProgram = regexp.MustCompile(`<!-- needs: (\w+) -->`)

// consoleScript turns a page into a test script. Each "$ " line of a console block is a command, and the lines below it are its
// expected output. A block of Python or YAML whose first line is "# NAME" is a file of that name.
func consoleScript(page string) *txtar.Archive {
	story := &txtar.Archive{}
	var script strings.Builder
	var named []txtar.File
	block := ""
	for line := range strings.Lines(page) {
		typed, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			block = strings.TrimSpace(strings.TrimPrefix(line, "```"))
			if block == "" {
				block = "-"
			}
			continue
		case block == "python" || block == "yaml":
			if m := fileName.FindStringSubmatch(line); m != nil {
				named = append(named, txtar.File{Name: m[1]})
				block = "file"
			}
			continue
		case block == "file":
			last := &named[len(named)-1]
			last.Data = append(last.Data, line...)
		case block != "console":
		case isCommand:
			name := fmt.Sprintf("printed-%d", len(story.Files)+1)
			fmt.Fprintf(&script, "exec sh -c '%s'\nprints %s\n", strings.ReplaceAll(strings.TrimSpace(typed), "'", "''"), name)
			story.Files = append(story.Files, txtar.File{Name: name})
		case len(story.Files) > 0:
			last := &story.Files[len(story.Files)-1]
			last.Data = append(last.Data, line...)
		}
	}
	story.Comment = []byte(script.String())
	story.Files = append(story.Files, named...)
	return story
}

// fileName matches the first line of a block that is a file.
var fileName = regexp.MustCompile(`^# ([a-z]+\.(?:py|yaml))\n$`)

// prints FILE compares the last command's output with a file in which … stands for any lines, or for the end of a line.
// If the page shows no output for a command, nothing is compared.
func prints(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: prints FILE")
	}
	shown := ts.ReadFile(args[0])
	if shown == "" {
		return
	}
	if what := elided(strings.Split(strings.TrimRight(shown, "\n"), "\n"),
		strings.Split(strings.TrimRight(ts.ReadFile("stdout"), "\n"), "\n")); what != "" {
		ts.Fatalf("%s", what)
	}
}

// elided returns the first difference between the lines on a page and the printed lines, or "".
func elided(shown, printed []string) string {
	const more = "…"
	skip := false
	for _, want := range shown {
		if want == more {
			skip = true
			continue
		}
		found := false
		for len(printed) > 0 && !found {
			got := printed[0]
			printed = printed[1:]
			beginning, cut := strings.CutSuffix(want, more)
			found = got == want || cut && strings.HasPrefix(got, beginning)
			if !found && !skip {
				return fmt.Sprintf("printed is %q, the page shows %q", got, want)
			}
		}
		if !found {
			return fmt.Sprintf("the page shows %q, which was not printed", want)
		}
		skip = false
	}
	if len(printed) > 0 && !skip {
		return fmt.Sprintf("the page does not show %q", printed[0])
	}
	return ""
}

func TestMatchElidedOutput(t *testing.T) {
	for _, c := range []struct {
		shown, printed string
		same           bool
	}{
		{"a|b", "a|b", true},
		{"a|…|d", "a|b|c|d", true},
		{"…|c|…", "a|b|c|d", true},
		{"a …", "a b", true},
		{"…", "a|b", true},
		{"a", "a|b", false},
		{"a|b", "a", false},
		{"a|…|c", "a|b", false},
		{"b", "a|b", false},
		{"a|…|b|c", "a|x|b|y|c", false},
	} {
		if what := elided(strings.Split(c.shown, "|"), strings.Split(c.printed, "|")); (what == "") != c.same {
			t.Errorf("%s of %s: %q", c.shown, c.printed, what)
		}
	}
}

// TestCommandsInPagesExist checks every olafctl command line in README and docs, including those that no test runs: the
// command must be in the tree and have each flag.
func TestCommandsInPagesExist(t *testing.T) {
	commands, _, _ := tree(t)
	seen := 0
	for _, path := range pagesOf(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandLines(string(text)) {
			seen++
			if what := unknownIn(commands, line); what != "" {
				t.Errorf("%s: %q: %s", path, line, what)
			}
		}
	}
	if seen < 200 {
		t.Errorf("found only %d commands; the search is broken", seen)
	}
}

// pagesOf returns README and all pages in docs.
func pagesOf(t *testing.T) []string {
	t.Helper()
	pages := []string{filepath.Join(repository, "README.md"), filepath.Join(repository, "CONTRIBUTING.md")}
	err := filepath.WalkDir(filepath.Join(repository, "docs"), func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

var (
	typedCommand = regexp.MustCompile(`(?:^|&& |\|\| |; |\$\()(?:\$ )?(?:sudo )?(?:\./)?olafctl ([^|;&>#]*)`)
	quotedPart   = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// commandLines returns the arguments of every olafctl command in a page's code blocks.
func commandLines(page string) (lines []string) {
	block := ""
	page = strings.ReplaceAll(page, "\\\n", " ")
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if kind, fence := strings.CutPrefix(line, "```"); fence {
			if block == "" {
				block = kind + "block"
			} else {
				block = ""
			}
			continue
		}
		if block == "" || block == "consoleblock" && !strings.HasPrefix(line, "$ ") {
			continue
		}
		line = quotedPart.ReplaceAllString(line, "QUOTED")
		for _, m := range typedCommand.FindAllStringSubmatch(line, -1) {
			lines = append(lines, strings.TrimSpace(m[1]))
		}
	}
	return lines
}

// unknownIn returns the command or flag of a command line that does not exist, or "".
func unknownIn(root *cobra.Command, line string) string {
	words := strings.Fields(line)
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	if cmd == root && len(words) > 0 && words[0] != "help" && words[0] != "completion" && !strings.HasPrefix(words[0], "-") {
		return "no such command"
	}
	for _, w := range rest {
		name, isLong := strings.CutPrefix(w, "--")
		switch {
		case isLong:
			name, _, _ = strings.Cut(name, "=")
			if name != "help" && cmd.Flag(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
				return "no flag --" + name
			}
		case len(w) == 2 && w[0] == '-' && w[1] != 'h':
			if cmd.Flags().ShorthandLookup(w[1:]) == nil && cmd.InheritedFlags().ShorthandLookup(w[1:]) == nil {
				return "no flag " + w
			}
		}
	}
	return ""
}

// TestCommandsPage compares docs/reference/commands.md with the command tree; -update writes it.
func TestCommandsPage(t *testing.T) {
	const name = "docs/reference/commands.md"
	_, all, _ := tree(t)
	want := commandsPage(all)
	path := filepath.Join(repository, filepath.FromSlash(name))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is stale: go test ./cmd/olafctl -run TestCommandsPage -update", name)
	}
}

// commandsPage renders commands with their usage, flags and examples.
func commandsPage(all []*cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nGenerated from the command tree by `go test ./cmd/olafctl -run TestCommandsPage -update`; do not edit.\n\n")
	for _, cmd := range all {
		if cmd.HasParent() && cmd.Parent() == cmd.Root() {
			fmt.Fprintf(&b, "* [%s](#%s): %s\n", cmd.Name(), strings.ReplaceAll(cmd.CommandPath(), " ", "-"), cmd.Short)
		}
	}
	for _, cmd := range all {
		if !cmd.HasParent() || strings.HasPrefix(cmd.CommandPath(), "olafctl completion ") {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", cmd.CommandPath(), cmd.Short)
		if cmd.Runnable() && !cmd.HasSubCommands() {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", cmd.UseLine())
		}
		if example := strings.TrimRight(cmd.Example, "\n"); example != "" {
			fmt.Fprintf(&b, "\nExamples:\n\n```\n%s\n```\n", trimIndent(example))
		}
		table := ""
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			kind, usage := pflag.UnquoteUsage(f)
			flag := "--" + f.Name
			if f.Shorthand != "" {
				flag = "-" + f.Shorthand + ", " + flag
			}
			if kind != "" {
				flag += " " + kind
			}
			if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" && f.DefValue != "0s" {
				usage += " (default " + f.DefValue + ")"
			}
			table += fmt.Sprintf("| `%s` | %s |\n", flag, strings.NewReplacer("|", `\|`, "\n", " ").Replace(usage))
		})
		if table != "" {
			fmt.Fprintf(&b, "\n| flag | meaning |\n|---|---|\n%s", table)
		}
	}
	return b.String()
}

// trimIndent removes the two spaces by which examples are indented.
func trimIndent(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll(text, "\n  ", "\n"), "  ")
}

// TestOwnQueuePageShowsTheTestedCode checks that the code on docs/guide/own-queue.md is the queue that TestToys builds
// and runs.
func TestOwnQueuePageShowsTheTestedCode(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "guide", "own-queue.md"))
	if err != nil {
		t.Fatal(err)
	}
	tested, err := os.ReadFile(filepath.Join("testdata", "toy", "toys.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Fatal("the page shows no code")
	}
	for _, b := range blocks {
		if !strings.Contains(string(tested), b[1]) {
			t.Errorf("testdata/toy/toys.txtar does not have this code of the page:\n%s", b[1])
		}
	}
}
