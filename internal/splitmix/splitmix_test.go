package splitmix

import "testing"

// TestPublishedSequence checks the first numbers against the published generator with seed 1234567, whose state grows
// by the same step.
func TestPublishedSequence(t *testing.T) {
	state := uint64(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
		16408922859458223821} {
		if got := MixBits(state); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
		state += 0x9E3779B97F4A7C15
	}
}
