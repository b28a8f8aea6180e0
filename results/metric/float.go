package metric

import (
	"encoding/json"
	"math"
	"strconv"
)

// Float is a floating-point number that may be missing. A missing number is NaN in memory and null in JSON. Infinities
// count as missing.
type Float float64

// Missing returns a Float that is missing.
func Missing() Float { return Float(math.NaN()) }

// Known reports whether the number is not missing.
func (f Float) Known() bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

// MarshalJSON returns the shortest text that is read back as the same number, or null if it is missing.
func (f Float) MarshalJSON() ([]byte, error) {
	if !f.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads a number or null.
func (f *Float) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = Missing()
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return err
	}
	*f = Float(v)
	return nil
}
