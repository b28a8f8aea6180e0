package enact

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// switchOf is an agent whose tables a data path can look into, and a controller of it.
func switchOf(t *testing.T) (*agent.Embedded, *p4ctl.Session) {
	t.Helper()
	backend := new(agent.Embedded)
	a, err := agent.New(agent.Options{Backend: backend, Profile: p4.Twin()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := agent.Listen("unix:"+filepath.Join(t.TempDir(), "s"), false)
	if err != nil {
		t.Fatal(err)
	}
	running := a.Serve(l, nil)
	t.Cleanup(func() { running.Close() })
	s, err := p4ctl.Dial(t.Context(), running.Target(), p4ctl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.PushPipeline(t.Context(), p4ctl.PipelineConfig(p4.Twin())); err != nil {
		t.Fatal(err)
	}
	return backend, s
}

// Packets that go on while a switch is told about slot after slot find, each, the tables of one slot: never some hosts of one
// and some of another, and never a host whose cluster has no group.
func TestUnderTraffic(t *testing.T) {
	made := plan(t, crowded(t, 30, 2), policy.TW)
	hosts, err := MadeUp(0, 64)
	if err != nil {
		t.Fatal(err)
	}
	known, slots := map[string]bool{}, []p4ctl.Tables{}
	for slot := range made.Slots {
		o, err := Tell(made, "r1", slot, hosts)
		if err != nil {
			t.Fatal(err)
		}
		known[signature(o.Tables)] = true
		slots = append(slots, o.Tables)
		hosts = o.Tables
	}
	backend, session := switchOf(t)
	actual := p4ctl.Tables{}
	tell := func(desired p4ctl.Tables) {
		if _, err := session.ApplyWhole(t.Context(), p4ctl.Diff(actual, desired)); err != nil {
			t.Fatal(err)
		}
		actual = desired
	}
	tell(slots[0])
	stop, looked := make(chan struct{}), map[string]int{}
	var traffic sync.WaitGroup
	traffic.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				looked[seen(backend.Tables(), slots[0])]++
			}
		}
	})
	for range 5 {
		for _, s := range slots {
			tell(s)
		}
	}
	close(stop)
	traffic.Wait()
	for what, n := range looked {
		if !known[what] {
			t.Errorf("%d packets found tables of no slot: %s", n, what)
		}
	}
	if len(known) < 2 || len(looked) == 0 {
		t.Errorf("%d different slots, %d seen", len(known), len(looked))
	}
}

// signature is whose every host is.
func signature(t p4ctl.Tables) string {
	var b strings.Builder
	for _, w := range t.Canonical().Workers {
		fmt.Fprintf(&b, "%d ", w.Cluster)
	}
	return b.String()
}

// seen is the same of what a packet of every host would find in one state.
func seen(s *agent.State, hosts p4ctl.Tables) string {
	var b strings.Builder
	for _, w := range hosts.Canonical().Workers {
		cluster, _, ok := s.Worker(w.Address)
		if _, grouped := s.Group(cluster); !ok || !grouped {
			return fmt.Sprintf("%s has no cluster or no group", w.Address)
		}
		fmt.Fprintf(&b, "%d ", cluster)
	}
	return b.String()
}

// What does not fit one batch is not begun, and a batch of which one change is refused leaves the tables as they were.
func TestWhollyOrNot(t *testing.T) {
	backend, session := switchOf(t)
	many, err := MadeUp(0, 200)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.ApplyWhole(t.Context(), p4ctl.Diff(p4ctl.Tables{}, many)); !errors.Is(err, p4ctl.ErrTooMany) {
		t.Errorf("200 hosts at once: %v", err)
	}
	few, err := MadeUp(0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.ApplyWhole(t.Context(), p4ctl.Diff(p4ctl.Tables{}, few)); err != nil {
		t.Fatal(err)
	}
	more, err := MadeUp(0, 20)
	if err != nil {
		t.Fatal(err)
	}
	before := backend.Tables().Version()
	// As if the switch were empty: hosts that are there are added again, which is refused.
	if _, err := session.ApplyWhole(t.Context(), p4ctl.Diff(p4ctl.Tables{}, more)); err == nil {
		t.Error("hosts that are there were added")
	}
	if workers, _, _, _ := backend.Tables().Count(); workers != 10 || backend.Tables().Version() != before {
		t.Errorf("%d hosts after a batch that was refused", workers)
	}
}
