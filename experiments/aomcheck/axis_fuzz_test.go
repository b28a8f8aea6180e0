package aomcheck

import "testing"

// FuzzParseAxis parses arbitrary text as an axis of a region and as a list of clusters.
func FuzzParseAxis(f *testing.F) {
	for _, seed := range []string{"delta-t=1us:9us", "delta-t=1us:9us:5", "slots=1:64:9", "interval.2=1ms:2ms", "jitter.0=1:2", "slots=9:1", "x", "slots=1:9223372036854775807:3", `[{"workers":1}]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if axis, err := ParseAxis(text); err == nil {
			if n := len(axis.Values); n < 1 || n > maxPoints {
				t.Errorf("%q has %d values", text, n)
			}
			for i := 1; i < len(axis.Values); i++ {
				if axis.Values[i] <= axis.Values[i-1] {
					t.Errorf("%q does not grow: %v", text, axis.Values)
				}
			}
		}
		_, _ = ParseClusters([]byte(text)) // must not panic
	})
}
