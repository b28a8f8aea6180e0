package job

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
)

// TestLongJobsAreRejected checks that long or large jobs are rejected before anything is built, and so are counts too
// large for a frame.
func TestLongJobsAreRejected(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *Spec)
		runs   int
		want   error
	}{
		{"usual", func(*Spec) {}, 30, nil},
		{"updates", func(s *Spec) { s.Job.Updates = 1 << 31 }, 1, closedloop.ErrLong},
		{"runs", func(s *Spec) { s.Job.Updates = 1 << 18 }, 100_000, closedloop.ErrLong},
		{"memory of packets", func(s *Spec) { s.Network.Workers, s.Job.Layout.Values = 4000, 1<<24 }, 1, closedloop.ErrLong},
		{"memory of tables", func(s *Spec) { s.Network.Workers, s.Network.PerRack, s.Options.Slots = 60000, 3, 2048 }, 1,
			closedloop.ErrLong},
		{"workers", func(s *Spec) { s.Network.Workers = closedloop.MaxWorkers + 1 }, 1, closedloop.ErrConfig},
		{"jobs", func(s *Spec) { s.Network.Jobs = closedloop.MaxJobs + 1 }, 1, closedloop.ErrConfig},
	}
	for _, test := range tests {
		s := jobOf(t, "iswitch", system.Options{}, 0, 0)
		test.change(s)
		if err := Patience([]*Spec{s}, test.runs); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

func TestRounds(t *testing.T) {
	for updates, fits := range map[int]bool{-1: false, 0: false, 1: true, 1<<32 - 1: true, 1 << 32: false, 1<<32 + 2: false} {
		if n, err := closedloop.CheckRounds(updates); (err == nil) != fits || err == nil && int(n) != updates || !fits &&
			!errors.Is(err, closedloop.ErrConfig) {
			t.Errorf("%d updates are %d rounds: %v", updates, n, err)
		}
	}
}
