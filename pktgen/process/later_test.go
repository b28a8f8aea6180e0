package process

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// slowWork delays the first update until it is released, and answers the others at once.
type slowWork struct {
	Numbers
	kept  func()
	taken atomic.Int32
}

func (w *slowWork) ApplyLater(a *endpoint.Aggregate, done func()) {
	if a.Values = nil; w.taken.Add(1) == 1 {
		w.kept = done
		return
	}
	done()
}

// TestServerReceivesWhileApplying delays an update at a server with room for two. It checks that later packets are
// received, that packets without room are dropped and counted, that the server ends when asked, and that after the
// release it answers the waiting updates.
func TestServerReceivesWhileApplying(t *testing.T) {
	const line, sent = 2, 6
	layout := endpoint.Layout{Values: 2, PerPacket: 2}
	conn, at := bound(t)
	from, worker := bound(t)
	work := &slowWork{Numbers: Numbers{Layout: layout}}
	arrived := 0
	all := make(chan struct{})
	p := &Player{Codec: &Open{Packets: 1}, Work: work, To: func(endpoint.Peer, *program.Packet) netip.AddrPort { return worker },
		Check: func(*program.Packet, []uint32) error {
			if arrived++; arrived == sent {
				close(all)
			}
			return nil
		}}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	type end struct {
		report *Report
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		r, err := p.Run(ctx, conn, func(h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewOpenServer(endpoint.Config{Workers: 1, Layout: layout, Updates: 1}, endpoint.Olaf{Line: line}, h)
		})
		ended <- end{r, err}
	}()
	s := newSocket(from, &Open{Packets: 1})
	for i := range sent {
		update := program.Packet{Kind: program.Data, Index: uint32(i), Count: 1, Lanes: 2}
		if err := s.write(&update, []uint32{1, 2}, 0, 0, netip.Addr{}, at); err != nil {
			t.Fatal(err)
		}
	}
	s.flush()
	<-all
	work.kept()
	answers := 0
	if err := from.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for answers < 1+line {
		n, err := s.read(func(*program.Packet, []uint32, netip.AddrPort) {})
		if err != nil || n == 0 {
			t.Fatalf("%d answers, %v", answers, err)
		}
		answers += n
	}
	stop()
	e := <-ended
	if e.err != nil || e.report.Counts["packets_received"] != sent || e.report.Counts["packets_crowded_out"] != sent-1-line {
		t.Errorf("the server took %v, %v; want %d packets, of which %d had no room", e.report.Counts, e.err, sent, sent-1-line)
	}
}

// TestServerEndsWhileApplying checks that a server ends although its update is never applied.
func TestServerEndsWhileApplying(t *testing.T) {
	layout := endpoint.Layout{Values: 2, PerPacket: 2}
	conn, at := bound(t)
	from, worker := bound(t)
	ctx, stop := context.WithCancel(t.Context())
	p := &Player{Codec: &Open{Packets: 1}, Work: &slowWork{Numbers: Numbers{Layout: layout}},
		To:    func(endpoint.Peer, *program.Packet) netip.AddrPort { return worker },
		Check: func(*program.Packet, []uint32) error { stop(); return nil }}
	s := newSocket(from, &Open{Packets: 1})
	if err := s.write(&program.Packet{Kind: program.Data, Count: 1, Lanes: 2}, []uint32{1, 2}, 0, 0, netip.Addr{}, at); err != nil {
		t.Fatal(err)
	}
	s.flush()
	report, err := p.Run(ctx, conn, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewOpenServer(endpoint.Config{Workers: 1, Layout: layout, Updates: 1}, endpoint.Olaf{}, h)
	})
	if err != nil || report.Counts["updates_applied"] != 0 {
		t.Errorf("the server ends with %v, %v", report, err)
	}
}
