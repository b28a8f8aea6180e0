package metric

// Series accumulates values in order and skips missing values.
type Series struct {
	n           int
	sum, square float64
	max         Float
}

// Add adds the next value, unless it is missing.
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

// Mean returns the mean, or a missing value (0/0) if there are no values.
func (s *Series) Mean() Float { return Float(s.sum / float64(s.n)) }

// Max returns the maximum, or a missing value if there are no values.
func (s *Series) Max() Float {
	if s.n == 0 {
		return Missing()
	}
	return s.max
}

// Jain returns Jain's fairness index µ²/(µ²+σ²), where σ is the population's standard deviation, which equals
// (Σx)²/(n·Σx²). It is missing (0/0) if there are no values or all are 0.
func (s *Series) Jain() Float { return Float(s.sum * s.sum / (float64(s.n) * s.square)) }
