package exactmath

import "math"

const (
	epsilon = 1.0 / (1 << 53)
	maxLog  = 1024 * math.Ln2
	minLog  = -1075 * math.Ln2
	// maxGamma is the number above which the gamma function overflows to infinity.
	maxGamma = 171.624376956302725
)

// StudentQuantile returns the p-quantile of Student's distribution with nu degrees of freedom.
func StudentQuantile(nu, p float64) float64 {
	if p == 0.5 {
		return 0
	}
	t := incompleteBetaInverse(float64(nu/2), 0.5, 2*min(p, 1-p))
	return math.Copysign(math.Sqrt(float64(nu*(1-t))/t), p-0.5)
}

// StudentSurvival returns the probability that a draw from Student's distribution exceeds x.
func StudentSurvival(nu, x float64) float64 {
	if x == 0 {
		return 0.5
	}
	tail := float64(0.5 * incompleteBeta(nu/2, 0.5, nu/(float64(x*x)+nu)))
	if x > 0 {
		return tail
	}
	return 1 - tail
}

// NormalSurvival returns the probability that a draw from the standard normal distribution exceeds x.
func NormalSurvival(x float64) float64 { return float64(0.5 * (1 - erf(x/math.Sqrt2))) }

// incompleteBeta returns the regularized incomplete beta function for 0 <= x <= 1. It uses the method of the Cephes
// library.
func incompleteBeta(a, b, x float64) float64 {
	if x == 0 || x == 1 || math.IsNaN(x) {
		return x
	}
	if float64(b*x) <= 1 && x <= 0.95 {
		return betaSeries(a, b, x)
	}
	rest := 1 - x
	if x <= a/(a+b) {
		return betaFraction(a, b, x, rest)
	}
	var t float64
	if float64(a*rest) <= 1 && rest <= 0.95 {
		t = betaSeries(b, a, rest)
	} else {
		t = betaFraction(b, a, rest, x)
	}
	return 1 - max(t, epsilon)
}

// betaSeries computes incompleteBeta by a power series.
func betaSeries(a, b, x float64) float64 {
	inverse := 1 / a
	u := float64((1 - b) * x)
	first := u / (a + 1)
	t, sum := u, 0.0
	v := first
	for n := 2.0; math.Abs(v) > float64(epsilon*inverse); n++ {
		u = float64((n-b)*x) / n
		t = float64(t * u)
		v = t / (a + n)
		sum += v
	}
	sum = sum + first + inverse
	u = float64(a * Log(x))
	if a+b < maxGamma && math.Abs(u) < maxLog {
		return float64(float64(sum*(1/beta(a, b))) * Pow(x, a))
	}
	if t = -lbeta(a, b) + u + Log(sum); t < minLog {
		return 0
	}
	return Exp(t)
}

// betaFraction computes incompleteBeta with one of two continued fractions, whichever converges faster. rest is 1-x.
func betaFraction(a, b, x, rest float64) float64 {
	var w float64
	if float64(x*(a+b-2))-(a-1) < 0 {
		w = continuedFraction(x, [8]float64{a, a + b, a, a + 1, 1, b - 1, a + 1, a + 2}, 1)
	} else {
		w = continuedFraction(x/(1-x), [8]float64{a, b - 1, a, a + 1, 1, a + b, a + 1, a + 2}, -1) / rest
	}
	y, t := float64(a*Log(x)), float64(b*Log(rest))
	if a+b < maxGamma && math.Abs(y) < maxLog && math.Abs(t) < maxLog {
		t = float64(Pow(rest, b) * Pow(x, a))
		return float64(float64(t/a*w) * (1 / beta(a, b)))
	}
	y += t - lbeta(a, b)
	y += Log(w / a)
	if y < minLog {
		return 0
	}
	return Exp(y)
}

// continuedFraction evaluates one of the two continued fractions for the incomplete beta function. k contains the
// factors of the partial numerators and denominators. In each step, k[1] grows by up and k[5] shrinks by up.
func continuedFraction(x float64, k [8]float64, up float64) float64 {
	const big, small, enough = 4.503599627370496e15, 2.22044604925031308085e-16, 3 * epsilon
	step := [8]float64{1, up, 2, 2, 1, -up, 2, 2}
	var p0, q0, p1, q1, value, r = 0.0, 1.0, 1.0, 1.0, 1.0, 1.0
	for range 301 {
		for _, by := range [2]float64{
			-float64(float64(x*k[0])*k[1]) / float64(k[2]*k[3]), float64(float64(x*k[4])*k[5]) / float64(k[6]*k[7]),
		} {
			p0, p1 = p1, p1+float64(p0*by)
			q0, q1 = q1, q1+float64(q0*by)
		}
		if q1 != 0 {
			r = p1 / q1
		}
		change := 1.0
		if r != 0 {
			change = math.Abs((value - r) / r)
			value = r
		}
		if change < enough {
			return value
		}
		for i := range k {
			k[i] += step[i]
		}
		if math.Abs(q1)+math.Abs(p1) > big {
			p0, p1, q0, q1 = p0*small, p1*small, q0*small, q1*small
		}
		if math.Abs(q1) < small || math.Abs(p1) < small {
			p0, p1, q0, q1 = p0*big, p1*big, q0*big, q1*big
		}
	}
	return value
}

// betaSearch searches for the x at which incompleteBeta(a, b, x) equals want. The interval is from low to high, where
// the function has the values from and to.
type betaSearch struct {
	a, b, want float64
	given      [3]float64 // the caller's a, b and want; if swapped, the fields a, b and want are for 1-x
	swapped    bool

	x, y           float64
	low, high      float64
	from, to       float64
	direction      int
	share, precise float64
}

// incompleteBetaInverse returns the x at which incompleteBeta(a, b, x) equals want. It requires that a or b is at most
// 1.
func incompleteBetaInverse(a, b, want float64) float64 {
	if want <= 0 {
		return 0
	}
	if want >= 1 {
		return 1
	}
	s := &betaSearch{a: a, b: b, want: want, given: [3]float64{a, b, want}, high: 1, to: 1, precise: 1e-6,
		x: a / (a + b)}
	s.y = incompleteBeta(a, b, s.x)
	if s.bisect() && !s.newton() {
		s.precise = 256 * epsilon
		s.bisect()
	}
	switch {
	case !s.swapped:
		return s.x
	case s.x <= epsilon:
		return 1 - epsilon
	}
	return 1 - s.x
}

// bisect divides the interval until x is accurate enough. It reports whether Newton's method can be used to continue.
func (s *betaSearch) bisect() bool {
	s.direction, s.share = 0, 0.5
	for i := 0; i < 100; i++ {
		if i != 0 {
			if !s.splitInterval() {
				return false
			}
			s.y = incompleteBeta(s.a, s.b, s.x)
			if math.Abs((s.high-s.low)/(s.high+s.low)) < s.precise || math.Abs((s.y-s.want)/s.want) < s.precise {
				return true
			}
		}
		if s.y < s.want {
			if s.raiseLow(); s.low > 0.75 {
				s.swapEnds()
				i = -1
			}
			continue
		}
		if s.high = s.x; s.swapped && s.high < epsilon {
			s.x = 0
			return false
		}
		s.lowerHigh()
	}
	switch {
	case s.low >= 1:
		s.x = 1 - epsilon
	case s.x <= 0:
		s.x = 0
	default:
		return true
	}
	return false
}

// splitInterval sets x to a point inside the interval. It returns false if the interval is so close to 0 that x is
// rounded to 0.
func (s *betaSearch) splitInterval() bool {
	s.x = s.low + float64(s.share*(s.high-s.low))
	switch s.x {
	case 1:
		s.x = 1 - epsilon
	case 0:
		s.share = 0.5
		s.x = s.low + float64(s.share*(s.high-s.low))
		return s.x != 0
	}
	return true
}

// raiseLow makes x the lower end of the interval.
func (s *betaSearch) raiseLow() {
	s.low, s.from = s.x, s.y
	switch {
	case s.direction < 0:
		s.direction, s.share = 0, 0.5
	case s.direction > 3:
		s.share = 1 - float64((1-s.share)*(1-s.share))
	case s.direction > 1:
		s.share = float64(0.5*s.share) + 0.5
	default:
		s.share = (s.want - s.y) / (s.to - s.from)
	}
	s.direction++
}

// lowerHigh makes x the upper end of the interval.
func (s *betaSearch) lowerHigh() {
	s.to = s.y
	switch {
	case s.direction > 0:
		s.direction, s.share = 0, 0.5
	case s.direction < -3:
		s.share *= s.share
	case s.direction < -1:
		s.share *= 0.5
	default:
		s.share = (s.y - s.want) / (s.to - s.from)
	}
	s.direction--
}

// swapEnds restarts the search for 1-x with the complete interval.
func (s *betaSearch) swapEnds() {
	if s.swapped = !s.swapped; s.swapped {
		s.a, s.b, s.want = s.given[1], s.given[0], 1-s.given[2]
	} else {
		s.a, s.b, s.want = s.given[0], s.given[1], s.given[2]
	}
	s.x = 1 - s.x
	s.y = incompleteBeta(s.a, s.b, s.x)
	s.low, s.high, s.from, s.to = 0, 1, 0, 1
	s.direction, s.share = 0, 0.5
}

// newton improves x with Newton's method. It reports whether the method converged.
func (s *betaSearch) newton() bool {
	scale := lgamma(s.a+s.b) - lgamma(s.a) - lgamma(s.b)
	for i := range 8 {
		if i != 0 {
			s.y = incompleteBeta(s.a, s.b, s.x)
		}
		switch {
		case s.y < s.from:
			s.x, s.y = s.low, s.from
		case s.y > s.to:
			s.x, s.y = s.high, s.to
		case s.y < s.want:
			s.low, s.from = s.x, s.y
		default:
			s.high, s.to = s.x, s.y
		}
		if s.x == 1 || s.x == 0 {
			return false
		}
		slope := float64((s.a-1)*Log(s.x)) + float64((s.b-1)*Log(1-s.x)) + scale
		if slope < minLog {
			return true
		}
		if slope > maxLog {
			return false
		}
		by := (s.y - s.want) / Exp(slope)
		next, inside := s.confineStep(s.x - by)
		if !inside {
			return false
		}
		if s.x = next; math.Abs(by/s.x) < 128*epsilon {
			return true
		}
	}
	return false
}

// confineStep moves a step that would leave the interval back into the interval. It reports whether the result is in
// (0, 1).
func (s *betaSearch) confineStep(next float64) (float64, bool) {
	if next <= s.low {
		s.y = (s.x - s.low) / (s.high - s.low)
		next = s.low + float64(float64(0.5*s.y)*(s.x-s.low))
		if next <= 0 {
			return next, false
		}
	}
	if next >= s.high {
		s.y = (s.high - s.x) / (s.high - s.low)
		next = s.high - float64(float64(0.5*s.y)*(s.high-s.x))
		if next >= 1 {
			return next, false
		}
	}
	return next, true
}
