// Package raced detects the race detector, which makes tests many times slower. Tests whose concurrency is covered by
// other tests are skipped when it is active.
package raced

import (
	"runtime/debug"
	"slices"
	"testing"
)

// IsWatched reports whether this program was built with the race detector.
func IsWatched() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// SkipRaced skips a test if the race detector is active. It is for tests in which the detector cannot find anything.
func SkipRaced(t testing.TB) {
	t.Helper()
	if IsWatched() {
		t.Skip("nothing in it runs at once that other tests do not")
	}
}
