package process

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// deadConn is a socket for frames to which none ever comes, and whose deadlines pass at once.
type deadConn struct{ sent int }

func (*deadConn) Receive(func([]byte)) (int, error) { return 0, os.ErrDeadlineExceeded }
func (c *deadConn) Send([]byte) error               { c.sent++; return nil }
func (*deadConn) SetReadDeadline(time.Time) error   { return nil }

// emptyCodec encodes every packet as an empty frame.
type emptyCodec struct{}

func (emptyCodec) Encode([]byte, *program.Packet, []uint32, netip.AddrPort) (int, error) {
	return 0, nil
}

func (emptyCodec) Decode([]byte, uint32, *program.Packet) ([]uint32, netip.AddrPort, bool) {
	return nil, netip.AddrPort{}, false
}

// readyWork has a vector at once, or never.
type readyWork struct {
	Numbers
	never bool
}

func (w *readyWork) Compute(ctx context.Context, _ uint32) Computed {
	if w.never {
		<-ctx.Done()
	}
	return Computed{Values: []uint32{1, 2}}
}

// TestEndpointsWithoutTimersStall runs a parameter server's worker, which has no timer, without its server: it stalls
// once its vector is sent, and waits for a computation without end.
func TestEndpointsWithoutTimersStall(t *testing.T) {
	run := func(ctx context.Context, never bool) (*deadConn, error) {
		conn := new(deadConn)
		p := &Player{Work: &readyWork{never: never}, Patience: 1, Waits: true,
			To: func(endpoint.Peer, *program.Packet) netip.AddrPort { return netip.AddrPort{} }}
		_, err := p.RunFrames(ctx, conn, emptyCodec{}, func(h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewPSWorker(endpoint.Config{Workers: 1, Layout: endpoint.Layout{Values: 2, PerPacket: 1}, Updates: 1}, h)
		})
		return conn, err
	}
	if conn, err := run(t.Context(), false); !errors.Is(err, ErrStalled) || conn.sent != 2 {
		t.Errorf("after %d frames the worker ends with %v, want that it stalls after 2", conn.sent, err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := run(ctx, true); err != nil {
		t.Errorf("a worker that computes ends with %v, want that it waits", err)
	}
}

// TestLostFramesAreNotProgress runs a worker whose network only asks for its frames again: it stalls, and the error
// reports that the frames are not answered. Any other packet is progress.
func TestLostFramesAreNotProgress(t *testing.T) {
	end, err := endpoint.NewXAgg(endpoint.Config{Workers: 1, Layout: endpoint.Layout{Values: 1, PerPacket: 1}, Updates: 1},
		endpoint.XAgg{}, newPlaying(t.Context(), new(Player), nil))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	k := newPlaying(t.Context(), &Player{Patience: time.Hour}, nil)
	k.end, k.lastPacket = end, now.Add(-2*time.Hour)
	for range 7 {
		k.receive(&program.Packet{Kind: program.Control, Action: xagg.Lost}, nil, netip.AddrPort{})
	}
	if err := k.checkPatience(now); !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(),
		"frames are not answered: the network asked for them again 7 times") {
		t.Errorf("a worker whose frames are asked for again and again ends with %v", err)
	}
	k.receive(&program.Packet{Kind: program.Control, Action: xagg.Checked}, nil, netip.AddrPort{})
	if err := k.checkPatience(now); err != nil {
		t.Errorf("a worker whose frames arrived ends with %v", err)
	}
}

// writtenCarrier records the packets that a player sends.
type writtenCarrier struct {
	carrier
	packets []program.Packet
	to      []netip.AddrPort
}

func (c *writtenCarrier) write(p *program.Packet, _ []uint32, _ int32, _ uint64, _ netip.Addr, to ...netip.AddrPort) error {
	c.packets, c.to = append(c.packets, *p), append(c.to, to...)
	return nil
}

// TestServersReportMissingWorkers runs a parameter server that has vectors from two of four workers: after a second
// without frames both receive the numbers of the others, once in a second, and none once all vectors are there.
func TestServersReportMissingWorkers(t *testing.T) {
	c := new(writtenCarrier)
	k := newPlaying(t.Context(), &Player{Work: &Numbers{}, To: func(to endpoint.Peer, _ *program.Packet) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(to)}), 1)
	}}, c)
	var err error
	k.end, err = endpoint.NewPSServer(endpoint.Config{Workers: 4, Layout: endpoint.Layout{Values: 1, PerPacket: 1}, Updates: 1},
		true, k)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	send := func(w olaf.WorkerID) {
		k.end.Receive(0, &program.Packet{Kind: program.Data, Worker: w, Lanes: 1}, []uint32{1})
		k.lastPacket = begun
	}
	send(3)
	send(1)
	for _, after := range []time.Duration{idle / 2, idle, idle + idle/2, 2 * idle} {
		k.reportMissing(begun.Add(after))
	}
	if len(c.to) != 4 || c.to[0].Addr().As4()[3] != 3 || c.to[1].Addr().As4()[3] != 1 {
		t.Fatalf("in two seconds it reports to %v, want to workers 3 and 1, twice", c.to)
	}
	for _, p := range c.packets {
		if p.Kind != program.Control || p.Action != xagg.Awaits || p.Bitmap != 0b101 {
			t.Errorf("it reports %+v, want that workers 0 and 2 are missing", p)
		}
	}
	send(0)
	send(2)
	c.to = nil
	if k.reportMissing(begun.Add(9 * idle)); len(c.to) > 0 {
		t.Errorf("with all vectors it reports to %v", c.to)
	}
}
