// Package frame implements the wire formats of the published systems. Each message has one table of fields. The codec,
// the tables of docs/reference/wire.md and the Wireshark dissector are derived from it. A Format converts packets of
// fpga/program to Ethernet frames and back. Only fields in the table are transmitted. A packet's Trace, which
// simulators use for measurements, is not transmitted, except for the newest time if the table has a field for it.
// OLAF's codec is in package olaf; this package has its table for the page and the dissector. Converting valid frames
// does not allocate.
package frame

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Format is the wire format of a system.
type Format struct {
	Name    string // unique, for flags
	Proto   string // dissector's name, the prefix of its fields
	Title   string
	Source  string // origin, in one line
	Carrier Carrier
	// Messages lists the format's messages. If several look alike on the wire, the first is decoded.
	Messages []Message
	// Elsewhere is set if the codec is in another package and only the table is here.
	Elsewhere bool
}

// Carrier describes the headers before a format's payload. They are Ethernet and an IPv4 header without options.
type Carrier struct {
	EtherType uint16
	Protocol  uint8  // in the IPv4 header
	Port      uint16 // UDP port of the switch or server; 0 means no UDP
	PortMask  uint16 // significant bits of the port; 0 means all
	// FixedLength, if not 0, is written as the IPv4 length instead of the packet's length.
	FixedLength uint16
}

// Message describes one kind of packet in a format.
type Message struct {
	Name        string
	Kind        program.Kind
	Action      uint8   // action of a program.Control packet
	ToS         uint8   // in the IPv4 header, without the two ECN bits
	Reply       bool    // the format's port is the source port
	Past        bool    // bypasses the aggregators
	AllSegments bool    // control packet for all segments
	Head        []Field // fields before the lanes
	Lanes       Lanes   // none in the zero value
	Tail        []Field // fields after the lanes

	head, tail int // sizes in bytes
}

// Lanes describes the gradient in a message. It consists of big-endian 32-bit words.
type Lanes struct {
	Type  string // int32 or float32
	Most  int
	Fixed bool // always Most lanes, padded with zeros
	// HostOrder lists flags with which lanes are floats in the host byte order of the released code, least byte
	// first.
	HostOrder program.Flags
}

// Form is how a field's value is displayed.
type Form uint8

// Forms.
const (
	Decimal Form = iota
	Hex
	Signed
	Mark // a single bit
)

// Field is an integer on the wire. Its offset is the sum of the widths before it, so a table has no gaps.
type Field struct {
	Name  string // used in the dissector's field name
	Doc   string // empty for unused fields
	Bits  int
	Form  Form
	Names []string // names of its values from 0 on, if any
	// Little marks a field that the released code leaves in host order, least byte first.
	Little bool
	// Fixed fields always have Value. Those with Selects distinguish messages.
	Fixed, Selects bool
	Value          uint64
	// Flag is the packet's flag for a one-bit field.
	Flag program.Flags
	// Get and Set access the packet's value. If nil, 0 is written and nothing is read.
	Get func(p *program.Packet) uint64
	Set func(p *program.Packet, v uint64)

	at int // bit offset in head or tail
}

// spare reports whether the field is unused in the message.
func (x *Field) spare() bool { return x.Doc == "" && !x.Fixed }

// Header lengths in bytes.
const (
	ethernetBytes = 14
	ipBytes       = 20
	udpBytes      = 8
	// Least is the minimum length to which Ethernet pads frames, without the check sequence.
	Least olaf.Size = 60
)

// withOffsets computes the offsets of all fields in the format and returns the format.
func withOffsets(f *Format) *Format {
	for i := range f.Messages {
		m := &f.Messages[i]
		m.head, m.tail = assignOffsets(m.Head), assignOffsets(m.Tail)
	}
	return f
}

func assignOffsets(fields []Field) (bytes int) {
	bits := 0
	for i := range fields {
		fields[i].at = bits
		bits += fields[i].Bits
	}
	return bits / 8
}

// allFormats returns the formats whose codec is in this package. They are in the order of programs and profiles, with
// the baseline's format last.
func allFormats() []*Format {
	return []*Format{ISwitch, ISwitchExact, SwitchML, ATPReleased, ATPPaper, P4INC, XAgg, Baseline}
}

// allTables returns all formats, including those whose codec is in another package.
func allTables() []*Format { return append([]*Format{OLAF}, allFormats()...) }

// DetectSystem returns the name of a frame's format, or "" if none matches. b is the captured part of a frame that was
// wire bytes long. If several formats match, it returns the first.
func DetectSystem(b []byte, wire int) string {
	for _, f := range allFormats() {
		if _, err := f.DecodeTruncated(b, wire); err == nil {
			return fmt.Sprintf("%s (%s)", f.Title, f.Name)
		}
	}
	return ""
}

// payload returns the offset of the payload in a frame.
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

// Size returns the length of a gradient frame with the given number of lanes, without the check sequence.
func (f *Format) Size(lanes int) olaf.Size {
	return f.SizeOf(&program.Packet{Kind: program.Data, Lanes: uint16(lanes)}, false)
}

// SizeOf returns the length of a packet's frame. past must be set if the packet bypasses the aggregators. If the format
// has no message for the packet, SizeOf returns the length of a gradient frame with the same number of lanes.
func (f *Format) SizeOf(p *program.Packet, past bool) olaf.Size {
	m := f.messageOf(p, past)
	if m == nil {
		m = &f.Messages[0]
	}
	return max(Least, olaf.Size(f.Carrier.payload()+m.length(int(p.Lanes))))
}

// length returns the length of a message with the given number of lanes, without the carrier's headers.
func (m *Message) length(lanes int) int {
	return m.head + olaf.LaneBytes*m.Lanes.onWire(lanes) + m.tail
}

// onWire returns the number of lanes that are sent for a packet with the given number of lanes.
func (l *Lanes) onWire(lanes int) int {
	if l.Fixed {
		return l.Most
	}
	return lanes
}

// messageOf returns the message for a packet, or nil if the format has none or the packet has too many lanes.
func (f *Format) messageOf(p *program.Packet, past bool) *Message {
	for i := range f.Messages {
		m := &f.Messages[i]
		switch {
		case m.Kind != p.Kind, m.Kind == program.Control && m.Action != p.Action:
		case m.Kind == program.Result && m.Past != past, m.AllSegments && p.Seg != everySegment, int(p.Lanes) > m.Lanes.Most:
		default:
			return m
		}
	}
	return nil
}

// everySegment is the value of Seg in control packets that apply to all segments.
const everySegment = math.MaxUint64
