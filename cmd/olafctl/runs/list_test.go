package runs

import (
	"testing"
	"time"

	"github.com/olafctl/olaf/results/store"
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

// TestDistinguishingOptionsComeFirst checks that an option that other runs of the experiment have in common comes after
// those that distinguish a run, also for flags with values, and that runs of other experiments do not count.
func TestDistinguishingOptionsComeFirst(t *testing.T) {
	runs := []listedRun{
		{Entry: store.Entry{Experiment: "bench"}, Differs: "updates=5 runs=2 slots=4"},
		{Entry: store.Entry{Experiment: "bench"}, Differs: "updates=5 runs=2 slots=16"},
		{Entry: store.Entry{Experiment: "bench"}, Differs: "updates=5 runs=2"},
		{Entry: store.Entry{Experiment: "simulate"}, Differs: "--preset multihop --runs 2 --system olaf"},
		{Entry: store.Entry{Experiment: "simulate"}, Differs: "--preset multihop --runs 2 --system fifo slots=4"},
		{Entry: store.Entry{Experiment: "verify"}, Differs: "mean"},
	}
	want := []string{"slots=4 updates=5 runs=2", "slots=16 updates=5 runs=2", "updates=5 runs=2",
		"--system olaf --preset multihop --runs 2", "--system fifo slots=4 --preset multihop --runs 2", "mean"}
	for i, r := range rankOptions(runs) {
		if r.Differs != want[i] {
			t.Errorf("%q is listed as %q, want %q", runs[i].Differs, r.Differs, want[i])
		}
	}
	if runs[0].Differs != "updates=5 runs=2 slots=4" {
		t.Errorf("the list itself was changed: %q", runs[0].Differs)
	}
}
