package process

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

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
	k.end, k.heard = end, now.Add(-2*time.Hour)
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
