package endpoint

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// every is a gate that lets every n-th update pass, and records the statuses.
type every struct {
	n, asked int
	heard    []olaf.QueueStatus
}

func (e *every) RecordStatus(_ olaf.Time, s olaf.QueueStatus) { e.heard = append(e.heard, s) }
func (e *every) Sends(olaf.Time) bool {
	e.asked++
	return e.asked%e.n == 0
}

func openWorkerOf(t *testing.T, o Olaf) (*desk, Endpoint) {
	t.Helper()
	d := new(desk)
	e, err := NewOpenWorker(Config{Job: 3, Worker: 1, Workers: 2, Layout: Layout{Values: 5, PerPacket: 2}, Updates: 4}, o, d)
	if err != nil {
		t.Fatal(err)
	}
	e.Start(0)
	return d, e
}

func ack(seg int, worker olaf.WorkerID, vector uint32, count uint16) *program.Packet {
	return &program.Packet{Kind: program.Ack, Seg: uint64(seg), Worker: worker, Index: vector, Count: count}
}

// TestOpenWorker checks that an open worker computes on the values in any answer, sends the updates that its gate lets
// pass, each time beginning at a different place, and applies the contents of ACKs.
func TestOpenWorker(t *testing.T) {
	gate := &every{n: 2}
	d, e := openWorkerOf(t, Olaf{Gate: gate})
	for i := range 4 {
		e.OnComputed(olaf.Time(i), []uint32{1, 2, 3, 4, 5})
	}
	sent := d.takeSent()
	if d.computes != 4 || len(sent) != 6 || !e.Done() || e.Next() != Never {
		t.Fatalf("%d computed, %d packets sent, done: %v", d.computes, len(sent), e.Done())
	}
	for i, p := range sent {
		if p.Kind != program.Data || p.Job != 3 || p.Worker != 1 || p.Seg != uint64(i%3+int(p.Index))%3 || p.Index != uint32(1+2*(i/3)) || p.Count != 1 || int(p.Lanes) != []int{2, 2, 1}[p.Seg] {
			t.Errorf("packet %d: %+v", i, p)
		}
	}
	p := ack(1, 1, 3, 1)
	SetStatus(p, olaf.QueueStatus{Occupancy: 1 << 20, ActiveClusters: 9, Slots: 8})
	e.Receive(9, p, []uint32{7, 8})
	e.OnApplied(9)
	e.Receive(9, ack(2, 1, 3, 1), nil)         // nothing to apply
	e.Receive(9, ack(3, 1, 3, 1), []uint32{1}) // not one of our packets
	e.Receive(9, &program.Packet{Kind: program.Data}, nil)
	if len(gate.heard) != 2 || gate.heard[0] != (olaf.QueueStatus{Occupancy: 1 << 20, ActiveClusters: 9, Slots: 8}) || d.applies != 1 {
		t.Errorf("%+v heard, %d applied", gate.heard, d.applies)
	}
	counts := e.Counts()
	if counts[computed] != 4 || counts[sentVectors] != 2 || counts[withheld] != 2 || counts[sentPackets] != 6 || counts[received] != 2 || counts[repeated] != 2 || counts[updates] != 1 {
		t.Errorf("%v", counts)
	}
}

// TestOpenWorkerSendsAgain checks that an unanswered update is resent, marked, until it is answered or a newer update
// replaces it.
func TestOpenWorkerSendsAgain(t *testing.T) {
	d, e := openWorkerOf(t, Olaf{Timeout: 100})
	e.OnComputed(10, nil)
	d.takeSent()
	if e.Next() != 110 {
		t.Fatalf("it looks at %d", e.Next())
	}
	e.Receive(20, ack(0, 1, 0, 1), nil)
	e.Receive(20, ack(1, 0, 0, 1), nil) // to another worker
	e.Receive(20, ack(2, 0, 7, 2), nil) // to several, so that ours may be inside
	e.Timer(110)
	again := d.takeSent()
	if len(again) != 1 || again[0].Seg != 1 || again[0].Flags != program.Resend || again[0].Index != 0 || e.Next() != 210 {
		t.Fatalf("%+v, next at %d", again, e.Next())
	}
	e.OnComputed(120, nil)
	if sent := d.takeSent(); len(sent) != 3 || sent[0].Flags != 0 || e.Next() != 220 {
		t.Fatalf("%+v, next at %d", sent, e.Next())
	}
	e.Receive(130, ack(1, 1, 0, 1), nil) // acknowledges the previous update
	for range 2 {
		e.OnComputed(130, nil)
	}
	if e.Done() {
		t.Error("done before the last update was answered")
	}
	for seg := range 3 {
		e.Receive(140, ack(seg, 1, 3, 1), nil)
	}
	if !e.Done() || e.Next() != Never || e.Counts()[resent] != 1 {
		t.Errorf("done: %v, next at %d, %v", e.Done(), e.Next(), e.Counts())
	}
}

// TestOpenServer checks that a server answers one sender, or the whole cluster for a merged packet, and that packets
// wait while it applies another.
func TestOpenServer(t *testing.T) {
	d := new(desk)
	s, err := NewOpenServer(Config{Workers: 4, Layout: Layout{Values: 4, PerPacket: 2}, Updates: 1}, Olaf{Members: func(job olaf.ClusterID) (int, int) { return 2 * int(job), 2*int(job) + 2 }}, d)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []program.Packet{
		{Kind: program.Data, Job: 0, Worker: 1, Seg: 1, Index: 5, Count: 1, Lanes: 2},
		{Kind: program.Data, Job: 1, Worker: 3, Seg: 0, Index: 6, Count: 2, Lanes: 2},
		{Kind: program.Data, Worker: 4}, {Kind: program.Data, Seg: 2}, {Kind: program.Ack},
	} {
		s.Receive(0, &p, make([]uint32, p.Lanes))
	}
	if d.applies != 1 || len(d.sent) != 0 {
		t.Fatalf("%d applied, %d sent, before the first was", d.applies, len(d.sent))
	}
	s.OnApplied(1)
	s.OnApplied(2)
	if len(d.sent) != 3 || d.to[0] != 1 || d.to[1] != 2 || d.to[2] != 3 || d.sent[0].Index != 5 || d.sent[0].Seg != 1 || d.sent[2].Count != 2 || d.sent[2].Lanes != 2 {
		t.Errorf("%v, %+v", d.to, d.sent)
	}
	if c := s.Counts(); c[received] != 2 || c[repeated] != 3 || c[answered] != 3 || s.Done() {
		t.Errorf("%v", c)
	}
}

func TestOpenRefusals(t *testing.T) {
	good := Config{Workers: 1, Layout: Layout{Values: 1, PerPacket: 1}, Updates: 1}
	if _, err := NewOpenWorker(good, Olaf{Timeout: -1}, new(desk)); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if _, err := NewOpenWorker(Config{}, Olaf{}, new(desk)); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if _, err := NewOpenServer(Config{}, Olaf{}, new(desk)); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}
