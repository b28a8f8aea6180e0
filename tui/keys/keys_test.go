package keys

import (
	"errors"
	"os"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
)

func TestDefaultIsUnambiguous(t *testing.T) {
	if err := checkUnique(table); err != nil {
		t.Error(err)
	}
	for _, b := range table {
		if b.About == "" || b.Group == "" || len(b.Keys) == 0 {
			t.Errorf("%s is not described", b.Action)
		}
	}
}

func TestLoad(t *testing.T) {
	m, err := Load([]byte("keys:\n  pause: [b, space]\n  step: n\n"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]Action{"b": Pause, " ": Pause, "n": Step, "q": Quit} {
		if a, _ := m.Action(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(key)}); a != want {
			t.Errorf("%q does %q, want %q", key, a, want)
		}
	}
	if _, bound := m.Action(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{'.'}}); bound {
		t.Error("the old key still steps")
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct{ file, say string }{
		{"keys:\n  pauze: b\n", `unknown action "pauze"; did you mean`},
		{"keys:\n  zzz: b\n", "docs/reference/dashboard.md lists them"},
		{"keys:\n  pause: q\n", `would do both`},
		{"keys:\n  pause: []\n", "no key"},
		{"keys:\n  pause: {a: b}\n", "line 2"},
		{"colours: {}\n", `unknown section "colours"`},
		{"keys: [", "bad key bindings"},
	} {
		_, err := Load([]byte(c.file))
		if !errors.Is(err, ErrBindings) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%q: %v, want it to say %q", c.file, err, c.say)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("keys:\n  pause: [b, space]\n"))
	f.Add([]byte("keys: 3\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if m, err := Load(file); err == nil && len(m.Bindings()) != len(table) {
			t.Errorf("%d bindings", len(m.Bindings()))
		}
	})
}

// TestEveryActionIsDocumented checks that docs/reference/dashboard.md names every action with its keys.
func TestEveryActionIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reference/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range table {
		if !strings.Contains(string(doc), "| `"+string(b.Action)+"` | ") || !strings.Contains(string(doc), " | "+
			b.About+" |") {
			t.Errorf("%s (%s) is not in docs/reference/dashboard.md", b.Action, b.About)
		}
	}
}
