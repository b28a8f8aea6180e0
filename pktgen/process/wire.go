package process

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// FrameConn is a socket for whole frames.
type FrameConn interface {
	// Receive waits for frames until the deadline and returns the number of frames that it passed to take. The argument
	// of take is valid only during the call. After the deadline, the error matches os.ErrDeadlineExceeded.
	Receive(take func(frame []byte)) (int, error)
	Send(frame []byte) error
	SetReadDeadline(until time.Time) error
}

// FrameCodec encodes the packets of a host as whole frames that include all headers.
type FrameCodec interface {
	// Encode writes a frame for an address to dst, which has room for a frame, and returns the frame's length.
	Encode(dst []byte, p *program.Packet, lanes []uint32, to netip.AddrPort) (int, error)
	// Decode decodes a frame for this host. vector is the vector that the host is computing or computed last. lanes is
	// overwritten by the next call; ok is false for other frames.
	Decode(frame []byte, vector uint32, p *program.Packet) (lanes []uint32, from netip.AddrPort, ok bool)
}

// wire sends and receives a player's packets as whole frames.
type wire struct {
	conn    FrameConn
	codec   FrameCodec
	vector  *uint32 // number of the vector in computation, or of the last one
	traffic Traffic
	out     []byte
	unsent  error
}

func (w *wire) setDeadline(until time.Time) error { return w.conn.SetReadDeadline(until) }
func (w *wire) counts() Traffic                   { return w.traffic }
func (w *wire) sendError() error                  { return w.unsent }
func (w *wire) wake()                             { _ = w.conn.SetReadDeadline(time.Unix(1, 0)) }

// flush does nothing, because frames are sent one by one.
func (w *wire) flush() {}

func (w *wire) read(take func(p *program.Packet, lanes []uint32, from netip.AddrPort)) (int, error) {
	n, err := w.conn.Receive(func(b []byte) {
		var p program.Packet
		lanes, from, ok := w.codec.Decode(b, *w.vector, &p)
		if !ok {
			w.traffic.Strange++
			return
		}
		w.traffic.Received++
		take(&p, lanes, from)
	})
	if n > 0 {
		w.traffic.ReceiveCalls++
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, offline(err)
}

func (w *wire) write(p *program.Packet, lanes []uint32, _ int32, _ uint64, _ netip.Addr, to ...netip.AddrPort) error {
	if w.out == nil {
		w.out = make([]byte, olaf.MaxFrame)
	}
	for _, at := range to {
		n, err := w.codec.Encode(w.out, p, lanes, at)
		if err != nil {
			return err
		}
		w.traffic.Calls++
		if err := w.conn.Send(w.out[:n]); err != nil {
			w.unsent = cmp.Or(w.unsent, fmt.Errorf("send a frame: %w", offline(err)))
			w.traffic.Unsent++
			continue
		}
		w.traffic.Packets++
	}
	return nil
}
