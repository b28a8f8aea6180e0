// Package raced says whether the race detector watches. Under it a test takes many times as long; one in which nothing runs at
// once that other tests do not goes without.
package raced

import (
	"runtime/debug"
	"slices"
	"testing"
)

// Watched says whether this program was built with the race detector.
func Watched() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Skip leaves a test out where the race detector watches and has nothing to find.
func Skip(t testing.TB) {
	t.Helper()
	if Watched() {
		t.Skip("nothing in it runs at once that other tests do not")
	}
}
