package bench

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
)

// TestIneffectiveSettingsAreDropped checks that settings that cannot affect a configuration are dropped, and that
// unknown systems are rejected.
func TestIneffectiveSettingsAreDropped(t *testing.T) {
	s := usualSpec()
	cycles := 3
	s.DequeueCycles = &cycles
	versus, err := s.SingleConfig(s.Versus, 5*olaf.Gbps)
	must(t, err)
	s.DequeueCycles, s.Runs = nil, 7
	if plain, err := s.SingleConfig(s.Versus, 5*olaf.Gbps); err != nil || results.Difference(plain, versus) != "" {
		t.Error(results.Difference(plain, versus), err)
	}
	if _, err := s.SingleConfig("nobody", olaf.Gbps); !errors.Is(err, ErrSpec) {
		t.Error(err)
	}
	s.Versus = ""
	if _, err := s.SingleConfig(usualSpec().Versus, olaf.Gbps); !errors.Is(err, ErrSpec) {
		t.Error(err)
	}
}
