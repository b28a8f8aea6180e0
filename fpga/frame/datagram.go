package frame

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Datagrams is a format with UDP as a socket has it: the kernel writes and takes away what is in front of the payload.
type Datagrams struct {
	*Format
	// Results reads as a result what looks like data: some formats have one form for both, and who receives knows.
	Results bool
	outer   Outer
	lanes   []uint32
}

// Offset is how much room there is in front of a payload.
func (d *Datagrams) Offset() int { return d.Carrier.payload() }

// Encode writes a packet's payload into dst, which has room for a whole frame, and says which part of dst it is. The packet's newest
// time is counted from zeroNS. The error is that of Format.Encode.
func (d *Datagrams) Encode(dst []byte, p *program.Packet, lanes []uint32, _ int32, zeroNS uint64) ([]byte, error) {
	timed := *p
	timed.NewestNS = (zeroNS + p.NewestNS) % olaf.GenModulus
	if _, err := d.Format.Encode(dst, &d.outer, &timed, lanes); err != nil {
		return nil, err
	}
	return dst[d.Offset():][:d.messageOf(p, false).length(int(p.Lanes))], nil
}

// Decode reads a payload that b holds from Offset on, behind zeros. As many vectors are inside as the packet counts; which they are
// no format says. lanes is overwritten by the next one; ok is false for what is none of the format's messages.
func (d *Datagrams) Decode(b []byte, p *program.Packet) (lanes []uint32, ok bool) {
	payload := b[d.Offset():]
	m, err := d.messageIn(payload, len(payload), 0, false)
	if err != nil {
		return nil, false
	}
	v := View{Message: m, b: payload, frame: b, lanes: (len(payload) - m.head - m.tail) / olaf.LaneBytes}
	if err := d.fixed(&v); err != nil {
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
