package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Habits that comments should avoid; CONTRIBUTING.md gives the rules and examples.
var (
	linking    = regexp.MustCompile(`^(is|are|was|were|has|have|had|holds|stands|lies)\b`)
	predicate  = regexp.MustCompile(`\b(is|are|was|were) (what|how|where|who|whom|of (a|an|the|his|its|their|one|no|all|those))\b`)
	saying     = regexp.MustCompile(`(?i)\b(says?|said|tells?|told) (whether|what|how|that|which|where|why|if|of|so)\b`)
	person     = regexp.MustCompile(`(?i)\b(whoever|whomever|somebody|nobody|anybody|everybody|whatever|he|him|his|she)\b`)
	reflexive  = regexp.MustCompile(`(?i)\b(of its own|of their own|by itself|by themselves|that which|those that|those who|as far as|in any case|of whom)\b`)
	pageWord   = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
	codeBlock  = regexp.MustCompile("(?s)```.*?```")
	sentenceAt = regexp.MustCompile(`[.!?:]\s`)
)

// participles lists irregular participles and adverbs, which should not be the name of a function. Words that end in
// -ed are recognised by isParticiple.
var participles = strings.Fields("told said held kept made shown given taken known seen done left sent had met drawn written built found " +
	"meant lost begun grown thrown chosen spoken beside whole alone apart")

// verbsInEd lists verbs that end in -ed but are not participles.
var verbsInEd = strings.Fields("need feed seed speed embed shed")

// conventional lists names that are fixed by the language or by common interfaces.
var conventional = strings.Fields("main init String Error Unwrap Is")

const (
	longLine     = 140 // in characters
	longSentence = 30  // in words
)

// place is the position at which a habit was found.
type place struct {
	at, text string
	habits   int
}

// tally counts language habits in a source tree.
type tally struct {
	lines, longLines                         int
	comments, predicates, sayings            int
	persons, reflexives                      int
	funcDocs, linkingDocs                    int
	functions, oneWordFunctions              int
	methods, oneWordMethods, participleNames int
	words, sentences, longSentences          int
	places                                   []place
}

// count counts habits in all files of a tree. It omits tests, generated files, testdata and folders whose names begin
// with a dot.
func count(root string) (*tally, error) {
	t := new(tally)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := ""; {
		case err != nil:
			return err
		case d.IsDir():
			if name = d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return fs.SkipDir
			}
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			return t.countFile(root, path)
		case strings.HasSuffix(path, ".md"):
			return t.countPage(root, path)
		}
		return nil
	})
	return t, err
}

func (t *tally) countFile(root, path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.ParseComments)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	for line := range strings.Lines(string(source)) {
		t.lines++
		if utf8.RuneCountInString(line) > longLine {
			t.longLines++
		}
	}
	for _, group := range file.Comments {
		t.countComment(relative(root, fset.Position(group.Pos()).String()), group.Text())
	}
	for _, declared := range file.Decls {
		if f, ok := declared.(*ast.FuncDecl); ok {
			t.countFunction(f)
		}
	}
	return nil
}

func (t *tally) countComment(at, text string) {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return
	}
	t.comments++
	found := 0
	for _, habit := range []struct {
		pattern *regexp.Regexp
		sum     *int
	}{{predicate, &t.predicates}, {saying, &t.sayings}, {person, &t.persons}, {reflexive, &t.reflexives}} {
		n := len(habit.pattern.FindAllString(text, -1))
		*habit.sum += n
		found += n
	}
	if found > 0 {
		t.places = append(t.places, place{at, text, found})
	}
}

func (t *tally) countFunction(f *ast.FuncDecl) {
	name := f.Name.Name
	oneWord := countWords(name) == 1 && !slices.Contains(conventional, name)
	all, short := &t.functions, &t.oneWordFunctions
	if f.Recv != nil {
		all, short = &t.methods, &t.oneWordMethods
	}
	*all++
	if oneWord {
		*short++
		if isParticiple(strings.ToLower(name)) {
			t.participleNames++
		}
	}
	if f.Doc == nil {
		return
	}
	t.funcDocs++
	text := strings.Join(strings.Fields(f.Doc.Text()), " ")
	if linking.MatchString(strings.TrimSpace(strings.TrimPrefix(text, name))) {
		t.linkingDocs++
	}
}

func (t *tally) countPage(root, path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if isGeneratedPage(string(source)) {
		return nil
	}
	var prose strings.Builder
	for line := range strings.Lines(codeBlock.ReplaceAllString(string(source), "")) {
		line = strings.TrimSpace(line)
		t.words += len(pageWord.FindAllString(line, -1))
		switch {
		case line == "":
			prose.WriteString(". ")
		case !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#"):
			prose.WriteString(line + " ")
		}
	}
	for _, sentence := range sentenceAt.Split(prose.String(), -1) {
		n := len(pageWord.FindAllString(sentence, -1))
		if n < 3 {
			continue
		}
		t.sentences++
		if n > longSentence {
			t.longSentences++
			t.places = append(t.places, place{relative(root, path), strings.Join(strings.Fields(sentence), " "), n / 15})
		}
	}
	return nil
}

// isGeneratedPage reports whether the first lines of a page state that the page is generated.
func isGeneratedPage(text string) bool {
	head := strings.SplitN(text, "\n", 6)
	return strings.Contains(strings.Join(head[:min(5, len(head))], " "), "Generated")
}

// countWords returns the number of words in an identifier. Words begin at capital letters and after underscores.
func countWords(name string) int {
	n, before := 1, rune(0)
	for i, r := range name {
		if i > 0 && (r == '_' || unicode.IsUpper(r) && !unicode.IsUpper(before)) {
			n++
		}
		before = r
	}
	return n
}

// isParticiple reports whether a lower-case word is a participle or an adverb.
func isParticiple(word string) bool {
	return slices.Contains(participles, word) ||
		strings.HasSuffix(word, "ed") && len(word) > 4 && !slices.Contains(verbsInEd, word)
}

func relative(root, path string) string {
	return strings.TrimPrefix(path, strings.TrimSuffix(root, "/")+"/")
}
