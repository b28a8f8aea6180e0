package p4ctl_test

import (
	"testing"
	"time"

	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// TestRestoreWritesOnlyEarlierState restarts the agent under sessions that had written no tables, or nothing, and under
// one whose pipeline the new agent rejects. It checks that a session restores exactly what it had written, and never
// writes tables without a pipeline.
func TestRestoreWritesOnlyEarlierState(t *testing.T) {
	for name, c := range map[string]struct {
		pushed, synced bool
		first, then    p4.Profile // of the agents
		fails          bool
		entries        int
	}{
		"a pipeline alone": {true, false, p4.Lab(), p4.Lab(), false, 0}, "nothing": {false, false, p4.Lab(), p4.Lab(),
			false, 0},
		"both": {true, true, p4.Lab(), p4.Lab(), false, 27 + 1 + 9 + 9}, "a pipeline that is refused": {true, true,
			p4.Twin(), p4.Lab(), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			address := unixAddress(t)
			start := func(profile p4.Profile) (*agent.Embedded, *agent.Running) {
				backend := new(agent.Embedded)
				a, err := agent.New(agent.Options{Backend: backend, Profile: profile})
				if err != nil {
					t.Fatal(err)
				}
				l, err := agent.Listen(address, false)
				if err != nil {
					t.Fatal(err)
				}
				return backend, a.Serve(l, nil)
			}
			_, running := start(c.first)
			s, err := p4ctl.Dial(t.Context(), address, p4ctl.Options{Restore: true, BackoffMin: time.Millisecond,
				BackoffMax: 5 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if c.pushed {
				push(t, s, c.first)
			}
			if c.synced {
				if _, err := s.Sync(t.Context(), testbed(27, 9)); err != nil {
					t.Fatal(err)
				}
			}
			if err := running.Close(); err != nil {
				t.Fatal(err)
			}
			backend, running := start(c.then)
			defer running.Close()
			e := await(t, s, func(e p4ctl.Event) bool { return e.Restored != nil })
			if (e.Err != nil) != c.fails || e.Restored.Len() != c.entries {
				t.Errorf("restored %v, %v", e.Restored, e.Err)
			}
			if workers, _, _, _ := backend.Tables().Count(); workers != min(c.entries, 27) {
				t.Errorf("%d workers on the new agent", workers)
			}
		})
	}
}
