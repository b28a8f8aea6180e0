package screen

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestASCII checks the replacements for characters that a terminal without UTF-8 lacks.
func TestASCII(t *testing.T) {
	for text, want := range map[string]string{
		"lost 3.2 ± 0.1 %, 14 µs": "lost 3.2+/-0.1 %, 14 us",
		"┌─┐│└┘":                  "+-+|++",
		"▁▃▅█":                    "_:=#",
		"⠉⠒⣀⡇⢸⠑⡠⣿":                "'-_||\\/#",
		"字 φ":                     "?? ?",
		"±":                       "~",
		"of  ≤14≥":                "of <=14>",
	} {
		var s Screen
		s.Resize(TextWidth(text), 1)
		s.All().Text(0, 0, 0, text)
		if s.ASCII(); s.ANSI(nil) != want {
			t.Errorf("%q must become %q, not %q", text, want, s.ANSI(nil))
		}
	}
}

// TestASCIIKeepsTheGrid checks that every text becomes printable ASCII of the same size.
func TestASCIIKeepsTheGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Screen
		s.Resize(rapid.IntRange(1, 30).Draw(t, "width"), 2)
		for y := range 2 {
			s.All().Text(0, y, 0, rapid.String().Draw(t, "text"))
		}
		s.ASCII()
		for i := range s.cells {
			if c := s.cells[i].Rune; c < ' ' || c > '~' {
				t.Fatalf("cell %d is %q", i, c)
			}
		}
	})
}

// TestEveryDrawnCharacterHasALikeness checks that every character in the golden frames of all dashboards has a
// replacement.
func TestEveryDrawnCharacterHasALikeness(t *testing.T) {
	frames := 0
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".golden" {
			return err
		}
		frames++
		raw, err := os.ReadFile(path)
		for _, c := range strings.Map(func(c rune) rune { return map[bool]rune{true: c, false: -1}[c > '~'] }, string(raw)) {
			if asciiFor(c) == '?' {
				t.Errorf("%s draws %q, which has no likeness in ASCII", path, c)
			}
		}
		return err
	})
	if err != nil || frames < 20 {
		t.Errorf("%d golden frames were read: %v", frames, err)
	}
}
