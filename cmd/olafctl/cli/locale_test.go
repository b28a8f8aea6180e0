package cli

import "testing"

// TestLocaleDecidesCharacters checks in which environments the dashboard draws in ASCII.
func TestLocaleDecidesCharacters(t *testing.T) {
	for _, c := range []struct {
		lcAll, lcCtype, lang, term string
		want                       bool
	}{
		{"", "", "", "xterm", false},
		{"", "", "C", "xterm", true},
		{"", "", "POSIX", "xterm", true},
		{"", "", "de_DE.ISO-8859-1", "xterm", true},
		{"", "", "C.UTF-8", "xterm", false},
		{"", "en_US.utf8", "C", "xterm", false},
		{"C", "en_US.utf8", "en_US.utf8", "xterm", true},
		{"", "", "en_US.UTF-8", "linux", true},
	} {
		vars := map[string]string{"LC_ALL": c.lcAll, "LC_CTYPE": c.lcCtype, "LANG": c.lang, "TERM": c.term}
		env := &Env{Getenv: func(name string) string { return vars[name] }}
		if got := showsASCII(env); got != c.want {
			t.Errorf("with %v the dashboard is in ASCII: %v, want %v", vars, got, c.want)
		}
	}
}
