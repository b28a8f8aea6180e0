package text

import (
	"math"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/results"
)

// Exact is the shortest form that reads back as the same number, empty where the number is missing.
func Exact(f results.Float) string {
	if !f.Known() {
		return ""
	}
	return strconv.FormatFloat(float64(f), 'g', -1, 64)
}

// Missing stands where there is no number.
const Missing = "–"

// Rounded prints a mean and the half-width of its interval, both times by: the half-width to two digits, the mean to the
// same place, nothing with an exponent, and of both no place behind the point that a mean's fifth digit does not reach. Of a
// mean without a half-width, or whose half-width is nothing by then, it prints four digits, of a count all. One number alone has
// none, whatever it says: arithmetic and what nothing is drawn for are no sample.
func Rounded(s *results.Statistic, by float64) string {
	mean, half := RoundedParts(s, by)
	if half == "" {
		return mean
	}
	return mean + " ± " + half
}

// RoundedParts is Rounded in two columns; the half-width is empty where there is none.
func RoundedParts(s *results.Statistic, by float64) (mean, half string) {
	if !s.Known() {
		return Missing, ""
	}
	m, h := float64(s.Mean)*by, float64(s.CI95)*by
	switch {
	case !s.CI95.Known(), s.N == 1:
		return Decimal(m, placeOf(m, 4)), ""
	case math.Abs(h) <= 1e-9*math.Abs(m): // what is left of sums of equal numbers
		return Decimal(m, placeOf(m, 4)), "0"
	}
	n := placeBeside(m, h)
	return Decimal(m, n), Decimal(h, n)
}

// placeBeside is the last place of a mean with a half-width.
func placeBeside(mean, half float64) int {
	place := placeOfSpread(half)
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

// widest is how many digits a mean with an interval has at most, but for those before the point.
const widest = 5

// Single prints one number as far as four digits go, of a count all.
func Single(v float64) string {
	if math.IsNaN(v) {
		return Missing
	}
	return Decimal(v, placeOf(v, 4))
}

// placeOf is the last place that shows v with so many significant digits: none behind the point of a whole number, and
// no digit before it is rounded away.
func placeOf(v float64, significant int) int {
	if v == math.Trunc(v) {
		return 0
	}
	return max(0, significant-1-exponent(v, significant))
}

// placeOfSpread is the last place of a half-width's two digits, negative before the point.
func placeOfSpread(h float64) int { return 1 - exponent(h, 2) }

// exponent is that of v once it is rounded to so many digits.
func exponent(v float64, significant int) int {
	_, e, _ := strings.Cut(strconv.FormatFloat(v, 'e', significant-1, 64), "e")
	n, _ := strconv.Atoi(e)
	return n
}

// Decimal prints v to the given place behind the point, or before it where that is negative, with a true minus sign.
func Decimal(v float64, place int) string {
	if place < 0 {
		unit := math.Pow10(-place)
		v, place = math.Round(v/unit)*unit, 0
	}
	s := strconv.FormatFloat(v, 'f', place, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-") // −0 is no number people know
	}
	return strings.Replace(s, "-", "−", 1)
}

// Percent prints a change, with its sign.
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

// largerUnits are those that numbers of a unit print in, the largest first.
var largerUnits = map[string][]struct {
	of   float64
	name string
}{
	"ns":    {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}},
	"bit/s": {{1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}},
}

// ScaleOf is the unit in which statistics of one metric stand in a column, and what to multiply them with for it.
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
