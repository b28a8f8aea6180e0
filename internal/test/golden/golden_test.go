package golden

import "testing"

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct{ got, want, say string }{
		{"a\nb\n", "a\nc\n", `line 2 is "b", was "c"`},
		{"a\nb", "a", "2 lines, were 1"},
	} {
		if said := firstDifference(c.got, c.want); said != c.say {
			t.Errorf("%q and %q: %s, want %s", c.got, c.want, said, c.say)
		}
	}
}
