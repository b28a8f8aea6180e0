package main

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// kept contains the results of this run and of earlier runs on one package. The file has one result per line.
type kept struct {
	file  *os.File
	tests string // digest of everything that affects whether a mutant is noticed, except the mutant
	by    map[string]line
}

// line is the result of one mutant. A mutant that was noticed counts as noticed until its function changes. A surviving
// mutant is tested again when a test has changed.
type line struct {
	ID    string `json:"id"`
	Code  string `json:"code"`
	Tests string `json:"tests"`
	Fate  fate   `json:"fate"`
	Judge string `json:"judge,omitempty"`
}

func openKept(o options) (*kept, error) {
	k := &kept{by: map[string]line{}}
	var err error
	if k.tests, err = digest(o.packages()); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.kept, 0o755); err != nil {
		return nil, err
	}
	flags := os.O_RDWR | os.O_CREATE | os.O_APPEND
	if o.fresh {
		flags |= os.O_TRUNC
	}
	if k.file, err = os.OpenFile(filepath.Join(o.kept, strings.ReplaceAll(o.pkg, "/", ".")+".jsonl"), flags, 0o644); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(k.file); lines.Scan(); {
		l := line{}
		if json.Unmarshal(lines.Bytes(), &l) == nil { // the last line of a killed run may be incomplete
			k.by[l.ID] = l
		}
	}
	return k, nil
}

func (k *kept) Close() error { return k.file.Close() }

func (k *kept) of(m *mutant) fate {
	if l, ok := k.by[m.id]; ok && l.Code == m.code() && (l.Fate != survived || l.Tests == k.tests) {
		return l.Fate
	}
	return ""
}

func (k *kept) known(m *mutant) bool { return k.of(m) != "" }

func (k *kept) keep(m *mutant, f fate, judge string) error {
	l := line{m.id, m.code(), k.tests, f, judge}
	k.by[m.id] = l
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = k.file.Write(append(text, '\n'))
	return err
}

// code returns a digest of the changed function or, for a package-level mutant, of the file.
func (m *mutant) code() string {
	text := m.file.text
	if m.fn != nil {
		start := int(m.fn.Pos() - m.file.tree.FileStart)
		text = text[start : start+int(m.fn.End()-m.fn.Pos())]
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// digest returns a digest of the tests in some packages and of all files in their folders.
func digest(packages []string) (string, error) {
	sum := sha256.New()
	for _, pkg := range packages {
		err := filepath.WalkDir(filepath.FromSlash(pkg), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			fmt.Fprintf(sum, "%s %d\n", path, len(text))
			sum.Write(text)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// reasons maps reviewed mutants of a package to the reason why they change nothing or why no test notices them.
type reasons map[string]string

// readJudged reads lines of the form PACKAGE FUNCTION: CHANGE | REASON. Lines that begin with # are comments.
func readJudged(name, pkg string) (reasons, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return reasons{}, nil
	}
	if err != nil {
		return nil, err
	}
	found := reasons{}
	for i, l := range strings.Split(string(text), "\n") {
		if l = strings.TrimSpace(l); l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		of, rest, _ := strings.Cut(l, " ")
		cut := strings.LastIndex(rest, " | ")
		if cut < 0 || strings.TrimSpace(rest[cut+3:]) == "" {
			return nil, fmt.Errorf("%s:%d: PACKAGE FUNCTION: CHANGE | REASON expected", name, i+1)
		}
		if of == pkg {
			found[strings.TrimSpace(rest[:cut])] = strings.TrimSpace(rest[cut+3:])
		}
	}
	return found, nil
}

func (e reasons) has(m *mutant) bool { _, ok := e[m.id]; return ok }

// stale lists the entries for mutants that no longer exist.
func (e reasons) stale(all []*mutant) (ids []string) {
	for id := range e {
		if !slices.ContainsFunc(all, func(m *mutant) bool { return m.id == id }) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// report prints the surviving mutants, each with its reason if there is one, and finally the rate.
func report(w io.Writer, o options, sample []*mutant, results *kept, judged, left reasons) {
	count := map[fate]int{}
	same := 0
	list := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	slices.SortFunc(sample, func(a, b *mutant) int {
		return strings.Compare(fmt.Sprintf("%s:%06d", a.file.path, a.line), fmt.Sprintf("%s:%06d", b.file.path, b.line))
	})
	for _, m := range sample {
		if judged.has(m) {
			same++
			continue
		}
		f := results.of(m)
		count[f]++
		if f == survived {
			fmt.Fprintf(list, "%s/%s\t%s\t%s\n", o.pkg, m.place(), m.id, cmp.Or(left[m.id], "no reason yet"))
		}
	}
	_ = list.Flush()
	tried := count[noticed] + count[endless] + count[survived]
	rate := 100.0
	if tried > 0 {
		rate = 100 * float64(tried-count[survived]) / float64(tried)
	}
	fmt.Fprintf(w, "%s: %d mutants of seed %d, %d judged equivalent, %d noticed (%d of them by not ending), %d survived: %.1f %%\n",
		o.pkg, tried+same, o.seed, same, count[noticed]+count[endless], count[endless], count[survived], rate)
}
