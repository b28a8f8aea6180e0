package capture

import "encoding/binary"

// Offsets in an Ethernet frame, and EtherTypes.
const (
	addressBytes = 12
	typeBytes    = 2
	tagBytes     = 4
	ipLengthAt   = 2 // after the EtherType

	typeIPv4       = 0x0800
	typeTag        = 0x8100
	typeServiceTag = 0x88a8
)

// isTagged reports whether a frame has a VLAN tag.
func isTagged(frame []byte) bool {
	if len(frame) < addressBytes+tagBytes+typeBytes {
		return false
	}
	kind := binary.BigEndian.Uint16(frame[addressBytes:])
	return kind == typeTag || kind == typeServiceTag
}

// ipv4End returns the offset in bytes at which the IPv4 packet in a frame ends. It returns false if there is no IPv4
// packet.
func ipv4End(frame []byte) (int, bool) {
	at := addressBytes
	if isTagged(frame) {
		at += tagBytes
	}
	if len(frame) < at+typeBytes+ipLengthAt+2 || binary.BigEndian.Uint16(frame[at:]) != typeIPv4 {
		return 0, false
	}
	at += typeBytes
	return at + int(binary.BigEndian.Uint16(frame[at+ipLengthAt:])), true
}

// removeTag removes one VLAN tag from a packet. It copies the packet into buf and returns the buffer for the next call.
// Packets without a tag are not copied.
func removeTag(p *Packet, buf []byte) (frame []byte, wire int, reuse []byte) {
	if !isTagged(p.Data) {
		return p.Data, p.Wire, buf
	}
	buf = append(append(buf[:0], p.Data[:addressBytes]...), p.Data[addressBytes+tagBytes:]...)
	return buf, p.Wire - tagBytes, buf
}
