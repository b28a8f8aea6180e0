package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Types of pcapng blocks.
const (
	blockInterface  = 1
	blockPacket     = 2 // obsolete, but present in old files
	blockSimple     = 3
	blockStatistics = 5
	blockEnhanced   = 6
	blockSection    = 0x0a0d0d0a
	byteOrderMagic  = 0x1a2b3c4d // of a section
)

// Options of pcapng blocks.
const (
	optionEnd        = 0
	optionComment    = 1
	optionFlags      = 2 // option of a packet
	optionDropCount  = 4 // option of a packet
	optionProgram    = 4 // option of a section
	optionName       = 2 // option of an interface
	optionResolution = 9
	optionFilter     = 11
	optionFCSLength  = 13
	optionOffset     = 14
	optionReceived   = 4 // option of interface statistics
	optionIfDrop     = 5
	optionOSDrop     = 7
)

// Fields of a packet's flags.
const (
	flagFCSShift   = 5
	flagFCSMask    = 0xf
	flagLinkErrors = 0xffff0000
)

// maxBlock is the maximum length of a block in bytes. It prevents large allocations for damaged lengths. Wireshark has
// the same limit.
const maxBlock = 16 << 20

// errDamaged is matched by errors about contradictions in a pcapng file.
var errDamaged = errors.New("the file is damaged")

// ngInterface is an interface in a section, with the losses that the section's blocks report for it.
type ngInterface struct {
	link     linkType
	stamps   resolution
	offset   int64 // seconds to add to every stamp
	fcsBytes int
	// stated is the newest count in its statistics blocks; atPackets sums the counts of single packets.
	stated, atPackets int64
	clock             clockState
}

// ngReader reads the packets in a pcapng file. It checks the lengths of all blocks.
type ngReader struct {
	in         io.Reader
	order      binary.ByteOrder
	interfaces []ngInterface
	sections   int
	earlier    int64 // packets lost in earlier sections
	faulty     int64 // packets with a link error
	kind       uint32
	buf        []byte
	body       []byte // body of the current block
}

// newNgReader reads the header of the first section.
func newNgReader(in io.Reader) (*ngReader, error) {
	r := &ngReader{in: in}
	if err := r.readBlock(); err != nil {
		return nil, err
	}
	return r, r.startSection()
}

// readBlock reads the next block. After the last block, it returns io.EOF.
func (r *ngReader) readBlock() error {
	var head [12]byte
	if _, err := io.ReadFull(r.in, head[:8]); err != nil {
		return err
	}
	known := 0 // bytes of the body already read
	if binary.BigEndian.Uint32(head[:]) == blockSection {
		if _, err := io.ReadFull(r.in, head[8:]); err != nil {
			return cutShort(err)
		}
		known = 4
		switch uint32(byteOrderMagic) {
		case binary.LittleEndian.Uint32(head[8:]):
			r.order = binary.LittleEndian
		case binary.BigEndian.Uint32(head[8:]):
			r.order = binary.BigEndian
		default:
			return fmt.Errorf("its byte-order magic is %x; %w", head[8:], errDamaged)
		}
	}
	r.kind = r.order.Uint32(head[:])
	length := r.order.Uint32(head[4:])
	switch {
	case length%4 != 0:
		return fmt.Errorf("a block's length is %d, not a multiple of four; %w", length, errDamaged)
	case length < uint32(12+known):
		return fmt.Errorf("a block's length is %d, too short for any block; %w", length, errDamaged)
	case length > maxBlock:
		return fmt.Errorf("a block claims %d bytes; %w", length, errDamaged)
	}
	if cap(r.buf) < int(length) {
		r.buf = make([]byte, length)
	}
	rest := r.buf[:length-8]
	copy(rest, head[8:8+known])
	if _, err := io.ReadFull(r.in, rest[known:]); err != nil {
		return cutShort(err)
	}
	if trailing := r.order.Uint32(rest[len(rest)-4:]); trailing != length {
		return fmt.Errorf("a block's lengths are %d at its start and %d at its end; %w", length, trailing, errDamaged)
	}
	r.body = rest[:len(rest)-4]
	return nil
}

// cutShort converts io.EOF to io.ErrUnexpectedEOF, for reads inside a block or packet.
func cutShort(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// startSection starts a new section and removes the interfaces of the previous one.
func (r *ngReader) startSection() error {
	if len(r.body) < 16 {
		return fmt.Errorf("a section header of %d bytes is too short; %w", len(r.body), errDamaged)
	}
	if major := r.order.Uint16(r.body[4:]); major != 1 {
		return fmt.Errorf("its pcapng version is %d; only version 1 can be read", major)
	}
	r.sections++
	r.earlier = r.countDropped()
	r.interfaces = r.interfaces[:0]
	return nil
}

// countDropped returns the number of lost packets that the blocks read so far report.
func (r *ngReader) countDropped() int64 {
	n := r.earlier
	for i := range r.interfaces {
		// An interface's statistics include the losses that are reported between its packets.
		n += max(r.interfaces[i].stated, r.interfaces[i].atPackets)
	}
	return n
}

// nextPacket reads blocks up to the next packet and returns the packet, which is valid until the next call. A packet in
// a simple packet block has no time.
func (r *ngReader) nextPacket() (rawPacket, error) {
	for {
		if err := r.readBlock(); err != nil {
			return rawPacket{}, err
		}
		var err error
		switch r.kind {
		case blockSection:
			err = r.startSection()
		case blockInterface:
			err = r.addInterface()
		case blockStatistics:
			err = r.readStatistics()
		case blockSimple:
			return r.readSimplePacket()
		case blockPacket, blockEnhanced:
			return r.readPacket()
		}
		if err != nil {
			return rawPacket{}, err
		}
	}
}

// addInterface reads an interface description.
func (r *ngReader) addInterface() error {
	if len(r.body) < 8 {
		return fmt.Errorf("an interface description of %d bytes is too short; %w", len(r.body), errDamaged)
	}
	i := ngInterface{link: linkType(r.order.Uint16(r.body)), stamps: 6}
	err := r.readOptions(r.body[8:], func(code uint16, v []byte) {
		switch {
		case code == optionResolution && len(v) >= 1:
			i.stamps = resolution(v[0])
		case code == optionFCSLength && len(v) >= 1:
			i.fcsBytes = fcsBytes(int(v[0]))
		case code == optionOffset && len(v) >= 8:
			i.offset = int64(r.order.Uint64(v))
		}
	})
	r.interfaces = append(r.interfaces, i)
	return err
}

// fcsBytes returns the length of a frame check sequence in bytes. By definition, the option contains the number of
// bits, but in files from Wireshark it contains the number of bytes. Every Ethernet FCS has four bytes.
func fcsBytes(stated int) int {
	if stated == 32 || stated == 4 {
		return 4
	}
	return 0
}

// readStatistics reads the loss counter for an interface. A later block replaces the values of an earlier one.
func (r *ngReader) readStatistics() error {
	i, err := r.interfaceAt(12, 4)
	if err != nil {
		return err
	}
	dropped := int64(0)
	err = r.readOptions(r.body[12:], func(code uint16, v []byte) {
		if (code == optionIfDrop || code == optionOSDrop) && len(v) >= 8 {
			if n := int64(r.order.Uint64(v)); n > 0 { // all ones mean unknown
				dropped += n
			}
		}
	})
	i.stated = max(i.stated, dropped)
	return err
}

// interfaceAt returns the interface whose index is stored in the first idBytes bytes of the block. The block must have
// at least the given length.
func (r *ngReader) interfaceAt(least, idBytes int) (*ngInterface, error) {
	if len(r.body) < least {
		return nil, fmt.Errorf("a block of type %d with %d bytes is too short; %w", r.kind, len(r.body), errDamaged)
	}
	id := int64(r.order.Uint16(r.body))
	if idBytes == 4 {
		id = int64(r.order.Uint32(r.body))
	}
	if id >= int64(len(r.interfaces)) {
		return nil, fmt.Errorf("it belongs to interface %d, which the file does not describe; %w", id, errDamaged)
	}
	return &r.interfaces[id], nil
}

// readSimplePacket reads a simple packet block, whose packet has no time.
func (r *ngReader) readSimplePacket() (rawPacket, error) {
	if len(r.body) < 4 || len(r.interfaces) == 0 {
		return rawPacket{}, fmt.Errorf("a simple packet without a length or an interface; %w", errDamaged)
	}
	wire := int(r.order.Uint32(r.body))
	data := r.body[4:]
	return rawPacket{untimed: true, link: r.interfaces[0].link, data: data[:min(len(data), wire)], wire: wire}, nil
}

// readPacket reads an enhanced packet block or an obsolete packet block.
func (r *ngReader) readPacket() (rawPacket, error) {
	idBytes := 4
	if r.kind == blockPacket {
		idBytes = 2
	}
	i, err := r.interfaceAt(20, idBytes)
	if err != nil {
		return rawPacket{}, err
	}
	if drops := r.order.Uint16(r.body[2:]); r.kind == blockPacket && drops != 0xffff { // all ones mean unknown
		i.atPackets += int64(drops)
	}
	captured, wire := r.order.Uint32(r.body[12:]), r.order.Uint32(r.body[16:])
	padded := (uint64(captured) + 3) &^ 3
	if padded > uint64(len(r.body)-20) {
		return rawPacket{}, fmt.Errorf("it claims %d bytes, more than its block has; %w", captured, errDamaged)
	}
	p := rawPacket{link: i.link, data: r.body[20 : 20+captured], wire: int(wire), fcsBytes: i.fcsBytes, stamps: i.stamps,
		clock: &i.clock}
	p.ticks, p.offset = uint64(r.order.Uint32(r.body[4:]))<<32|uint64(r.order.Uint32(r.body[8:])), i.offset
	err = r.readOptions(r.body[20+padded:], func(code uint16, v []byte) {
		switch {
		case code == optionComment:
			if c, ok := parseClaim(string(v)); ok {
				p.claim = &c
			}
		case code == optionFlags && len(v) >= 4:
			flags := r.order.Uint32(v)
			if n := int(flags >> flagFCSShift & flagFCSMask); n != 0 {
				p.fcsBytes = fcsBytes(n)
			}
			if flags&flagLinkErrors != 0 {
				r.faulty++
			}
		case code == optionDropCount && len(v) >= 8:
			i.atPackets += int64(min(r.order.Uint64(v), 1<<62))
		}
	})
	return p, err
}

// readOptions calls take for each option of a block, up to an option with code 0 or the end of the block.
func (r *ngReader) readOptions(b []byte, take func(code uint16, value []byte)) error {
	for len(b) >= 4 {
		code, length := r.order.Uint16(b), int(r.order.Uint16(b[2:]))
		if code == optionEnd {
			return nil
		}
		padded := (length + 3) &^ 3
		if 4+padded > len(b) {
			return fmt.Errorf("an option of %d bytes does not fit into its block; %w", length, errDamaged)
		}
		take(code, b[4:4+length])
		b = b[4+padded:]
	}
	return nil
}

// Every block that follows starts with its type and four bytes for its length, which endBlock sets.

// appendSection appends the header of a section without a stated length.
func appendSection(b []byte) []byte {
	start := len(b)
	b = appendWords(b, blockSection, 0, byteOrderMagic, 1) // version 1.0
	b = binary.LittleEndian.AppendUint64(b, math.MaxUint64)
	b = appendOption(b, optionProgram, "olafctl")
	return endBlock(appendOption(b, optionEnd, ""), start)
}

// appendInterface appends the description of an interface whose stamps are in nanoseconds.
func appendInterface(b []byte, i *Interface) []byte {
	start := len(b)
	b = appendWords(b, blockInterface, 0, uint32(linkEthernet), uint32(i.SnapBytes))
	if i.Name != "" {
		b = appendOption(b, optionName, i.Name)
	}
	if i.Comment != "" {
		b = appendOption(b, optionComment, i.Comment)
	}
	if i.Filter != "" {
		b = appendOption(b, optionFilter, "\x00"+i.Filter) // 0 announces a filter as text
	}
	b = appendOption(b, optionResolution, "\x09")
	return endBlock(appendOption(b, optionEnd, ""), start)
}

// appendPacket appends a packet of an interface.
func appendPacket(b []byte, from int, unixNS int64, captured []byte, wire int, comments []string) []byte {
	start := len(b)
	b = appendWords(b, blockEnhanced, 0, uint32(from), uint32(unixNS>>32), uint32(unixNS), uint32(len(captured)), uint32(wire))
	b = appendPadded(b, string(captured))
	for _, c := range comments {
		b = appendOption(b, optionComment, c)
	}
	if len(comments) > 0 {
		b = appendOption(b, optionEnd, "")
	}
	return endBlock(b, start)
}

// appendStatistics appends the statistics of an interface at the given time.
func appendStatistics(b []byte, from int, unixNS int64, received, dropped uint64) []byte {
	start := len(b)
	b = appendWords(b, blockStatistics, 0, uint32(from), uint32(unixNS>>32), uint32(unixNS))
	b = appendOption(b, optionIfDrop, string(binary.LittleEndian.AppendUint64(nil, dropped)))
	b = appendOption(b, optionReceived, string(binary.LittleEndian.AppendUint64(nil, received)))
	return endBlock(appendOption(b, optionEnd, ""), start)
}

// appendWords appends words of 32 bits.
func appendWords(b []byte, words ...uint32) []byte {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// appendOption appends an option of a block.
func appendOption(b []byte, code uint16, value string) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	return appendPadded(b, value)
}

// appendPadded appends a value and zeros up to a multiple of four bytes.
func appendPadded(b []byte, value string) []byte {
	b = append(b, value...)
	return append(b, "\x00\x00\x00"[:-len(value)&3]...)
}

// endBlock appends the length of the block that begins at start, and sets its length field.
func endBlock(b []byte, start int) []byte {
	length := uint32(len(b) - start + 4)
	binary.LittleEndian.PutUint32(b[start+4:], length)
	return binary.LittleEndian.AppendUint32(b, length)
}
