package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/olafctl/olaf/internal/raced"
)

// TestTour does what docs/tour.md tells a stranger to do, line by line, and compares what is printed.
func TestTour(t *testing.T) {
	raced.Skip(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tour.md"))
	if err != nil {
		t.Fatal(err)
	}
	story := tour(string(page))
	if len(story.Files) < 10 {
		t.Fatalf("only %d commands found", len(story.Files))
	}
	script := filepath.Join(t.TempDir(), "tour.txtar")
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
}

// tour makes a script of the commands of a page: those behind a dollar in blocks of a console, each with what follows it.
func tour(page string) *txtar.Archive {
	story := &txtar.Archive{}
	var script strings.Builder
	inside := false
	for line := range strings.Lines(page) {
		command, typed := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = strings.HasPrefix(line, "```console")
		case inside && typed:
			name := fmt.Sprintf("printed-%d", len(story.Files)+1)
			fmt.Fprintf(&script, "exec sh -c '%s'\nprints %s\n", strings.ReplaceAll(strings.TrimSpace(command), "'", "''"), name)
			story.Files = append(story.Files, txtar.File{Name: name})
		case inside:
			last := &story.Files[len(story.Files)-1]
			last.Data = append(last.Data, line...)
		}
	}
	story.Comment = []byte(script.String())
	return story
}

// prints FILE holds the last command's output to a file in which … stands for any lines, or for the end of one. A command
// of which nothing is shown may print what it likes.
func prints(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: prints FILE")
	}
	shown := ts.ReadFile(args[0])
	if shown == "" {
		return
	}
	if what := elided(strings.Split(strings.TrimRight(shown, "\n"), "\n"), strings.Split(strings.TrimRight(ts.ReadFile("stdout"), "\n"), "\n")); what != "" {
		ts.Fatalf("%s", what)
	}
}

// elided says in what the lines that were printed differ from those that are shown; empty if they do not.
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
				return fmt.Sprintf("printed is %q, docs/tour.md shows %q", got, want)
			}
		}
		if !found {
			return fmt.Sprintf("docs/tour.md shows %q, which was not printed", want)
		}
		skip = false
	}
	if len(printed) > 0 && !skip {
		return fmt.Sprintf("docs/tour.md does not show %q", printed[0])
	}
	return ""
}

func TestElided(t *testing.T) {
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
