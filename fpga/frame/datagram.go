package frame

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Datagrams encodes and decodes packets of a format for UDP sockets, where the kernel adds and removes the headers.
type Datagrams struct {
	*Format
	// Results means that data packets are decoded as results. Some formats have one form for both, and only the
	// receiver knows which one it receives.
	Results bool
	outer   Outer
	lanes   []uint32
}

// Offset returns the number of bytes that a buffer must have before the payload.
func (d *Datagrams) Offset() int { return d.Carrier.payload() }

// Encode writes a packet's payload into dst, which must have room for a complete frame, and returns the part of dst
// with the payload. The packet's newest time is relative to zeroNS. Errors are those of Format.Encode.
func (d *Datagrams) Encode(dst []byte, p *program.Packet, lanes []uint32, _ int32, zeroNS uint64) ([]byte, error) {
	timed := *p
	timed.NewestNS = (zeroNS + p.NewestNS) % olaf.GenModulus
	if _, err := d.Format.Encode(dst, &d.outer, &timed, lanes); err != nil {
		return nil, err
	}
	return dst[d.Offset():][:d.messageOf(p, false).length(int(p.Lanes))], nil
}

// Decode decodes the payload that starts at Offset in b; the bytes before it must be 0. The number of vectors is the
// packet's count, because no format identifies the vectors. lanes is valid until the next call. ok is false if the
// payload is not a message of the format.
func (d *Datagrams) Decode(b []byte, p *program.Packet) (lanes []uint32, ok bool) {
	payload := b[d.Offset():]
	m, err := d.messageIn(payload, len(payload), 0, false)
	if err != nil {
		return nil, false
	}
	v := View{Message: m, b: payload, frame: b, lanes: (len(payload) - m.head - m.tail) / olaf.LaneBytes}
	if err := d.checkFixed(&v); err != nil {
		return nil, false
	}
	v.Packet(p)
	p.Vectors = uint32(p.Count)
	if d.Results && p.Kind == program.Data {
		p.Kind = program.Result
	}
	if cap(d.lanes) < v.lanes {
		d.lanes = make([]uint32, v.lanes)
	}
	d.lanes = d.lanes[:v.lanes]
	return d.lanes[:v.Lanes(d.lanes)], true
}
