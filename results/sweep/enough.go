package sweep

import (
	"fmt"
	"math"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/exactmath"
	"github.com/olafctl/olaf/results"
)

// ErrRule is matched by errors about stopping rules.
var ErrRule = olaf.NewError(olaf.Usage, "bad --until")

// Enough is a stopping rule for the number of runs per cell. The half-width of every metric's interval must be at most
// a given share of its mean. Repeated looks at the data would make intervals too narrow, so look k uses the level 5 % ·
// 6/(π²k²). The levels of all looks sum to 5 %. Therefore, with a probability of 95 %, all intervals contain the true
// mean, including that of the last look.
type Enough struct {
	Within float64 `json:"within"` // half-width divided by mean, such as 0.02
}

// ParseEnough parses a rule such as ci=2% or ci=0.02. The error matches ErrRule.
func ParseEnough(text string) (*Enough, error) {
	value, ok := strings.CutPrefix(strings.ReplaceAll(text, " ", ""), "ci=")
	number, percent := strings.CutSuffix(value, "%")
	v, err := olaf.ParseNumber(number)
	if percent {
		v /= 100
	}
	if !ok || err != nil || !(v > 0 && v < 1) {
		return nil, fmt.Errorf("%w %q: write it as ci=2%%, the half-width of the interval relative to the mean, "+
			"above 0 and below 100 %%", ErrRule, text)
	}
	return &Enough{v}, nil
}

// String returns a description of the rule in words.
func (e *Enough) String() string {
	return fmt.Sprintf("until the half-width of the 95 %% interval is at most %.4g %% of the mean, looked at "+
		"after every lot in the order of seeds, look k at the level 5 %% · 6/(π²k²)", 100*e.Within)
}

// Level returns the significance level of a look. Looks are numbered from 1.
func (e *Enough) Level(look int) float64 {
	return alpha * 6 / (math.Pi * math.Pi * float64(look) * float64(look))
}

// Decide reports whether lots, which must be in the order of their seeds, contain enough runs for all metrics. It also
// returns the largest half-width relative to its mean. A metric without values is ignored, and a metric that is always
// 0 is known exactly.
func (e *Enough) Decide(lots []*Lot, metrics []string, look int) (enough bool, widest float64) {
	for _, name := range metrics {
		var known []float64
		for _, lot := range lots {
			known = append(known, results.KnownValues(lot.Of(name))...)
		}
		if len(known) > 0 {
			widest = max(widest, halfWidth(known, e.Level(look)))
		}
	}
	return widest <= e.Within, widest
}

// halfWidth returns the half-width of Student's interval for values at a level, relative to their mean.
func halfWidth(values []float64, level float64) float64 {
	if len(values) < 2 {
		return math.Inf(1)
	}
	mean, sd := exactmath.MeanStdDev(values)
	if sd == 0 {
		return 0
	}
	return halfWidthAt(len(values), sd, level) / math.Abs(mean)
}

// halfWidthAt returns the half-width of Student's interval for n values with standard deviation sd at a level.
func halfWidthAt(n int, sd, level float64) float64 {
	return exactmath.StudentQuantile(float64(n-1), 1-float64(level/2)) * sd / math.Sqrt(float64(n))
}
