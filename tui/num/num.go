// Package num formats numbers that change on screen. They have three significant figures, always a unit, and an almost
// constant width.
package num

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/olafctl/olaf"
)

// Unknown is the text for a missing number.
const Unknown = "–"

// scale formats v with three significant figures and the largest prefix that fits. A prefix may begin with a space.
func scale(v float64, unit string, prefixes []prefix) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Unknown
	}
	for _, p := range prefixes {
		if math.Abs(v) >= p.worth*0.9995 {
			return formatFigures(v/p.worth) + p.name + unit
		}
	}
	last := prefixes[len(prefixes)-1]
	return formatFigures(v/last.worth) + last.name + unit
}

type prefix struct {
	worth float64
	name  string
}

var (
	times  = []prefix{{1e9, " s"}, {1e6, " ms"}, {1e3, " µs"}, {1, " ns"}}
	rates  = []prefix{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}
	counts = []prefix{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}}
)

func formatFigures(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// FormatNS formats a duration in nanoseconds, such as 1.23 µs, in the same way as the tables of a bench.
func FormatNS(ns float64) string {
	if ns == 0 {
		return "0"
	}
	return scale(ns, "", times)
}

// FormatShort formats a duration in at most five characters. It uses two significant figures if the third would be a
// decimal, and no space.
func FormatShort(d olaf.Duration) string {
	ns := d.NS()
	if ns == 0 || math.Abs(ns) >= 1e12 {
		return FormatNS(ns)
	}
	for _, p := range times {
		if v := ns / p.worth; math.Abs(v) >= 0.9995 || p.worth == 1 {
			decimals := 1
			if math.Abs(v) >= 9.95 {
				decimals = 0
			}
			return strconv.FormatFloat(v, 'f', decimals, 64) + strings.TrimSpace(p.name)
		}
	}
	return FormatNS(ns)
}

// FormatDuration formats a duration with its unit.
func FormatDuration(d olaf.Duration) string { return FormatNS(d.NS()) }

// FormatInstant formats a time on the run clock with three decimals. It uses the unit that suits the end of the run, so
// that the width is constant.
func FormatInstant(t, end olaf.Time) string {
	unit := unitUntil(end)
	thousandths := math.Floor(float64(t) / unit.worth) // t in ps and worth in ns give thousandths of the unit
	return strconv.FormatFloat(thousandths/1000, 'f', 3, 64) + unit.name
}

// FormatEnd formats the end of a run in the unit that FormatInstant uses for the run.
func FormatEnd(end olaf.Time) string {
	unit := unitUntil(end)
	return formatFigures(end.Sub(0).NS()/unit.worth) + unit.name
}

// unitUntil returns the unit for times in a run: the largest unit such that the run lasts at least ten of them.
func unitUntil(end olaf.Time) prefix {
	for _, u := range times[:len(times)-2] {
		if float64(end) >= 10*u.worth*float64(olaf.Nanosecond) {
			return u
		}
	}
	return times[len(times)-2]
}

// FormatSpeed formats a time scale in seconds of the run per second of viewing, such as 10.0 µs/s.
func FormatSpeed(scale float64) string { return FormatNS(scale*1e9) + "/s" }

// FormatWait formats a waiting time as 1:02 or, from an hour on, as 1:02 h.
func FormatWait(d time.Duration) string {
	if d < 0 {
		return Unknown
	}
	s := int(math.Ceil(d.Seconds()))
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d h", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// FormatRate formats a rate in bits per second, such as 59.9Gbps.
func FormatRate(bps float64) string { return scale(bps, "bps", rates) }

// FormatHertz formats a frequency, such as 250MHz.
func FormatHertz(hz uint64) string { return scale(float64(hz), "Hz", rates) }

// FormatPercent formats a percentage, such as 12.3 %.
func FormatPercent(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Unknown
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " %"
}

// FormatCount formats a whole number. Above 10,000, it uses three significant figures.
func FormatCount(n int64) string {
	if n > -10_000 && n < 10_000 {
		return strconv.FormatInt(n, 10)
	}
	return scale(float64(n), "", append(counts[:3:3], prefix{1e3, "k"}))
}
