// Command prose counts language habits in a tree's comments, names and pages, and checks them against limits.
// CONTRIBUTING.md explains the rules.
//
//	prose [-top 40] [-limits FILE] [FOLDER]
//	prose sample -seed 20261128 [FOLDER]
//
// The subcommand sample draws 100 random doc comments and 50 random paragraphs, and writes them to docs/notes with empty
// columns for the grades of two readers.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "sample" {
		if err := runSample(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "prose:", err)
			os.Exit(1)
		}
		return
	}
	top := flag.Int("top", 0, "also list this many of the worst places")
	limits := flag.String("limits", "", "file of limits; exit 1 when a figure is above its limit")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	if err := run(os.Stdout, root, *limits, *top); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root, limits string, top int) error {
	t, err := count(root)
	if err != nil {
		return err
	}
	figures := t.figures()
	for _, f := range figures {
		fmt.Fprintf(out, "%-36s %8.2f %s\n", f.name, f.value, f.unit)
	}
	slices.SortStableFunc(t.places, func(a, b place) int { return b.habits - a.habits })
	for _, p := range t.places[:min(top, len(t.places))] {
		fmt.Fprintf(out, "%s: %s\n", p.at, shorten(p.text))
	}
	if limits == "" {
		return nil
	}
	text, err := os.ReadFile(limits)
	if err != nil {
		return err
	}
	return check(figures, string(text))
}

// figure is a measured percentage or number for which lower is better.
type figure struct {
	name  string
	value float64
	unit  string
}

func (t *tally) figures() []figure {
	share := func(a, b int) float64 { return 100 * float64(a) / float64(max(b, 1)) }
	return []figure{
		{"function_docs_that_begin_with_is", share(t.linkingDocs, t.funcDocs), "%"},
		{"comments_with_is_what", share(t.predicates, t.comments), "%"},
		{"comments_that_say_or_tell", float64(t.sayings), ""},
		{"persons_in_comments", float64(t.persons), ""},
		{"reflexives_in_comments", float64(t.reflexives), ""},
		{"one_word_functions", share(t.oneWordFunctions, t.functions), "%"},
		{"one_word_methods", share(t.oneWordMethods, t.methods), "%"},
		{"participle_names", share(t.participleNames, t.functions+t.methods), "%"},
		{"go_lines_over_140", share(t.longLines, t.lines), "%"},
		{"words_in_pages", float64(t.words), ""},
		{"sentences_over_30_words", share(t.longSentences, t.sentences), "%"},
	}
}

// rounding is the precision of the figures in the limits file. A figure may exceed its limit by less than this.
const rounding = 0.005

// check returns an error that lists each figure that exceeds its limit or has no limit.
func check(figures []figure, limits string) error {
	limit := map[string]float64{}
	for line := range strings.Lines(limits) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if !ok || err != nil {
			return fmt.Errorf("limits: %q is not a line of NAME VALUE", strings.TrimSpace(line))
		}
		limit[name] = v
	}
	var wrong []string
	for _, f := range figures {
		switch v, ok := limit[f.name]; {
		case !ok:
			wrong = append(wrong, f.name+" has no limit")
		case f.value > v+rounding:
			wrong = append(wrong, fmt.Sprintf("%s is %.2f, above its limit of %.2f", f.name, f.value, v))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s; -top 40 lists the worst places", strings.Join(wrong, "; "))
}

// shorten truncates text that is too long for one line.
func shorten(text string) string {
	const most = 160
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
