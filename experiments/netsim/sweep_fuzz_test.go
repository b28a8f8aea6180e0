package netsim

import (
	"errors"
	"testing"
)

// FuzzParseSweep parses arbitrary sweeps: rejected ones match ErrTopology, accepted ones have values.
func FuzzParseSweep(f *testing.F) {
	for _, seed := range []string{"phase=0..100ms", "phase=0..100ms/20", "phase=1..0", "phase", "=..", "phase=0..1/0",
		"slots=1..64/4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSweep(text)
		if err != nil && !errors.Is(err, ErrTopology) {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && len(s.Values) == 0 {
			t.Errorf("%q is a sweep of nothing", text)
		}
	})
}
