package text

import (
	"fmt"
	"io"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Printable is a writer for text that is shown in a terminal. Names from servers, traces, captures and YAML files may
// contain control and bidirectional characters, which a terminal would obey. Printable writes such characters as \x1b
// or \u202e. Tabs, line ends and JSON documents are not changed.
type Printable struct {
	Terminal io.Writer
	rest     []byte // an incomplete character from the last write
}

// Write implements io.Writer.
func (p *Printable) Write(b []byte) (int, error) {
	if len(p.rest) == 0 && isPlain(b) {
		return p.Terminal.Write(b)
	}
	in := append(p.rest, b...)
	out := make([]byte, 0, len(in)+16)
	for len(in) > 0 && utf8.FullRune(in) {
		r, size := utf8.DecodeRune(in)
		out = appendPrintable(out, r, in[:size])
		in = in[size:]
	}
	p.rest = append([]byte(nil), in...)
	if _, err := p.Terminal.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// isPlain reports whether all bytes are printable ASCII, tabs or line ends.
func isPlain(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c < ' ' && c != '\n' && c != '\t' || c >= 0x7f })
}

func appendPrintable(out []byte, r rune, raw []byte) []byte {
	switch {
	case r == '\n' || r == '\t':
		return append(out, byte(r))
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Appendf(out, `\x%02x`, raw[0])
	case r < ' ':
		return fmt.Appendf(out, `\x%02x`, r)
	case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029':
		return fmt.Appendf(out, `\u%04x`, r)
	}
	return append(out, raw...)
}

// Raw returns the terminal under a Printable. It is for dashboards and for lines that are redrawn. Other writers are
// returned unchanged.
func Raw(w io.Writer) io.Writer {
	if p, ok := w.(*Printable); ok {
		return p.Terminal
	}
	return w
}
