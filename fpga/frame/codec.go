package frame

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Outer contains the outer headers of a frame, except for values that the format fixes. SrcPort is the worker's port,
// even in frames sent to the worker.
type Outer struct {
	olaf.Addresses
	// Past marks a result that bypasses the aggregators, such as an answer among iSwitch's workers or from a server to
	// workers.
	Past bool
}

// Encode writes a packet's frame to the start of dst and returns its length. lanes must have p.Lanes words, or be nil
// to write zeros. Values that the format has no field for are not written. The error matches ErrEncode; if dst is too
// short, it also matches io.ErrShortBuffer.
func (f *Format) Encode(dst []byte, to *Outer, p *program.Packet, lanes []uint32) (int, error) {
	m := f.messageOf(p, to.Past)
	switch {
	case f.Elsewhere:
		return 0, fmt.Errorf("%w: %s has a codec of its own", ErrEncode, f.Title)
	case m == nil:
		return 0, f.encodeError(p)
	case lanes != nil && len(lanes) != int(p.Lanes):
		return 0, fmt.Errorf("%w: the packet has %d lanes, %d were given", ErrEncode, p.Lanes, len(lanes))
	}
	n := f.Carrier.payload() + m.length(int(p.Lanes))
	size := max(n, int(Least))
	if len(dst) < size {
		return 0, fmt.Errorf("%w: %d bytes into a buffer of %d: %w", ErrEncode, size, len(dst), io.ErrShortBuffer)
	}
	b := dst[f.Carrier.payload():n]
	if clear(b[:m.head]); len(lanes) < int(p.Lanes) {
		clear(b[m.head:])
	}
	clear(b[len(b)-m.tail:])
	if err := f.putFields(b, m.Head, p); err != nil {
		return 0, err
	}
	m.Lanes.put(b[m.head:len(b)-m.tail], p.Flags, lanes)
	if err := f.putFields(b[len(b)-m.tail:], m.Tail, p); err != nil {
		return 0, err
	}
	f.Carrier.put(dst, n, &to.Addresses, m, p.Flags)
	clear(dst[n:size])
	return size, nil
}

// encodeError returns an error that explains why the format has no message for a packet.
func (f *Format) encodeError(p *program.Packet) error {
	most := -1
	for i := range f.Messages {
		if m := &f.Messages[i]; m.Kind == p.Kind {
			most = max(most, m.Lanes.Most)
		}
	}
	switch {
	case most < 0:
		return fmt.Errorf("%w: %s has no message of kind %s", ErrEncode, f.Name, p.Kind)
	case int(p.Lanes) > most:
		return fmt.Errorf("%w: %d lanes; %d fit one of %s", ErrEncode, p.Lanes, most, f.Name)
	}
	return fmt.Errorf("%w: %s has no action %d", ErrEncode, f.Name, p.Action)
}

func (f *Format) putFields(b []byte, fields []Field, p *program.Packet) error {
	for i := range fields {
		x := &fields[i]
		v := x.value(p)
		if bits.Len64(v) > x.Bits {
			return fmt.Errorf("%w: %s %d needs more than the %d bits that %s has for it", ErrEncode, x.Name, v, x.Bits,
				f.Name)
		}
		x.put(b, v)
	}
	return nil
}

// value returns the value that the field has for packet p.
func (x *Field) value(p *program.Packet) uint64 {
	switch {
	case x.Fixed:
		return x.Value
	case x.Flag != 0:
		if p.Flags&x.Flag != 0 {
			return 1
		}
		return 0
	case x.Get != nil:
		return x.Get(p)
	}
	return 0
}

// put writes v to the field's bytes in b, which must be 0.
func (x *Field) put(b []byte, v uint64) {
	if x.Little {
		v = bits.ReverseBytes64(v) >> (64 - x.Bits)
	}
	last := (x.at + x.Bits - 1) / 8
	v <<= (8 - (x.at+x.Bits)%8) % 8
	for i := last; i >= x.at/8; i-- {
		b[i] |= byte(v)
		v >>= 8
	}
}

// read returns the field's value in b, which must contain the whole field. A field that is not byte-aligned may have at
// most 56 bits.
func (x *Field) read(b []byte) (v uint64) {
	last := (x.at + x.Bits - 1) / 8
	for i := x.at / 8; i <= last; i++ {
		v = v<<8 | uint64(b[i])
	}
	v >>= (8 - (x.at+x.Bits)%8) % 8
	v &= 1<<(x.Bits-1)<<1 - 1
	if x.Little {
		return bits.ReverseBytes64(v) >> (64 - x.Bits)
	}
	return v
}

func (l *Lanes) put(b []byte, flags program.Flags, lanes []uint32) {
	if flags&l.HostOrder != 0 {
		for i, v := range lanes {
			binary.LittleEndian.PutUint32(b[olaf.LaneBytes*i:], v)
		}
		return
	}
	for len(lanes) >= 4 && len(b) >= 4*olaf.LaneBytes { // processing four at a time takes half the time
		binary.BigEndian.PutUint32(b, lanes[0])
		binary.BigEndian.PutUint32(b[olaf.LaneBytes:], lanes[1])
		binary.BigEndian.PutUint32(b[2*olaf.LaneBytes:], lanes[2])
		binary.BigEndian.PutUint32(b[3*olaf.LaneBytes:], lanes[3])
		b, lanes = b[4*olaf.LaneBytes:], lanes[4:]
	}
	for i, v := range lanes {
		binary.BigEndian.PutUint32(b[olaf.LaneBytes*i:], v)
	}
}

// View is a validated view of a frame. It does not copy the frame, so it is valid only until the frame's bytes change.
type View struct {
	Message *Message
	b       []byte // captured payload, from the end of the carrier
	frame   []byte
	lanes   int
}

// Decode validates b, a complete Ethernet frame without the check sequence, and returns a view of it. The error is an
// *Error.
func (f *Format) Decode(b []byte) (View, error) { return f.DecodeTruncated(b, len(b)) }

// DecodeTruncated validates b, the captured beginning of a frame that was wire bytes long. The headers must be
// complete. Lanes that were not captured cannot be read, and fields after them read as 0.
func (f *Format) DecodeTruncated(b []byte, wire int) (View, error) {
	end, reply, err := f.check(b, wire)
	if err != nil {
		return View{}, err
	}
	start := f.Carrier.payload()
	payload := b[start:min(len(b), end)]
	m, err := f.messageIn(payload, end-start, b[offToS]&^ecnBits, reply)
	if err != nil {
		return View{}, err
	}
	v := View{Message: m, b: payload, frame: b, lanes: (end - start - m.head - m.tail) / olaf.LaneBytes}
	if err := f.checkFixed(&v); err != nil {
		return View{}, err
	}
	return v, nil
}

// messageIn returns the message for a payload that is n bytes long. b is its captured part.
func (f *Format) messageIn(b []byte, n int, tos uint8, reply bool) (*Message, error) {
	var near, short *Message // the codes match, but the length does not or fields are missing
	var odd *Field
	for i := range f.Messages {
		m := &f.Messages[i]
		if m.ToS != tos || m.Reply != reply {
			continue
		}
		switch x := m.selector(b); {
		case x != nil:
			odd = x
		case len(b) < m.head:
			short = cmp.Or(short, m)
		case m.fits(n):
			return m, nil
		case near == nil:
			near = m
		}
	}
	switch {
	case near != nil:
		return nil, near.misfitError(f, n)
	case short != nil && short.head <= n: // the frame is cut off by the capture's snapshot length
		return nil, f.fault(FaultCut, len(b), short.head)
	case short != nil:
		return nil, short.misfitError(f, n)
	case odd != nil:
		return nil, &Error{Format: f, Field: odd.Name, Fault: FaultCode, Have: int64(odd.read(b))}
	}
	return nil, f.fault(FaultToS, int(tos), 0)
}

// selector returns a field that identifies the message and has a different value in b, or nil if there is none among
// the captured fields.
func (m *Message) selector(b []byte) *Field {
	for i := range m.Head {
		if x := &m.Head[i]; x.Selects && (x.at+x.Bits+7)/8 <= len(b) && x.read(b) != x.Value {
			return x
		}
	}
	return nil
}

// fits reports whether m can have a payload of n bytes.
func (m *Message) fits(n int) bool {
	n -= m.head + m.tail
	if m.Lanes.Fixed || m.Lanes.Most == 0 {
		return n == olaf.LaneBytes*m.Lanes.Most
	}
	return n >= 0 && n%olaf.LaneBytes == 0 && n <= olaf.LaneBytes*m.Lanes.Most
}

func (m *Message) misfitError(f *Format, n int) error {
	e := &Error{Format: f, Field: m.Name, Fault: FaultMessage, Have: int64(n), Want: int64(m.length(m.Lanes.Most))}
	if !m.Lanes.Fixed && m.Lanes.Most > 0 {
		e.Fault, e.Want = FaultLanes, int64(m.Lanes.Most)
	}
	return e
}

// checkFixed returns an error if a field with only one valid value has a different value.
func (f *Format) checkFixed(v *View) error {
	for i := range v.Message.Head {
		x := &v.Message.Head[i]
		if have := x.read(v.b); x.Fixed && have != x.Value {
			return &Error{Format: f, Field: x.Name, Fault: FaultField, Have: int64(have), Want: int64(x.Value)}
		}
	}
	return nil
}

// Packet decodes the frame into p, overwriting all fields. Lanes is the number of lanes in the frame, which includes
// padding in some formats. Trace contains only what the format transmits.
func (v *View) Packet(p *program.Packet) {
	m := v.Message
	*p = program.Packet{Kind: m.Kind, Action: m.Action, Lanes: uint16(v.lanes), Flags: v.flags()}
	if m.AllSegments {
		p.Seg = everySegment
	}
	setFields(p, m.Head, v.b)
	if tail := v.tail(); tail != nil {
		setFields(p, m.Tail, tail)
	}
}

// flags returns the packet's flags. They are decoded first, because other fields may depend on them.
func (v *View) flags() (flags program.Flags) {
	if v.frame[offToS]&ecnBits == ecnBits {
		flags = program.ECN
	}
	for i := range v.Message.Head {
		if x := &v.Message.Head[i]; x.Flag != 0 && x.read(v.b) != 0 {
			flags |= x.Flag
		}
	}
	return flags
}

// tail returns the bytes that follow the lanes, or nil if there are none or they were not captured.
func (v *View) tail() []byte {
	at := v.Message.head + olaf.LaneBytes*v.lanes
	if v.Message.tail == 0 || len(v.b) < at+v.Message.tail {
		return nil
	}
	return v.b[at:]
}

func setFields(p *program.Packet, fields []Field, b []byte) {
	for i := range fields {
		if x := &fields[i]; x.Set != nil {
			x.Set(p, x.read(b))
		}
	}
}

// Lanes copies lanes to dst and returns how many it copied. The number is limited by dst and by the captured bytes.
func (v *View) Lanes(dst []uint32) int {
	l := &v.Message.Lanes
	if l.Most == 0 {
		return 0
	}
	b := v.b[v.Message.head:]
	n := min(len(dst), len(b)/olaf.LaneBytes, v.lanes)
	if v.flags()&l.HostOrder != 0 {
		for i := range n {
			dst[i] = binary.LittleEndian.Uint32(b[olaf.LaneBytes*i:])
		}
		return n
	}
	for dst = dst[:n]; len(dst) >= 4 && len(b) >= 4*olaf.LaneBytes; {
		dst[0] = binary.BigEndian.Uint32(b)
		dst[1] = binary.BigEndian.Uint32(b[olaf.LaneBytes:])
		dst[2] = binary.BigEndian.Uint32(b[2*olaf.LaneBytes:])
		dst[3] = binary.BigEndian.Uint32(b[3*olaf.LaneBytes:])
		b, dst = b[4*olaf.LaneBytes:], dst[4:]
	}
	for i := range dst {
		dst[i] = binary.BigEndian.Uint32(b[olaf.LaneBytes*i:])
	}
	return n
}

// Outer returns the contents of the outer headers.
func (v *View) Outer() Outer {
	b := v.frame
	o := Outer{Addresses: olaf.Addresses{DstMAC: [6]byte(b), SrcMAC: [6]byte(b[6:]), SrcIP: [4]byte(b[offSource:]),
		DstIP: [4]byte(b[offTarget:])}, Past: v.Message.Past}
	if b[offProtocol] == protocolUDP {
		at := offUDP
		if v.Message.Reply {
			at += 2
		}
		o.SrcPort = binary.BigEndian.Uint16(b[at:])
	}
	return o
}
