package figure

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// ticks labels an axis in its unit at about six round numbers, with as many decimals as needed.
type ticks struct{ unit float64 }

// Ticks returns the ticks between low and high.
func (t ticks) Ticks(low, high float64) (marks []plot.Tick) {
	low, high = low/t.unit, high/t.unit
	step := roundStep((high - low) / 6)
	if !(step > 0) || math.IsInf(step, 0) {
		return nil
	}
	decimals := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	// Adding 0 turns −0 into 0, because −0 would be printed.
	for k := math.Ceil(low/step-1e-9) + 0; k*step <= high+step*1e-9; k++ {
		marks = append(marks, plot.Tick{Value: k * step * t.unit, Label: strconv.FormatFloat(k*step, 'f', decimals, 64)})
	}
	return marks
}

// roundStep returns the smallest number of the form 1, 2 or 5 times a power of ten that is not smaller than about.
func roundStep(about float64) float64 {
	magnitude := math.Pow(10, math.Floor(math.Log10(about)))
	for _, digit := range []float64{1, 2, 5} {
		if digit*magnitude >= about*(1-1e-9) {
			return digit * magnitude
		}
	}
	return 10 * magnitude
}

// larger lists larger units for axes with long numbers, with the largest unit first.
var larger = map[string][]struct {
	from, unit float64
	name       string
}{
	"ns":  {{1e10, 1e9, "s"}, {1e7, 1e6, "ms"}, {1e5, 1e3, "µs"}},
	"bps": {{1e9, 1e9, "Gbps"}, {1e6, 1e6, "Mbps"}, {1e4, 1e3, "kbps"}},
	"B":   {{1e10, 1e9, "GB"}, {1e7, 1e6, "MB"}, {1e5, 1e3, "kB"}},
}

// inUnits changes an axis to a larger unit if its numbers would be long.
func inUnits(axis *plot.Axis) {
	title, unit, found := strings.Cut(strings.TrimSuffix(axis.Label.Text, "]"), " [")
	if !found {
		return
	}
	for _, u := range larger[unit] {
		if axis.Max >= u.from {
			axis.Label.Text, axis.Tick.Marker = title+" ["+u.name+"]", ticks{u.unit}
			return
		}
	}
}
