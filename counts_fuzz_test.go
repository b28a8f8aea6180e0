package olaf

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzCounts decodes arbitrary bytes as counters. Accepted input must be stable after one round trip.
func FuzzCounts(f *testing.F) {
	for _, seed := range []string{`{}`, `{"in":1,"out":-2}`, `{"in":1,"in":2}`, `{"in":1.5}`, `{"in":9223372036854775808}`, `[`, `null`,
		`{"in"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var c, again Counts
		if json.Unmarshal(raw, &c) != nil {
			return
		}
		first, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, err := json.Marshal(again); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s and %s, %v", first, second, err)
		}
	})
}
