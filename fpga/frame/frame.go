// Package frame is the wire formats of the published systems: one table of fields a message, from which the codec here, the
// tables of docs/reference/wire.md and the dissector for Wireshark are all derived.
//
// A Format turns a packet of fpga/program into an Ethernet frame and back. What is on the wire is exactly what a table says;
// the Trace of a packet, which simulators carry along to measure by, is not, but for the newest time inside, where a table has
// it. OLAF's own codec is package olaf's, its table
// is here for page and dissector. Nothing allocates where nothing is wrong.
package frame

import (
	"fmt"
	"math"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// ErrUnknown says that no format has a name.
var ErrUnknown = olaf.NewError(olaf.Usage, "unknown wire format")

// Format is one wire format.
type Format struct {
	Name    string // unique, as people type it
	Proto   string // of the dissector; the first part of its fields' names
	Title   string
	Source  string // whose it is, in one line
	Carrier Carrier
	// Messages are what there is; of those that look alike on the wire the first is read.
	Messages []Message
	// Elsewhere says that only the table is here: another package writes and reads these frames.
	Elsewhere bool
}

// Carrier is what is in front of a format's payload: always Ethernet and an IPv4 header without options.
type Carrier struct {
	EtherType uint16
	Protocol  uint8  // in the IPv4 header
	Port      uint16 // of UDP on the switch's or server's side; 0 is a format without UDP
	PortMask  uint16 // of the port's bits that count; 0 is all
	// FixedLength is what the IPv4 header says its packet is long, whatever it is; 0 tells the truth.
	FixedLength uint16
}

// Message is one kind of packet of a format.
type Message struct {
	Name   string
	Kind   program.Kind
	Action uint8   // of program.Control
	ToS    uint8   // of the IPv4 header; the two bits of ECN are not looked at
	Reply  bool    // the format's port is the source's
	Past   bool    // goes past the aggregators on its way
	Whole  bool    // a control packet that names no segment, for all
	Head   []Field // in front of the lanes, from the end of the carrier
	Lanes  Lanes   // none in the zero value
	Tail   []Field // behind them

	head, tail int // bytes of them
}

// Lanes is what a message carries of a gradient: 32-bit words, big-endian.
type Lanes struct {
	Type  string // int32 or float32
	Most  int
	Fixed bool // always Most, filled with zeros
	// HostOrder are flags with which they are floats in the byte order of the released code's host, least byte first.
	HostOrder program.Flags
}

// Form is how a field is shown.
type Form uint8

// The forms.
const (
	Decimal Form = iota
	Hex
	Signed
	Mark // a single bit
)

// Field is a number on the wire. Offsets follow from the widths, so that a table has no gaps.
type Field struct {
	Name  string // a word of the dissector's field names
	Doc   string // empty where nobody means anything by it
	Bits  int
	Form  Form
	Names []string // of its values from 0 on, where they have some
	// Little is a field that the released code leaves in the order of its host, least byte first.
	Little bool
	// Fixed fields always hold Value. Selects are those of them that tell messages apart.
	Fixed, Selects bool
	Value          uint64
	// Flag is the packet's flag that a single bit stands for.
	Flag program.Flags
	// Get and Set are the packet's side; both are nil where a packet has nothing like it: 0 is written, and nothing read.
	Get func(p *program.Packet) uint64
	Set func(p *program.Packet, v uint64)

	at int // bits from the start of head or tail
}

// spare says that nobody means anything by a field.
func (x *Field) spare() bool { return x.Doc == "" && !x.Fixed }

// The lengths of what is in front of payloads, in bytes.
const (
	ethernetBytes = 14
	ipBytes       = 20
	udpBytes      = 8
	// Least is what Ethernet pads frames to, without the check sequence.
	Least olaf.Size = 60
)

// placed computes offsets; it is done once, when the tables are made.
func placed(f *Format) *Format {
	for i := range f.Messages {
		m := &f.Messages[i]
		m.head, m.tail = place(m.Head), place(m.Tail)
	}
	return f
}

func place(fields []Field) (bytes int) {
	bits := 0
	for i := range fields {
		fields[i].at = bits
		bits += fields[i].Bits
	}
	return bits / 8
}

// All are the formats with a codec here, in the order of programs and their profiles, and that of hosts that need none.
func All() []*Format {
	return []*Format{ISwitch, ISwitchExact, SwitchML, ATPReleased, ATPPaper, P4INC, XAgg, Baseline}
}

// Tables are all formats, those of other packages too.
func Tables() []*Format { return append([]*Format{OLAF}, All()...) }

// SystemOf names the format that a frame is of, of which b was kept and wire bytes were sent; empty of none. Of formats that
// nothing on the wire tells apart it is the first.
func SystemOf(b []byte, wire int) string {
	for _, f := range All() {
		if _, err := f.DecodeTruncated(b, wire); err == nil {
			return fmt.Sprintf("%s (%s)", f.Title, f.Name)
		}
	}
	return ""
}

// Find returns the named format. The error matches ErrUnknown and lists what there is.
func Find(name string) (*Format, error) {
	var names []string
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return nil, fmt.Errorf("%w %q; there are %s", ErrUnknown, name, strings.Join(names, ", "))
}

// payload is where a format's own bytes begin in a frame.
func (c *Carrier) payload() int {
	if c.Port == 0 {
		return ethernetBytes + ipBytes
	}
	return ethernetBytes + ipBytes + udpBytes
}

func (c *Carrier) mask() uint16 {
	if c.PortMask == 0 {
		return 0xffff
	}
	return c.PortMask
}

// Size is the length of a frame with so many lanes of a gradient on their way to be summed, without the check sequence.
func (f *Format) Size(lanes int) olaf.Size {
	return f.SizeOf(&program.Packet{Kind: program.Data, Lanes: uint16(lanes)}, false)
}

// SizeOf is the length of a packet's frame; past says that it goes past the aggregators. A packet that the format has no
// message for has that of one with as many lanes.
func (f *Format) SizeOf(p *program.Packet, past bool) olaf.Size {
	m := f.messageOf(p, past)
	if m == nil {
		m = &f.Messages[0]
	}
	return max(Least, olaf.Size(f.Carrier.payload()+m.length(int(p.Lanes))))
}

// length is that of a message with so many lanes of a packet, from the end of the carrier.
func (m *Message) length(lanes int) int {
	return m.head + olaf.LaneBytes*m.Lanes.onWire(lanes) + m.tail
}

// onWire is how many lanes are sent for those of a packet.
func (l *Lanes) onWire(lanes int) int {
	if l.Fixed {
		return l.Most
	}
	return lanes
}

// messageOf is how a packet is written; nil where the format has no such message, or none with room for its lanes.
func (f *Format) messageOf(p *program.Packet, past bool) *Message {
	for i := range f.Messages {
		m := &f.Messages[i]
		switch {
		case m.Kind != p.Kind, m.Kind == program.Control && m.Action != p.Action:
		case m.Kind == program.Result && m.Past != past, m.Whole && p.Seg != everySegment, int(p.Lanes) > m.Lanes.Most:
		default:
			return m
		}
	}
	return nil
}

// everySegment is what a control packet for all segments has in its Seg.
const everySegment = math.MaxUint64
