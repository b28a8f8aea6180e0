package rl

import "testing"

// TestFirstValuesMatchNumpy checks the first values of numpy.random.default_rng(seed).random(), as printed in numpy's
// documentation and many tutorials.
func TestFirstValuesMatchNumpy(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		want []float64
	}{
		{42, []float64{0.77395605, 0.43887844, 0.85859792}},
		{12345, []float64{0.22733602, 0.31675834, 0.79736546}},
		{0, []float64{0.63696169, 0.26978671, 0.04097352}},
	} {
		s := newRandom(c.seed)
		for i, want := range c.want {
			if got := s.Float64(); got < want-5e-9 || got > want+5e-9 {
				t.Errorf("seed %d, value %d: %.9f, want %.8f", c.seed, i, got, want)
			}
		}
	}
}

func TestUniformStaysInRange(t *testing.T) {
	s := newRandom(7)
	for range 10000 {
		if v := s.Uniform(-1000, 1000); v < -1000 || v >= 1000 {
			t.Fatalf("%v is outside [-1000, 1000)", v)
		}
	}
}
