package suggest

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	names := []string{"queue.depth", "queue.built_slots", "queue.mode", "model.depth"}
	for typed, want := range map[string]string{"queue.depht": "queue.depth queue.mode",
		"queue.depth": "queue.depth queue.mode model.depth",
		"0x999999999": "", "": "", "nope": "", "queue.mod": "queue.mode"} {
		if got := strings.Join(NearestNames(typed, names, 3), " "); got != want {
			t.Errorf("%q is near %q, want %q", typed, got, want)
		}
	}
}
