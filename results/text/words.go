package text

import (
	"strconv"

	"github.com/olafctl/olaf/results"
)

// Exact is the shortest form that reads back as the same number, empty where the number is missing.
func Exact(f results.Float) string {
	if !f.Known() {
		return ""
	}
	return strconv.FormatFloat(float64(f), 'g', -1, 64)
}
