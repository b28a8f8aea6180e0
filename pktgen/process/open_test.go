package process

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// TestOpenCodec checks that packets survive a round trip, and that invalid ones are rejected.
func TestOpenCodec(t *testing.T) {
	c := &Open{Packets: 3}
	dst := make([]byte, datagram)
	for _, p := range []program.Packet{
		{Kind: program.Data, Job: 5, Worker: 7, Seg: 2, Index: 9, Count: 1, Lanes: 3, Flags: program.Resend},
		{Kind: program.Data, Job: 0, Worker: 0, Seg: 0, Index: 1 << 31, Count: 4, Lanes: 3},
		{Kind: program.Ack, Job: 5, Worker: 7, Seg: 1, Index: 9, Count: 2, Lanes: 3, Value: 3<<32 | 2<<16 | 8},
	} {
		lanes := []uint32{1, 1 << 31, 3}
		b, err := c.Encode(dst, &p, lanes, -256, 1000)
		if err != nil {
			t.Fatal(err)
		}
		var got program.Packet
		back, ok := c.Decode(append(make([]byte, c.Offset()), b...), &got)
		if p.Kind == program.Data {
			p.Value = 1<<32 - 256
		}
		p.NewestNS = 1000
		if !ok || got != p || !slices.Equal(back, lanes) {
			t.Errorf("%+v came back as %+v with %v", p, got, back)
		}
		if _, ok := c.Decode(append(make([]byte, c.Offset()), b[:len(b)-1]...), &got); ok {
			t.Errorf("%+v: a part of it was taken", p)
		}
	}
	for _, bad := range [][]byte{nil, make([]byte, 41), make([]byte, 64)} {
		if _, ok := c.Decode(append(make([]byte, c.Offset()), bad...), new(program.Packet)); ok {
			t.Errorf("%d bytes were taken", len(bad))
		}
	}
}

// TestPlayers sends from two workers to a server over sockets on this host, without a queue, and checks that everything
// arrives and is answered with correct values.
func TestPlayers(t *testing.T) {
	const updates = 30 // so that all packets fit into the socket of a delayed reader
	layout := endpoint.Layout{Values: 20, PerPacket: 8}
	serves, server := bound(t)
	var conns []netip.AddrPort
	type end struct {
		report *Report
		err    error
	}
	workers := make([]end, 2)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	var all, both sync.WaitGroup
	numbers := &Numbers{Layout: layout}
	for k := range workers {
		conn, at := bound(t)
		conns = append(conns, at)
		both.Go(func() {
			p := &Player{Codec: &Open{Packets: layout.Packets()}, Work: &Numbers{Worker: olaf.WorkerID(k), Layout: layout, Every: time.Millisecond},
				To: func(endpoint.Peer, *program.Packet) netip.AddrPort { return server }, Start: time.Now().Add(20 * time.Millisecond)}
			cfg := endpoint.Config{Worker: olaf.WorkerID(k), Workers: 2, Layout: layout, Updates: updates}
			workers[k].report, workers[k].err = p.Run(ctx, conn, func(h endpoint.Host) (endpoint.Endpoint, error) {
				return endpoint.NewOpenWorker(cfg, endpoint.Olaf{Timeout: olaf.Second}, h)
			})
		})
	}
	var served end
	all.Go(func() {
		p := &Player{Codec: &Open{Packets: layout.Packets()}, Work: numbers, To: func(to endpoint.Peer, _ *program.Packet) netip.AddrPort { return conns[to] }}
		served.report, served.err = p.Run(ctx, serves, func(h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewOpenServer(endpoint.Config{Workers: 2, Layout: layout, Updates: 1}, endpoint.Olaf{}, h)
		})
	})
	both.Wait()
	stop()
	all.Wait()
	for k, w := range workers {
		if w.err != nil || w.report.Counts["vectors_sent"] != updates || w.report.Packets < 3*updates || w.report.LateNS.Max == 0 || w.report.Calls > w.report.Packets {
			t.Errorf("worker %d: %+v, %v", k, w.report, w.err)
		}
	}
	if served.err != nil || served.report.Counts["packets_received"] < 2*3*updates || numbers.Wrong > 0 || numbers.Checked < 2*20*updates || served.report.Strange > 0 {
		t.Errorf("%+v, %v, %+v", served.report, served.err, numbers)
	}
}

// deaf returns a worker that waits for an answer that never comes.
func deaf(t *testing.T, timeout olaf.Duration) (*Player, func(endpoint.Host) (endpoint.Endpoint, error)) {
	t.Helper()
	_, nobody := bound(t)
	cfg := endpoint.Config{Workers: 1, Layout: endpoint.Layout{Values: 1, PerPacket: 1}, Updates: 1000}
	p := &Player{Codec: &Open{Packets: 1}, Work: &Numbers{Layout: cfg.Layout, Every: time.Millisecond}, Patience: 60 * time.Millisecond,
		To: func(endpoint.Peer, *program.Packet) netip.AddrPort { return nobody }}
	return p, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewOpenWorker(cfg, endpoint.Olaf{Timeout: timeout}, h)
	}
}

// TestStalledEndpointIsGivenUp checks that an endpoint that waits too long is given up, however seldom it acts and
// however much it sends.
func TestStalledEndpointIsGivenUp(t *testing.T) {
	for _, timeout := range []olaf.Duration{olaf.Millisecond, olaf.Second * 3600} {
		conn, _ := bound(t)
		p, made := deaf(t, timeout)
		report, err := p.Run(t.Context(), conn, made)
		if !errors.Is(err, ErrStalled) || err.Error() != "the job stands still: no answer for 60ms" || report.Packets == 0 {
			t.Errorf("asking again every %v: %v", timeout, err)
		}
	}
}

// TestMissingNetworkIsDistinguished checks that a missing network is distinguished from a packet that cannot be sent.
func TestMissingNetworkIsDistinguished(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENETUNREACH: true, &net.OpError{Op: "write", Err: os.NewSyscallError("sendmmsg", syscall.ENETDOWN)}: true, syscall.ENODEV: true, syscall.EADDRNOTAVAIL: true,
		syscall.EMSGSIZE: false, syscall.EINVAL: false,
	} {
		if got := offline(err); errors.Is(got, ErrOffline) != want || !errors.Is(got, err) {
			t.Errorf("%v is %v", err, got)
		}
	}
}

// TestPlayerFails checks that a missing network and an invalid endpoint end a player with an error.
func TestPlayerFails(t *testing.T) {
	conn, _ := bound(t)
	cfg := endpoint.Config{Workers: 1, Layout: endpoint.Layout{Values: 1, PerPacket: 1}, Updates: 1}
	p := &Player{Codec: &Open{Packets: 1}, Work: &Numbers{Layout: cfg.Layout},
		To: func(endpoint.Peer, *program.Packet) netip.AddrPort {
			return netip.MustParseAddrPort("127.0.0.1:0") // sending to port 0 fails
		}}
	if _, err := p.Run(t.Context(), conn, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewOpenWorker(cfg, endpoint.Olaf{}, h)
	}); err == nil {
		t.Error("a packet that could not be sent was not noticed")
	}
	if _, err := p.Run(t.Context(), conn, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewOpenWorker(endpoint.Config{}, endpoint.Olaf{}, h)
	}); !errors.Is(err, endpoint.ErrConfig) {
		t.Error(err)
	}
}
