package capture

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Sizes in bytes, magic numbers and fields of a pcap file.
const (
	classicHeader     = 24
	classicPacketHead = 16
	magicMicroseconds = 0xa1b2c3d4
	magicNanoseconds  = 0xa1b23c4d
	classicHasFCS     = 0x04000000 // in the last word of the header
)

// classicReader reads the packets in a pcap file.
type classicReader struct {
	in    io.Reader
	order binary.ByteOrder
	snap  uint32    // packets were cut to this length in bytes
	form  rawPacket // values that all packets have in common
	head  [classicPacketHead]byte
	buf   []byte
}

// newClassicReader reads the header of a pcap file.
func newClassicReader(in io.Reader) (*classicReader, error) {
	var head [classicHeader]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	r := &classicReader{in: in, order: binary.LittleEndian}
	if head[0] == 0xa1 {
		r.order = binary.BigEndian
	}
	switch r.order.Uint32(head[:]) {
	case magicMicroseconds:
		r.form.stamps = 6
	case magicNanoseconds:
		r.form.stamps = 9
	default:
		return nil, fmt.Errorf("unknown magic %x", binary.LittleEndian.Uint32(head[:]))
	}
	if major := r.order.Uint16(head[4:]); major != 2 {
		return nil, fmt.Errorf("unknown major version %d", major)
	}
	if minor := r.order.Uint16(head[6:]); minor != 4 {
		return nil, fmt.Errorf("unknown minor version %d", minor)
	}
	r.snap = r.order.Uint32(head[16:])
	word := r.order.Uint32(head[20:])
	r.form.link = linkType(word)
	if word&classicHasFCS != 0 && word>>28 != 0 {
		r.form.fcsBytes = 4 // every Ethernet FCS has four bytes
	}
	return r, nil
}

// nextPacket reads a packet, which is valid until the next call. After the last packet, it returns io.EOF.
func (r *classicReader) nextPacket() (rawPacket, error) {
	if _, err := io.ReadFull(r.in, r.head[:]); err != nil {
		return rawPacket{}, err
	}
	captured, wire := r.order.Uint32(r.head[8:]), r.order.Uint32(r.head[12:])
	switch {
	case captured > max(r.snap, maxPacket): // some programs write packets longer than the length they declare
		return rawPacket{}, fmt.Errorf("capture length exceeds snap length: %d > %d", captured, r.snap)
	case captured > wire:
		return rawPacket{}, fmt.Errorf("capture length exceeds original packet length: %d > %d", captured, wire)
	}
	p := r.form
	p.wire = int(wire)
	p.ticks = uint64(r.order.Uint32(r.head[:]))*p.stamps.perSecond() + uint64(r.order.Uint32(r.head[4:]))
	var err error
	p.data, err = r.readData(captured)
	return p, err
}

// readData reads the given number of bytes. It allocates no more than a packet may have before it has read the bytes,
// because a damaged file can claim any length.
func (r *classicReader) readData(n uint32) ([]byte, error) {
	if n > maxPacket {
		data, err := io.ReadAll(io.LimitReader(r.in, int64(n)))
		if err == nil && len(data) < int(n) {
			err = io.ErrUnexpectedEOF
		}
		return data, err
	}
	if cap(r.buf) < int(n) {
		r.buf = make([]byte, max(n, min(r.snap, maxPacket)))
	}
	_, err := io.ReadFull(r.in, r.buf[:n])
	if n > 0 {
		err = cutShort(err)
	}
	return r.buf[:n], err
}

// appendClassicHeader appends the header of a pcap file with stamps in nanoseconds.
func appendClassicHeader(b []byte, snapBytes int) []byte {
	const version = 4<<16 | 2 // 2.4
	return appendWords(b, magicNanoseconds, version, 0, 0, uint32(snapBytes), uint32(linkEthernet))
}

// appendClassicPacket appends a packet in the format of pcap files.
func appendClassicPacket(b []byte, unixNS int64, captured []byte, wire int) []byte {
	b = appendWords(b, uint32(unixNS/nsPerSecond), uint32(unixNS%nsPerSecond), uint32(len(captured)), uint32(wire))
	return append(b, captured...)
}
