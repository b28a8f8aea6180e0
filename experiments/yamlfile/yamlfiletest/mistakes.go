// Package yamlfiletest judges what readers of files say about mistakes, for their tests.
package yamlfiletest

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// Mistakes holds that an error is of its kind and that each mistake in it is one line, which names the file and a line that the
// text has. A text that ends too early breaks off in the line behind its last one.
func Mistakes(t testing.TB, err, kind error, file, text string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%v is no %q", err, kind)
	}
	for _, one := range single(err) {
		said := one.Error()
		if strings.ContainsFunc(said, unicode.IsControl) {
			t.Errorf("%q is not one plain line", said)
		}
		if n, ok := lineIn(said, file); !ok || n < 1 || n > linesOf(text)+1 {
			t.Errorf("%q names no line of the %d of %s", said, linesOf(text), file)
		}
	}
}

// single are the mistakes that an error joins.
func single(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || !strings.Contains(err.Error(), "\n") {
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		all = append(all, single(one)...)
	}
	return all
}

// lineIn is the line that a message names behind a file.
func lineIn(said, file string) (line int, ok bool) {
	m := regexp.MustCompile(regexp.QuoteMeta(file) + `:(\d+): `).FindStringSubmatch(said)
	if m == nil {
		return 0, false
	}
	line, err := strconv.Atoi(m[1])
	return line, err == nil
}

// linesOf counts lines as YAML does, which knows more ends of one than \n.
func linesOf(text string) int {
	ends := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
	return strings.Count(ends.Replace(text), "\n") + 1
}
