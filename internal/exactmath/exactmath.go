// Package exactmath computes the mathematical functions for random numbers and results with the same bits on every
// architecture. On some architectures and build levels, the compiler computes x*y+z with a single rounding, and some
// functions of package math are written in assembly.
//
// The results here have the same bits as those of Go's math and gonum on amd64 with GOAMD64=v1 and a processor with
// FMA. Each function performs the same steps. Fused steps use math.FMA, and every other product is rounded.
package exactmath

import "math"

const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10

	// ln2Upper and ln2Lower are the upper and lower half of ln 2 for Exp. expOverflow is the greatest number whose
	// exponential is finite.
	ln2Upper    = 0.69314718055966295651160180568695068359375
	ln2Lower    = 0.28235290563031577122588448175013436025525412068e-12
	expOverflow = 7.09782712893384e+02
)

// expSeries lists 1/n! for n from 9 down to 1, for the series of Exp.
var expSeries = [...]float64{
	2.4801587301587301587e-5, 1.9841269841269841270e-4, 1.3888888888888888889e-3, 8.3333333333333333333e-3,
	4.1666666666666666667e-2, 1.6666666666666666667e-1, 0.5, 1,
}

// logEven and logOdd are the coefficients of log's series in s⁴, highest first. Log1p uses them alternately.
var (
	logEven = [...]float64{1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01}
	logOdd  = [...]float64{
		1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01, 6.666666666666735130e-01,
	}
	logAll = [...]float64{
		1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
		2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01,
	}
)

// horner evaluates a polynomial at x. c contains the coefficients, starting with that of the highest power.
func horner(x float64, c []float64) float64 {
	sum := c[0]
	for _, next := range c[1:] {
		sum = float64(sum*x) + next
	}
	return sum
}

// Exp returns e**x.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x > expOverflow:
		return math.Inf(1)
	}
	k := math.RoundToEven(float64(math.Log2E * x))
	biased := k + 1023
	if !(biased >= -52) {
		return 0
	}
	r := math.FMA(-ln2Lower, k, math.FMA(-ln2Upper, k, x)) * 0.0625
	p := expSeries[0]
	for _, c := range expSeries[1:] {
		p = math.FMA(r, p, c)
	}
	r = float64(r * p)
	for range 3 { // e**2x - 1 is (e**x - 1)(e**x + 1)
		r = float64(r * (r + 2))
	}
	r = math.FMA(r+2, r, 1)
	switch {
	case biased <= 0:
		return r * power2(int(biased)+1022) * power2(1)
	case biased >= 0x7ff:
		return math.Inf(1)
	}
	return r * power2(int(biased))
}

// power2 returns the power of two that has the given biased exponent.
func power2(biased int) float64 { return math.Float64frombits(uint64(biased) << 52) }

// Log returns the natural logarithm. For subnormal numbers it returns a wrong result, as the reference implementation
// does.
func Log(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x < 0:
		return math.NaN()
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	}
	bits := math.Float64bits(x)
	f := math.Float64frombits(bits&(1<<52-1) | 0x3fe<<52)
	k := float64(int(bits>>52) - 0x3fe)
	if f <= math.Sqrt2/2 {
		k--
		f *= 2
	}
	f--
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	r := float64(s2*horner(s4, logOdd[:])) + float64(s4*horner(s4, logEven[:]))
	half := float64(0.5 * f * f)
	return float64(k*ln2Hi) - ((half - (float64(s*(half+r)) + float64(k*ln2Lo))) - f)
}

// Log1p returns log(1+x). The result is also accurate for x near 0.
func Log1p(x float64) float64 {
	const sqrt2Less1, sqrtHalfLess1 = 4.142135623730950488017e-01, -2.928932188134524755992e-01
	switch size := math.Abs(x); {
	case x < -1 || math.IsNaN(x):
		return math.NaN()
	case x == -1:
		return math.Inf(-1)
	case math.IsInf(x, 1):
		return x
	case size < 1.0/(1<<54):
		return x
	case size < 1.0/(1<<29):
		return x - float64(float64(x*x)*0.5)
	case size < sqrt2Less1 && x > sqrtHalfLess1:
		return log1pSeries(x, 0, 0, false)
	}
	u, c := x, 0.0
	if x < 1<<53 {
		u = 1 + x
	}
	bits := math.Float64bits(u)
	k := int(bits>>52) - 1023
	if x < 1<<53 { // c corrects for the rounding error of 1+x
		if k > 0 {
			c = (1 - (u - x)) / u
		} else {
			c = (x - (u - 1)) / u
		}
	}
	if bits &= 1<<52 - 1; bits < 0x0006a09e667f3bcd { // the fraction of √2
		f := math.Float64frombits(bits|0x3ff<<52) - 1
		return log1pSeries(f, k, c, bits == 0)
	}
	f := math.Float64frombits(bits|0x3fe<<52) - 1
	return log1pSeries(f, k+1, c, (1<<52-bits)>>2 == 0)
}

// log1pSeries returns log((1+f)·2**k) + c. small means that |f| is below 2**-20.
func log1pSeries(f float64, k int, c float64, small bool) float64 {
	half, of := float64(0.5*f*f), float64(k)
	if small {
		if f == 0 {
			if k == 0 {
				return 0
			}
			return float64(of*ln2Hi) + (c + float64(of*ln2Lo))
		}
		r := float64(half * (1 - float64(0.66666666666666666*f)))
		if k == 0 {
			return f - r
		}
		return float64(of*ln2Hi) - ((r - (float64(of*ln2Lo) + c)) - f)
	}
	s := f / (2 + f)
	z := float64(s * s)
	r := float64(z * horner(z, logAll[:]))
	if k == 0 {
		return f - (half - float64(s*(half+r)))
	}
	return float64(of*ln2Hi) - ((half - (float64(s*(half+r)) + (float64(of*ln2Lo) + c))) - f)
}

// Pow returns x**y.
func Pow(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case y == 1:
		return x
	case x == 0 || math.IsNaN(x) || math.IsNaN(y) || math.IsInf(x, 0) || math.IsInf(y, 0):
		return math.Pow(x, y) // the result is 0, 1, infinite or NaN, and therefore exact
	case y == 0.5:
		return math.Sqrt(x)
	case y == -0.5:
		return 1 / math.Sqrt(x)
	}
	whole, part := math.Modf(math.Abs(y))
	switch {
	case part != 0 && x < 0:
		return math.NaN()
	case whole >= 1<<63 && x == -1:
		return 1
	case whole >= 1<<63 && (math.Abs(x) < 1) == (y > 0):
		return 0
	case whole >= 1<<63:
		return math.Inf(1)
	}
	power := 1.0
	if part != 0 {
		if part > 0.5 {
			part--
			whole++
		}
		power = Exp(float64(part * Log(x)))
	}
	power, exponent := powInt(x, int64(whole), power)
	if y < 0 {
		power, exponent = 1/power, -exponent
	}
	return math.Ldexp(power, exponent)
}

// powInt returns power·x**n as a fraction and an exponent of 2. It uses repeated squaring.
func powInt(x float64, n int64, power float64) (fraction float64, exponent int) {
	square, of := math.Frexp(x)
	for ; n != 0; n >>= 1 {
		if of < -1<<12 || 1<<12 < of { // beyond the range of float64, regardless of the remaining factors
			return power, exponent + of
		}
		if n&1 == 1 {
			power = float64(power * square)
			exponent += of
		}
		square = float64(square * square)
		of <<= 1
		if square < 0.5 {
			square *= 2
			of--
		}
	}
	return power, exponent
}
