package runs

import (
	"testing"
	"time"
)

func TestAgeOf(t *testing.T) {
	now := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	for started, want := range map[string]string{"2026-01-10T11:59:30Z": "now", "2026-01-10T12:00:30Z": "now", "2026-01-10T11:57:00Z": "3 min",
		"2026-01-10T10:30:00Z": "90 min", "2026-01-09T12:00:00Z": "24 h", "2026-01-07T12:00:00Z": "3 d", "yesterday": "–",
		"2026-01-10T12:03:00Z": "in future", "1970-01-01T00:00:00Z": "20463 d"} {
		if got := ageOf(started, now); got != want {
			t.Errorf("%s is %q old, want %q", started, got, want)
		}
	}
}
