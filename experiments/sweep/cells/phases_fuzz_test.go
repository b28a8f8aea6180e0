package cells

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf/experiments/netsim"
)

// FuzzParseNetworkSweep parses arbitrary sweeps: rejected ones match ErrTopology, accepted ones have values.
func FuzzParseNetworkSweep(f *testing.F) {
	for _, seed := range []string{"phase=0..100ms", "phase=0..100ms/20", "phase=1..0", "phase", "=..", "phase=0..1/0",
		"slots=1..64/4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseNetworkSweep(text)
		if err != nil && !errors.Is(err, netsim.ErrTopology) {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && len(s.Values) == 0 {
			t.Errorf("%q is a sweep of nothing", text)
		}
	})
}
