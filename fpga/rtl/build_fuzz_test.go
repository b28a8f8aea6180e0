package rtl

import (
	"errors"
	"testing"
)

// FuzzParseBuild parses arbitrary text as the sizes of a card. It checks that the name of an accepted build is parsed
// as the same build.
func FuzzParseBuild(f *testing.F) {
	for _, seed := range []string{"", "ports=1,slots=8", "slots=0", "slots=4097", "x=1", "slots=1,slots=2", ",", "frame=9600"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseBuild(text)
		if err != nil {
			if !errors.Is(err, ErrSize) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if again, err := ParseBuild(b.addressName()); err != nil || again != b {
			t.Errorf("%q is %+v, whose name %q reads as %+v, %v", text, b, b.addressName(), again, err)
		}
	})
}
