package bench

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/pktgen"
)

// TestLongLoopsAreRejected checks that a loop that takes long is rejected before anything is built, like a job of the
// simulator; open-loop work is not.
func TestLongLoopsAreRejected(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Spec)
		want   error
	}{
		{"usual", func(*Spec) {}, nil},
		{"rounds", func(s *Spec) { s.Workload.UpdatesPerWorker = 1e7 }, closedloop.ErrLong},
		{"runs", func(s *Spec) { s.Runs, s.Workload.UpdatesPerWorker = 1000, 1e4 }, closedloop.ErrLong},
		{"no workers", func(s *Spec) { s.Workload.Workers = 0 }, pktgen.ErrWorkload},
		{"nobody waits", func(s *Spec) { *s = usualSpec(); s.Workload.UpdatesPerWorker = 20_000 }, nil},
	} {
		s := usualSpec()
		s.Queue = "switchml"
		s.MakeLoop(func(string) bool { return false }, false)
		c.change(&s)
		if err := s.CheckPatience(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
