package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// excerpt is a doc comment or a paragraph, with its file. For a comment, it includes the declaration without its body.
type excerpt struct{ file, declared, text string }

const (
	sampledComments   = 100
	sampledParagraphs = 50
	leastWords        = 8 // minimum for a sampled paragraph
)

// runSample implements 'prose sample'.
func runSample(args []string) error {
	flags := flag.NewFlagSet("sample", flag.ContinueOnError)
	seed := flags.Uint64("seed", 0, "seed of the draw, such as the day")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return writeSamples(cmp.Or(flags.Arg(0), "."), *seed)
}

// writeSamples writes one page with random doc comments and one with random paragraphs to docs/notes. Each page has two
// empty columns for grades.
func writeSamples(root string, seed uint64) error {
	comments, paragraphs, err := collectExcerpts(root)
	if err != nil {
		return err
	}
	for _, page := range []struct {
		name, title, what, head string
		all                     []excerpt
		n                       int
	}{
		{"graded-comments.md", "Random doc comments", "doc comments of declarations outside tests", "| | file | declaration | comment |",
			comments, sampledComments},
		{"graded-paragraphs.md", "Random paragraphs of docs", "paragraphs and list items of pages that are not generated",
			"| | page | paragraph |", paragraphs, sampledParagraphs},
	} {
		text := formatSample(page.title, page.what, page.head, drawSample(page.all, page.n, seed), len(page.all), seed)
		if err := renameio.WriteFile(filepath.Join(root, "docs/notes", page.name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// collectExcerpts returns all doc comments and paragraphs in a tree, except those in tests and generated files.
func collectExcerpts(root string) (comments, paragraphs []excerpt, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			found, err := readComments(relative(root, path), path)
			comments = append(comments, found...)
			return err
		case strings.HasSuffix(path, ".md"):
			text, err := os.ReadFile(path)
			if err == nil && !isGeneratedPage(string(text)) {
				paragraphs = append(paragraphs, splitParagraphs(relative(root, path), string(text))...)
			}
			return err
		}
		return nil
	})
	return comments, paragraphs, err
}

// readComments returns the doc comments of a file's declarations.
func readComments(name, path string) (found []excerpt, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	add := func(doc *ast.CommentGroup, declared string) {
		if text := strings.Join(strings.Fields(doc.Text()), " "); text != "" {
			found = append(found, excerpt{name, declared, text})
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			var declared bytes.Buffer
			if err := printer.Fprint(&declared, fset, &ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type}); err != nil {
				return nil, err
			}
			add(d.Doc, strings.Join(strings.Fields(declared.String()), " "))
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(cmp.Or(spec.Doc, d.Doc), "type "+spec.Name.Name)
				case *ast.ValueSpec:
					if len(d.Specs) == 1 {
						spec.Doc = cmp.Or(spec.Doc, d.Doc)
					}
					add(spec.Doc, d.Tok.String()+" "+spec.Names[0].Name)
				}
			}
		}
	}
	return found, nil
}

// pageLink matches a Markdown link, whose target would be wrong on another page.
var pageLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// splitParagraphs returns the paragraphs and list items on a page. It omits code, tables, headings and short lines.
func splitParagraphs(name, text string) (found []excerpt) {
	var current []string
	end := func() {
		if text := pageLink.ReplaceAllString(strings.Join(current, " "), "$1"); len(pageWord.FindAllString(text, -1)) >= leastWords {
			found = append(found, excerpt{file: name, text: text})
		}
		current = nil
	}
	for line := range strings.Lines(codeBlock.ReplaceAllString(text, "")) {
		line = strings.TrimSpace(line)
		item := strings.TrimPrefix(strings.TrimPrefix(line, "* "), "- ")
		switch {
		case line == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "!["):
			end()
			continue
		case item != line:
			end()
		}
		current = append(current, item)
	}
	end()
	return found
}

// drawSample returns n randomly selected excerpts, sorted by file.
func drawSample(all []excerpt, n int, seed uint64) []excerpt {
	drawn := slices.Clone(all)
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(drawn), func(i, k int) { drawn[i], drawn[k] = drawn[k], drawn[i] })
	drawn = drawn[:min(n, len(drawn))]
	slices.SortFunc(drawn, func(a, b excerpt) int {
		return cmp.Or(strings.Compare(a.file, b.file), strings.Compare(a.declared, b.declared), strings.Compare(a.text, b.text))
	})
	return drawn
}

// formatSample returns a page with the excerpts and two empty columns for grades.
func formatSample(title, what, head string, drawn []excerpt, of int, seed uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nGenerated by `go run -C internal/tools ./prose sample -seed %d ../..`: %d of %d %s.\n"+
		"Two readers grade each without its surroundings: natural, odd or unclear.\n\n", title, seed, len(drawn), of, what)
	b.WriteString(head + " reader 1 | reader 2 |\n" + strings.Repeat("|---", strings.Count(head, "|")+1) + "|\n")
	escape := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")
	for i, e := range drawn {
		fmt.Fprintf(&b, "| %d | %s |", i+1, e.file)
		if e.declared != "" {
			fmt.Fprintf(&b, " `%s` |", escape.Replace(e.declared))
		}
		fmt.Fprintf(&b, " %s | | |\n", escape.Replace(e.text))
	}
	return b.String()
}
