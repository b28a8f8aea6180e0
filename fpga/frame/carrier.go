package frame

import (
	"encoding/binary"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Values of Ethernet and IPv4, and offsets from the start of a frame.
const (
	etherTypeIPv4 = 0x0800
	protocolUDP   = 17
	ipVersionIHL  = 0x45
	dontFragment  = 0x4000
	laterFragment = 0x3fff // more fragments, or an offset
	timeToLive    = 64
	ecnBits       = 3

	offEtherType = 12
	offIP        = 14
	offToS       = 15
	offIPLength  = 16
	offFragment  = 20
	offTTL       = 22
	offProtocol  = 23
	offChecksum  = 24
	offSource    = 26
	offTarget    = 30
	offUDP       = 34
	offUDPLength = 38
	offUDPCheck  = 40
)

// put writes the headers of a frame for message m. n is the frame's length without padding.
func (c *Carrier) put(b []byte, n int, to *olaf.Addresses, m *Message, flags program.Flags) {
	clear(b[:c.payload()])
	copy(b, to.DstMAC[:])
	copy(b[6:], to.SrcMAC[:])
	binary.BigEndian.PutUint16(b[offEtherType:], c.EtherType)
	length := uint16(n - ethernetBytes)
	if c.FixedLength != 0 {
		length = c.FixedLength
	}
	b[offIP], b[offToS] = ipVersionIHL, m.ToS
	if flags&program.ECN != 0 {
		b[offToS] |= ecnBits
	}
	binary.BigEndian.PutUint16(b[offIPLength:], length)
	binary.BigEndian.PutUint16(b[offFragment:], dontFragment)
	b[offTTL], b[offProtocol] = timeToLive, c.Protocol
	copy(b[offSource:], to.SrcIP[:])
	copy(b[offTarget:], to.DstIP[:])
	binary.BigEndian.PutUint16(b[offChecksum:], ^onesSum(0, b[offIP:offUDP]))
	if c.Port == 0 {
		return
	}
	from, target := to.SrcPort, c.Port
	if m.Reply {
		from, target = target, from
	}
	binary.BigEndian.PutUint16(b[offUDP:], from)
	binary.BigEndian.PutUint16(b[offUDP+2:], target)
	binary.BigEndian.PutUint16(b[offUDPLength:], uint16(n-ethernetBytes-ipBytes))
}

// check validates the headers of a frame that was wire bytes long and of which b was captured. end is the offset of the
// payload's end. reply is true if the format's port is the source port.
func (f *Format) check(b []byte, wire int) (end int, reply bool, err error) {
	if reply, err = f.checkHeaders(b); err != nil {
		return 0, false, err
	}
	end, err = f.checkLengths(b, wire)
	return end, reply, err
}

// checkHeaders returns an error if the frame does not have this format, and reports whether the format's port is the
// source port.
func (f *Format) checkHeaders(b []byte) (reply bool, err error) {
	c := &f.Carrier
	if len(b) < c.payload() {
		return false, f.fault(FaultShort, len(b), c.payload())
	}
	fragment := int(binary.BigEndian.Uint16(b[offFragment:]) & laterFragment)
	switch kind := binary.BigEndian.Uint16(b[offEtherType:]); {
	case kind != c.EtherType:
		return false, f.fault(FaultEtherType, int(kind), int(c.EtherType))
	case b[offIP] != ipVersionIHL:
		return false, f.fault(FaultIP, int(b[offIP]), ipVersionIHL)
	case b[offProtocol] != c.Protocol:
		return false, f.fault(FaultProtocol, int(b[offProtocol]), int(c.Protocol))
	case fragment != 0:
		return false, f.fault(FaultFragment, fragment, 0)
	case c.Port == 0:
		return false, nil
	}
	source, target := binary.BigEndian.Uint16(b[offUDP:]), binary.BigEndian.Uint16(b[offUDP+2:])
	switch {
	case target&c.mask() == c.Port:
		return false, nil
	case source&c.mask() == c.Port:
		return true, nil
	}
	return false, f.fault(FaultPort, int(target), int(c.Port))
}

// checkLengths validates the lengths and checksums in the headers and returns the offset of the packet's end. Ethernet
// padding may follow it.
func (f *Format) checkLengths(b []byte, wire int) (end int, err error) {
	c := &f.Carrier
	end = wire
	length := int(binary.BigEndian.Uint16(b[offIPLength:]))
	if c.FixedLength == 0 {
		end = ethernetBytes + length
	}
	switch {
	case wire < end:
		return 0, f.fault(FaultCut, wire, end)
	case wire > end && wire > int(Least) || len(b) > wire:
		return 0, f.fault(FaultTrailing, wire, end)
	case end < c.payload():
		return 0, f.fault(FaultMessage, end-ethernetBytes, c.payload()-ethernetBytes)
	case onesSum(0, b[offIP:offUDP]) != 0xffff:
		return 0, f.fault(FaultChecksum, int(binary.BigEndian.Uint16(b[offChecksum:])), 0)
	case c.Port == 0:
		return end, nil
	}
	if udp := int(binary.BigEndian.Uint16(b[offUDPLength:])); udp != length-ipBytes {
		return 0, f.fault(FaultLength, length, udp)
	}
	if check := binary.BigEndian.Uint16(b[offUDPCheck:]); check != 0 && len(b) >= end {
		pseudo := protocolUDP + uint32(end-offUDP) + uint32(onesSum(0, b[offSource:offUDP]))
		if onesSum(pseudo, b[offUDP:end]) != 0xffff {
			return 0, f.fault(FaultChecksum, int(check), 0)
		}
	}
	return end, nil
}

func (f *Format) fault(kind Fault, have, want int) error {
	return &Error{Format: f, Fault: kind, Have: int64(have), Want: int64(want)}
}

// onesSum returns the ones' complement sum of the 16-bit words in b, as used by the Internet checksum.
func onesSum(sum uint32, b []byte) uint16 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}
