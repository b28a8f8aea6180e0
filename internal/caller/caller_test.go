package caller

import (
	"strings"
	"testing"
)

// TestNameIsThePersons checks that sudo does not hide the calling user.
func TestNameIsThePersons(t *testing.T) {
	t.Setenv("SUDO_USER", "alice")
	if name := Name(); !strings.HasPrefix(name, "alice@") || len(name) < len("alice@x") {
		t.Errorf("under sudo the name is %q, want alice@ and the host", name)
	}
	t.Setenv("SUDO_USER", "")
	if name := Name(); strings.HasPrefix(name, "@") || strings.HasPrefix(name, "alice@") {
		t.Errorf("without sudo the name is %q", name)
	}
}

// TestTextsOfOthersArePlain checks that text from another process becomes one short line, whatever it contains.
func TestTextsOfOthersArePlain(t *testing.T) {
	if got := Plain("a\x1b[31m\nb"); got != "a?[31m?b" {
		t.Errorf("%q", got)
	}
	if got := []rune(Plain(strings.Repeat("ä", 500))); len(got) != mostLetters {
		t.Errorf("%d letters, want %d", len(got), mostLetters)
	}
}
