package metric

// Series sums values in order and skips missing ones.
type Series struct {
	n           int
	sum, square float64
	max         Float
}

// Add adds the next value.
func (s *Series) Add(v Float) {
	if !v.Known() {
		return
	}
	if s.n++; s.n == 1 || v > s.max {
		s.max = v
	}
	s.sum += float64(v)
	s.square += float64(float64(v) * float64(v))
}

// Mean returns the mean; missing (0/0) without values.
func (s *Series) Mean() Float { return Float(s.sum / float64(s.n)) }

// Max returns the maximum; missing without values.
func (s *Series) Max() Float {
	if s.n == 0 {
		return Missing()
	}
	return s.max
}

// Jain returns Jain's fairness index µ²/(µ²+σ²) with the population's σ, which is (Σx)²/(n·Σx²); missing (0/0)
// without values or if all are 0.
func (s *Series) Jain() Float { return Float(s.sum * s.sum / (float64(s.n) * s.square)) }
