// Package suggest returns known names that are similar to a mistyped name.
package suggest

import "slices"

// NearestNames returns up to n names, nearest first. Their edit distance from typed is at most half the length of
// typed.
func NearestNames(typed string, names []string, n int) []string {
	distance := make(map[string]int, len(names))
	var near []string
	for _, name := range names {
		if distance[name] = editDistance(typed, name); distance[name] < len(typed)/2+1 {
			near = append(near, name)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return distance[a] - distance[b] })
	return near[:min(n, len(near))]
}

// editDistance returns the Levenshtein distance between two names.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for k := range row {
		row[k] = k
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for k := range len(b) {
			replaced := diagonal
			if a[i] != b[k] {
				replaced++
			}
			diagonal = row[k+1]
			row[k+1] = min(replaced, diagonal+1, row[k]+1)
		}
	}
	return row[len(b)]
}
