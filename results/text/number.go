package text

import (
	"math"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/results"
)

// Exact returns the shortest text that is parsed as the same number, or "" for a missing number.
func Exact(f results.Float) string {
	if !f.Known() {
		return ""
	}
	return strconv.FormatFloat(float64(f), 'g', -1, 64)
}

// Missing is the text that is printed for a missing number.
const Missing = "–"

// FormatRounded returns the mean and the half-width of a statistic's interval as text, both multiplied by the factor
// by. The half-width has two digits, and the mean ends at the same decimal place, but has at most as many decimals as a
// mean of five digits. There are no exponents. A mean without a half-width, or whose half-width rounds to 0, has four
// digits; a count has all digits. A statistic of a single number has no half-width.
func FormatRounded(s *results.Statistic, by float64) string {
	mean, half := FormatRoundedParts(s, by)
	if half == "" {
		return mean
	}
	return mean + " ± " + half
}

// FormatRoundedParts returns the same as FormatRounded in two parts. half may be empty.
func FormatRoundedParts(s *results.Statistic, by float64) (mean, half string) {
	if !s.Known() {
		return Missing, ""
	}
	m, h := float64(s.Mean)*by, float64(s.CI95)*by
	switch {
	case !s.CI95.Known(), s.N == 1:
		return Decimal(m, placeOf(m, 4)), ""
	case math.Abs(h) <= 1e-9*math.Abs(m): // rounding errors in sums of equal numbers
		return Decimal(m, placeOf(m, 4)), "0"
	}
	n := placeBeside(m, h)
	return Decimal(m, n), Decimal(h, n)
}

// placeBeside returns the last decimal place to print of a mean that has the given half-width.
func placeBeside(mean, half float64) int {
	place := 1 - exponent(half, 2) // two digits of the half-width; negative before the decimal point
	if mean == 0 {
		return place
	}
	most := max(0, widest-1-exponent(mean, widest))
	switch {
	case place <= most:
		return place
	case half < math.Pow10(-most)/2:
		return min(most, max(0, 3-exponent(mean, 4)))
	}
	return most
}

// widest is the maximum number of digits of a mean that has an interval, unless it has more digits before the decimal
// point.
const widest = 5

// Single returns a single number as text with four digits; a count has all digits.
func Single(v float64) string {
	if math.IsNaN(v) {
		return Missing
	}
	return Decimal(v, placeOf(v, 4))
}

// placeOf returns the last decimal place that must be printed to show v with the given number of significant digits. It
// is 0 for whole numbers and never negative.
func placeOf(v float64, significant int) int {
	if v == math.Trunc(v) {
		return 0
	}
	return max(0, significant-1-exponent(v, significant))
}

// exponent returns the decimal exponent of v after rounding to the given number of significant digits.
func exponent(v float64, significant int) int {
	_, e, _ := strings.Cut(strconv.FormatFloat(v, 'e', significant-1, 64), "e")
	n, _ := strconv.Atoi(e)
	return n
}

// Decimal returns v as text, rounded to the given decimal place, which is negative before the decimal point. A negative
// number has a true minus sign.
func Decimal(v float64, place int) string {
	if place < 0 {
		unit := math.Pow10(-place)
		v, place = math.Round(v/unit)*unit, 0
	}
	s := strconv.FormatFloat(v, 'f', place, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-") // −0 would confuse
	}
	return strings.Replace(s, "-", "−", 1)
}

// Percent returns a change in per cent as text with its sign.
func Percent(f results.Float) string {
	switch {
	case !f.Known():
		return Missing
	case math.Abs(float64(f)) < 0.05:
		return "0.0 %"
	case f > 0:
		return "+" + Decimal(float64(f), 1) + " %"
	}
	return Decimal(float64(f), 1) + " %"
}

// largerUnits lists the units in which numbers are printed, with the largest first.
var largerUnits = map[string][]struct {
	of   float64
	name string
}{
	"ns":    {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}},
	"bit/s": {{1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}},
}

// ScaleOf returns the unit in which a column of statistics is printed, and the factor by which values must be
// multiplied to convert them to it.
func ScaleOf(unit string, column ...*results.Statistic) (by float64, name string) {
	largest := 0.0
	for _, s := range column {
		if s.Known() {
			largest = max(largest, math.Abs(float64(s.Mean)))
		}
	}
	for _, u := range largerUnits[unit] {
		if largest >= u.of {
			return 1 / u.of, u.name
		}
	}
	return 1, unit
}
