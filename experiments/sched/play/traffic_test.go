package play

import (
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/fpga/program/programtest"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// switchOf returns an agent whose tables a data path can read, and a controller for it.
func switchOf(t *testing.T) (*agent.Embedded, *p4ctl.Session) {
	t.Helper()
	backend := new(agent.Embedded)
	a, err := agent.New(agent.Options{Backend: backend, Profile: p4.Twin(), Programs: programs.AllPrograms()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := agent.Listen("unix:"+filepath.Join(t.TempDir(), "s"), false)
	if err != nil {
		t.Fatal(err)
	}
	running := a.Serve(l, nil)
	t.Cleanup(func() { running.Close() })
	s, err := p4ctl.Dial(t.Context(), running.Target(), p4ctl.Options{Programs: programs.AllPrograms()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.PushPipeline(t.Context(), p4ctl.PipelineConfig(p4.Twin())); err != nil {
		t.Fatal(err)
	}
	return backend, s
}

// TestBatchesUnderTraffic checks that each frame through the twin, and each copy of an answer, matches the tables
// before or after the current batch, never older ones after newer ones. A batch with an impossible change must have no
// effect.
func TestBatchesUnderTraffic(t *testing.T) {
	made := plan(t, crowded(t, 60, 2).WithSlot(100*olaf.Millisecond), policy.TW)
	hosts, err := MakeUpHosts(0, 64)
	if err != nil {
		t.Fatal(err)
	}
	bed, err := testbed.OpenTestbed(t.Context(), "twin:",
		testbed.OpenOptions{Access: testbed.Access{Programs: programs.AllPrograms()}, Wire: true})
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
	for _, b := range seen.Batches {
		if b.Refused && b.After != 0 || b.Before == 0 || !b.Refused && b.After == 0 {
			t.Errorf("batch %+v", b)
		}
		if !b.Refused {
			told++
		}
	}
	if told < 3 || len(seen.Batches) != told+1 {
		t.Errorf("%d batches, %d of them done", len(seen.Batches), told)
	}
}

// torn is a table in which a batch appears in halves: for every second host, the new entry is visible only some lookups
// later.
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

// TestTornBatchesAreDetected checks that a switch that applies a batch in halves is detected.
func TestTornBatchesAreDetected(t *testing.T) {
	made := plan(t, crowded(t, 60, 2).WithSlot(100*olaf.Millisecond), policy.TW)
	hosts, err := MakeUpHosts(0, 64)
	if err != nil {
		t.Fatal(err)
	}
	backend, session := switchOf(t)
	card, err := twin.New(twin.Config{Tables: &torn{TableLookup: testbed.TablesOf(backend), late: testbed.TablesOf(backend)},
		Wire: true})
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

// toldSwitch runs P4INC's program with an agent's tables, and hosts that send frames according to their segments.
type toldSwitch struct {
	*testing.T
	backend  *agent.Embedded
	told     atomic.Pointer[[]Segment]
	passed   chan struct{} // after every round, if there is a receiver
	ports    map[netip.Addr]p4ctl.Member
	program  program.Description
	follower programtest.Follower
	version  uint64
	bytes    []byte
	round    uint64
	workers  map[olaf.ClusterID]int // of the job being sent
	classes  map[string]int
	sums     map[olaf.ClusterID]int
}

// rounds sends a fragment of every job from every one of its hosts, repeatedly.
func (a *toldSwitch) rounds(stop <-chan struct{}) {
	for ; ; a.round++ {
		select {
		case <-stop:
			return
		default:
		}
		for _, s := range *a.told.Load() {
			a.workers[s.Cluster] = len(s.Hosts)
			for _, h := range s.Hosts {
				a.send(&s, a.ports[h])
			}
		}
		select {
		case a.passed <- struct{}{}:
		default:
		}
	}
}

// tell gives hosts their segments, and returns when each host has used them. It waits for two rounds, because the first
// round that ends may have begun earlier.
func (a *toldSwitch) tell(segments []Segment) {
	a.told.Store(&segments)
	<-a.passed
	<-a.passed
}

// send sends a frame over the wire to the switch, which first checks for changed tables.
func (a *toldSwitch) send(s *Segment, from p4ctl.Member) {
	worker := olaf.WorkerID(from.Instance)
	p := program.Packet{Kind: program.Data, Job: s.Cluster, Worker: worker, Seg: a.round,
		Index: uint32(s.First) + uint32(a.round%uint64(s.Size)), Lanes: 1}
	n, err := frame.P4INC.Encode(a.bytes, &frame.Outer{}, &p, []uint32{1})
	if err != nil {
		a.Error(err)
		return
	}
	view, err := frame.P4INC.Decode(a.bytes[:n])
	if err != nil {
		a.Error(err)
		return
	}
	lanes := make([]uint32, 1)
	view.Packet(&p)
	view.Lanes(lanes)
	p.Trace = program.NewTrace(worker, 0, 0)
	if state := a.backend.Tables(); state.Version() != a.version {
		jobs, _ := state.Jobs(&a.program)
		if err := a.follower.Update(jobs); err != nil {
			a.Errorf("tables that the program can't have: %v", err)
		}
		a.version = state.Version()
	}
	a.classes[a.program.ClassName(a.follower.Program.Receive(0, program.Port(from.Port), &p, lanes, a))]++
}

// Emit implements program.Out: a sum must have one contribution of every worker of its job, and no other.
func (a *toldSwitch) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	if p.Kind != program.Result || to != program.Down {
		return
	}
	a.sums[p.Job]++
	if n := a.workers[p.Job]; int(p.Vectors) != n || int(lanes[0]) != n {
		a.Errorf("a sum of job %d has %d contributions and adds up to %d; it has %d workers", p.Job, p.Vectors, lanes[0], n)
	}
}

// TestJobsUnderTraffic changes the program's jobs, segments and groups in one batch and checks that a switch always
// finds tables of a single slot. Frames from hosts that are updated slightly later must be summed correctly or
// forwarded, and never added to another job's sum.
func TestJobsUnderTraffic(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	made := plan(t, crowded(t, 60, 2).WithSlot(100*olaf.Millisecond), policy.TW)
	hosts, err := MakeUpHosts(0, 64)
	if err != nil {
		t.Fatal(err)
	}
	backend, session := switchOf(t)
	a := &toldSwitch{
		T: t, backend: backend, passed: make(chan struct{}), ports: map[netip.Addr]p4ctl.Member{}, program: p4inc.Describe(),
		bytes:   make([]byte, olaf.MaxFrame),
		workers: map[olaf.ClusterID]int{}, classes: map[string]int{}, sums: map[olaf.ClusterID]int{},
	}
	if a.follower.Program, err = p4inc.New(program.Config{LaneMemory: 1}); err != nil {
		t.Fatal(err)
	}
	for _, w := range hosts.Workers {
		a.ports[w.Address] = p4ctl.Member{Port: uint32(w.ID) + 1, Instance: uint16(w.ID)}
	}
	if _, err := session.AddPrograms(t.Context(), a.program); err != nil {
		t.Fatal(err)
	}
	if _, err := session.ApplyWhole(t.Context(), p4ctl.Diff(p4ctl.Tables{}, hosts)); err != nil {
		t.Fatal(err)
	}
	a.told.Store(&[]Segment{})
	stop := make(chan struct{})
	var traffic sync.WaitGroup
	traffic.Go(func() { a.rounds(stop) })
	told := map[olaf.ClusterID]bool{}
	for range 3 {
		for slot := range made.Slots {
			o, err := PlanOrders(made, "r1", slot, hosts)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := session.ApplyWhole(t.Context(), p4ctl.Diff(hosts, o.Tables)); err != nil {
				t.Fatal(err)
			}
			hosts = o.Tables
			a.tell(o.Segments)
			for _, s := range o.Segments {
				told[s.Cluster] = true
			}
		}
	}
	close(stop)
	traffic.Wait()
	if len(told) < 2 || len(a.sums) < len(told) {
		t.Errorf("%d jobs were told of and %d summed", len(told), len(a.sums))
	}
	for class, n := range a.classes {
		if !slices.Contains([]string{"consumed", "completed", "forwarded", "stranger"}, class) {
			t.Errorf("%d frames were %s", n, class)
		}
	}
}

// TestBatchesAreAtomic checks that changes too large for one batch are not started, and that a batch with a rejected
// change leaves the tables unchanged.
func TestBatchesAreAtomic(t *testing.T) {
	backend, session := switchOf(t)
	many, err := MakeUpHosts(0, 200)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.ApplyWhole(t.Context(), p4ctl.Diff(p4ctl.Tables{}, many)); !errors.Is(err, p4ctl.ErrTooMany) {
		t.Errorf("200 hosts at once: %v", err)
	}
	few, err := MakeUpHosts(0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.ApplyWhole(t.Context(), p4ctl.Diff(p4ctl.Tables{}, few)); err != nil {
		t.Fatal(err)
	}
	more, err := MakeUpHosts(0, 20)
	if err != nil {
		t.Fatal(err)
	}
	before := backend.Tables().Version()
	// The change is computed for an empty switch: it adds hosts that exist, which the agent rejects.
	if _, err := session.ApplyWhole(t.Context(), p4ctl.Diff(p4ctl.Tables{}, more)); err == nil {
		t.Error("hosts that are there were added")
	}
	if workers, _, _, _ := backend.Tables().Count(); workers != 10 || backend.Tables().Version() != before {
		t.Errorf("%d hosts after a batch that was refused", workers)
	}
}
