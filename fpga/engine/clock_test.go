package engine

import "testing"

// TestNS3RoundsHalvesUp checks the rounding of a time that ends on half a nanosecond: one bit at 1,024 bit/s.
func TestNS3RoundsHalvesUp(t *testing.T) {
	if got := ns3Time(1, 1024); got != 976_563_000 {
		t.Errorf("%d ps, want 976,562.5 ns rounded up", got)
	}
}
