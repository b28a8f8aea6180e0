package enact

import (
	"errors"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/twin"
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

// Frames that cross the twin while it is told about slot after slot find, each, the tables of before or after the batch at hand,
// never older ones after newer ones; so do the copies of answers. Of a batch with an impossible change none finds anything.
func TestUnderTraffic(t *testing.T) {
	made := plan(t, crowded(t, 60, 2).WithSlot(100*olaf.Millisecond), policy.TW)
	hosts, err := MadeUp(0, 64)
	if err != nil {
		t.Fatal(err)
	}
	bed, err := testbed.Open(t.Context(), "twin:", testbed.OpenOptions{Wire: true})
	if err != nil {
		t.Fatal(err)
	}
	defer bed.Close()
	seen, err := UnderTraffic(t.Context(), bed, made, "r1", 0, hosts)
	if err != nil {
		t.Fatal(err)
	}
	if seen.Mixed != 0 || seen.Lost != 0 || seen.Copies == 0 {
		t.Errorf("%d mixed (%s), %d lost, %d copies", seen.Mixed, seen.First, seen.Lost, seen.Copies)
	}
	told := 0
	for _, b := range seen.Told {
		if b.Refused && b.After != 0 || b.Before == 0 || !b.Refused && b.After == 0 {
			t.Errorf("batch %+v", b)
		}
		if !b.Refused {
			told++
		}
	}
	if told < 3 || len(seen.Told) != told+1 {
		t.Errorf("%d batches, %d of them done", len(seen.Told), told)
	}
}

// torn is tables of which a batch is seen in halves: every second host finds an entry that is late by some looks.
type torn struct {
	twin.TableLookup
	late  twin.TableLookup
	looks int
}

func (l *torn) Version() uint64 {
	if l.looks%5000 == 0 {
		l.late.Version()
	}
	l.looks++
	return l.TableLookup.Version() + uint64(l.looks/5000)
}

func (l *torn) Worker(a netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool) {
	if b := a.As4(); b[3]%2 == 1 {
		return l.late.Worker(a)
	}
	return l.TableLookup.Worker(a)
}

// A switch that shows a batch in halves is found out.
func TestTornBatchesAreSeen(t *testing.T) {
	made := plan(t, crowded(t, 60, 2).WithSlot(100*olaf.Millisecond), policy.TW)
	hosts, err := MadeUp(0, 64)
	if err != nil {
		t.Fatal(err)
	}
	backend, session := switchOf(t)
	card, err := twin.New(twin.Config{Tables: &torn{TableLookup: testbed.TablesOf(backend), late: testbed.TablesOf(backend)}, Wire: true})
	if err != nil {
		t.Fatal(err)
	}
	bed := &testbed.Testbed{Cards: []testbed.Card{{Device: card, Tap: card}}, Tables: session}
	seen, err := UnderTraffic(t.Context(), bed, made, "r1", 0, hosts)
	if err != nil {
		t.Fatal(err)
	}
	if seen.Mixed == 0 || seen.First == "" {
		t.Errorf("%+v", seen)
	}
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
