package pace

import (
	"testing"

	"github.com/olafctl/olaf"
)

// TestSpeeds checks all speeds, upwards and downwards.
func TestSpeeds(t *testing.T) {
	s, n := slowest, 0
	for ; s != Full; n++ {
		next := s.Faster()
		if next <= s {
			t.Fatalf("faster than %v is %v", s, next)
		}
		if back := next.Slower(); back < s*0.999 || back > s*1.001 {
			t.Errorf("slower than %v is %v, not %v", next, back, s)
		}
		s = next
	}
	if n != 3*15+1 {
		t.Errorf("%d speeds", n)
	}
	if slowest.Slower() != slowest {
		t.Errorf("slower than the slowest is %v", slowest.Slower())
	}
	for length, want := range map[olaf.Duration]Speed{60 * olaf.Second: 1, 65 * olaf.Second: 1,
		59 * olaf.Second: 0.5, olaf.Millisecond: 1e-5, 0: slowest} {
		if got := AboutAMinute(length); got < want*0.999 || got > want*1.001 {
			t.Errorf("a run of %v is shown at %v, want %v", length, got, want)
		}
	}
}
