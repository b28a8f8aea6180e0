package store

import (
	"slices"
	"strings"
	"testing"
)

// FuzzSingle decodes arbitrary bytes as the file of a single result. It checks that accepted bytes are exactly those
// that were stored, and that they can be stored again.
func FuzzSingle(f *testing.F) {
	key := strings.Repeat("0a", 32)
	whole, err := sealResult(Single{key, []byte(`{"m":1}`), Maker{Host: "h", Build: "b",
		Finished: "2026-11-23T10:00:00Z", Seconds: 1.5}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-2])
	f.Add(slices.Concat([]byte(" "), whole))
	f.Add([]byte("\n{}"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		one, ok := unsealResult(key, raw)
		if !ok {
			return
		}
		again, err := sealResult(one)
		if err != nil {
			t.Fatal(err)
		}
		if two, ok := unsealResult(key, again); !ok || string(two.Result) != string(one.Result) || two.By != one.By {
			t.Errorf("%q is %+v, which reads as %+v, %v", raw, one, two, ok)
		}
	})
}
