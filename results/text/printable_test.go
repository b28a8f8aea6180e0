package text

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestNoControlCharacterReachesATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b]0;PWNED\a\x1b[31mb\n": `a\x1b]0;PWNED\x07\x1b[31mb` + "\n",
		"x\u202ecod.exe":             `x\u202ecod.exe`,
		"\u009b2J\x7f\r":             `\u009b2J\u007f\x0d`,
		"\x9b2J":                     `\x9b2J`,
		"tab\tµs – ä\n":              "tab\tµs – ä\n",
	} {
		var b bytes.Buffer
		p := &Printable{Terminal: &b}
		if n, err := p.Write([]byte(in)); err != nil || n != len(in) || b.String() != want {
			t.Errorf("%q is written as %q, want %q: %v", in, b.String(), want, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOf(rapid.Byte()).Draw(t, "in")
		var whole, parts bytes.Buffer
		w, p := &Printable{Terminal: &whole}, &Printable{Terminal: &parts}
		cut := rapid.IntRange(0, len(in)).Draw(t, "cut")
		for i, b := range [][]byte{in, in[:cut], in[cut:]} {
			to := p
			if i == 0 {
				to = w
			}
			if n, err := to.Write(b); n != len(b) || err != nil {
				t.Fatal(n, err)
			}
		}
		if whole.String() != parts.String() {
			t.Fatalf("in one part %q, in two %q", whole.String(), parts.String())
		}
		bad := func(r rune) bool {
			return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar)
		}
		if !bytes.ContainsRune(in, unicode.ReplacementChar) && strings.ContainsFunc(whole.String(), bad) {
			t.Fatalf("%q is written as %q", in, whole.String())
		}
	})
}

func TestPrintablePreservesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "in")
		var b bytes.Buffer
		if err := json.NewEncoder(&Printable{Terminal: &b}).Encode(in); err != nil {
			t.Fatal(err)
		}
		var want, got string
		raw, _ := json.Marshal(in)
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil || got != want {
			t.Fatalf("%q became %q: %v", want, got, err)
		}
	})
}
