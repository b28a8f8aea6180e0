// Package yamlfiletest checks the errors of file readers in tests.
package yamlfiletest

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// CheckMistakes checks that an error matches kind, and that each mistake in it is a single line with the name of the
// file and the number of an existing line. If the text ends too early, the reported line may be one more than the last.
func CheckMistakes(t testing.TB, err, kind error, file, text string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%v is no %q", err, kind)
	}
	for _, one := range splitErrors(err) {
		message := one.Error()
		if strings.ContainsFunc(message, unicode.IsControl) {
			t.Errorf("%q is not one plain line", message)
		}
		if n, ok := lineIn(message, file); !ok || n < 1 || n > linesOf(text)+1 {
			t.Errorf("%q names no line of the %d of %s", message, linesOf(text), file)
		}
	}
}

// splitErrors returns the individual mistakes in a joined error.
func splitErrors(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || !strings.Contains(err.Error(), "\n") {
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		all = append(all, splitErrors(one)...)
	}
	return all
}

// lineIn returns the line number that follows the name of the file in a message.
func lineIn(message, file string) (line int, ok bool) {
	m := regexp.MustCompile(regexp.QuoteMeta(file) + `:(\d+): `).FindStringSubmatch(message)
	if m == nil {
		return 0, false
	}
	line, err := strconv.Atoi(m[1])
	return line, err == nil
}

// linesOf counts lines as YAML does. In YAML, a line can also end with other characters than a newline.
func linesOf(text string) int {
	ends := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
	return strings.Count(ends.Replace(text), "\n") + 1
}
