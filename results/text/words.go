package text

import (
	"strconv"

	"github.com/olafctl/olaf/results"
)

// Plural counts things in words: 1 run, 2 runs.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Exact is the shortest form that reads back as the same number, empty where the number is missing.
func Exact(f results.Float) string {
	if !f.Known() {
		return ""
	}
	return strconv.FormatFloat(float64(f), 'g', -1, 64)
}
