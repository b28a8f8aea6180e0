package olaf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// Frame errors; match them with errors.Is.
var (
	// ErrNotOLAF is the error for frames that do not claim to be OLAF. The data path forwards them unchanged.
	ErrNotOLAF = errors.New("not an OLAF frame")
	// ErrMalformed is the error for frames that claim to be OLAF but are broken. The data path discards and counts
	// them.
	ErrMalformed = errors.New("malformed OLAF frame")
	// ErrEncode is the error for updates that cannot be written as a frame.
	ErrEncode = errors.New("cannot encode OLAF frame")
)

// FrameFault is a reason why bytes are not an OLAF frame. It is an error that matches ErrNotOLAF or ErrMalformed. It
// can be returned without allocation and is small enough to be an array index.
type FrameFault uint8

// A frame claims to be OLAF if it is an untagged Ethernet frame with an IPv4 packet that has no options and is not a
// later fragment, and if the packet carries UDP to UDPPort with the magic as the first payload byte. VLAN tags and IPv4
// options move the gradients off the 512-bit beat. Such frames therefore bypass the queue instead of being parsed. A
// frame that claims to be OLAF is checked strictly. The smallest OLAF frame has 64 bytes and needs no Ethernet padding,
// so bytes after the IPv4 packet are also a fault.
const (
	_ FrameFault = iota
	FaultShort
	FaultEtherType
	FaultIPVersion
	FaultIPOptions
	FaultProtocol
	FaultLaterFragment
	FaultPort
	FaultMagic
	lastNotOLAF = FaultMagic
)

// Faults of frames that claim to be OLAF.
const (
	FaultFragment FrameFault = lastNotOLAF + 1 + iota
	FaultIPLength
	FaultTrailing
	FaultTruncated
	FaultIPChecksum
	FaultUDPLength
	FaultLanes
	FaultUDPChecksum
	FaultVersion
	FaultType
	FaultReserved
	FaultCount
	// FrameFaults is the length of arrays that are indexed by FrameFault.
	FrameFaults
)

var faultText = [FrameFaults]string{
	FaultShort:         "shorter than Ethernet, IPv4 and UDP headers",
	FaultEtherType:     "EtherType is not IPv4 (a VLAN tag counts as another type)",
	FaultIPVersion:     "IP version is not 4",
	FaultIPOptions:     "IPv4 header length is not 20 bytes",
	FaultProtocol:      "IPv4 protocol is not UDP",
	FaultLaterFragment: "later IPv4 fragment",
	FaultPort:          "UDP destination port is not 20300",
	FaultMagic:         "first payload byte is not the magic 0x4f",
	FaultFragment:      "first IPv4 fragment of several",
	FaultIPLength:      "IPv4 total length does not fit an OLAF header",
	FaultTrailing:      "bytes after the IPv4 packet (a captured FCS?)",
	FaultTruncated:     "frame ends before its IPv4 packet does",
	FaultIPChecksum:    "wrong IPv4 header checksum",
	FaultUDPLength:     "UDP length disagrees with the IPv4 total length",
	FaultLanes:         "payload is not a whole number of lanes, or more than a frame holds",
	FaultUDPChecksum:   "wrong non-zero UDP checksum",
	FaultVersion:       "OLAF version is not 1",
	FaultType:          "OLAF type is neither update nor ACK",
	FaultReserved:      "reserved OLAF bits are not zero",
	FaultCount:         "update count is zero, or the aggregated bit contradicts it",
}

// Error describes the fault, beginning with the text of ErrNotOLAF or ErrMalformed.
func (f FrameFault) Error() string {
	if f == 0 || f >= FrameFaults {
		return fmt.Sprintf("frame fault %d", uint8(f))
	}
	return f.kind().Error() + ": " + faultText[f]
}

// Is reports whether target is the error that the fault belongs to, ErrNotOLAF or ErrMalformed.
func (f FrameFault) Is(target error) bool { return f > 0 && f < FrameFaults && target == f.kind() }

func (f FrameFault) kind() error {
	if f <= lastNotOLAF {
		return ErrNotOLAF
	}
	return ErrMalformed
}

// FrameKind is the kind of an OLAF frame, as given by the type field of its header.
type FrameKind uint8

// Frame kinds of version 1.
const (
	KindUpdate FrameKind = 1
	KindAck    FrameKind = 2
)

// Offsets from the start of the frame; all are fixed.
const (
	offSrcMAC      = 6
	offEtherType   = 12
	offIP          = 14
	offIPLength    = 16
	offIPFragment  = 20
	offIPTTL       = 22
	offIPProtocol  = 23
	offIPChecksum  = 24
	offSrcIP       = 26
	offDstIP       = 30
	offUDP         = 34
	offDstPort     = 36
	offUDPLength   = 38
	offUDPChecksum = 40
	offMagic       = 42
	offBits        = 43
	offCluster     = 44
	offWorker      = 46
	offSeq         = 48
	offCount       = 52
	offGen         = 54
	offReward      = 60
)

const (
	ethernetBytes = 14
	ipBytes       = 20
	udpBytes      = 8
	olafBytes     = 22

	etherTypeIPv4 = 0x0800
	ipVersionIHL  = 0x45
	ipDontFrag    = 0x4000
	ipMoreFrag    = 0x2000
	ipFragOffset  = 0x1fff
	ipTTL         = 64
	protocolUDP   = 17

	olafMagic   = 0x4f
	olafVersion = 1

	bitAggregated = 1 << 0
	bitRetrans    = 1 << 1
	bitsReserved  = 3 << 2
	bitsKind      = 3 << 4
	shiftKind     = 4
	shiftVersion  = 6
)

// Addresses contains the addresses and ports in a frame's outer headers. The UDP destination port is always UDPPort.
type Addresses struct {
	SrcMAC, DstMAC [6]byte
	SrcIP, DstIP   [4]byte
	SrcPort        uint16
}

// Frame is a checked view of a frame's bytes. It does not copy them, so it is valid only until they change. Methods of
// the zero Frame panic.
type Frame struct{ b []byte }

// ParseFrame checks b, a complete Ethernet frame without FCS, and returns a view of it. The error is a FrameFault,
// which matches ErrNotOLAF or ErrMalformed. ParseFrame does not allocate.
func ParseFrame(b []byte) (Frame, error) { return ParseTruncated(b, len(b)) }

// ParseTruncated checks b, the beginning of a frame that was wire bytes long, as captured with a short snapshot length.
// At least the 64 bytes of headers must be present (72 bytes for an ACK). Missing lanes cannot be read, and a UDP
// checksum that covers them is not verified.
func ParseTruncated(b []byte, wire int) (Frame, error) {
	if f := claim(b); f != 0 {
		return Frame{}, f
	}
	if f := checkOuter(b, wire); f != 0 {
		return Frame{}, f
	}
	if f := checkHeader(b); f != 0 {
		return Frame{}, f
	}
	return Frame{b}, nil
}

// claim returns the reason why b does not claim to be OLAF, or 0 if it does.
func claim(b []byte) FrameFault {
	switch {
	case len(b) < ethernetBytes:
		return FaultShort
	case binary.BigEndian.Uint16(b[offEtherType:]) != etherTypeIPv4:
		return FaultEtherType
	case len(b) <= offMagic:
		return FaultShort
	case b[offIP]>>4 != 4:
		return FaultIPVersion
	case b[offIP] != ipVersionIHL:
		return FaultIPOptions
	case b[offIPProtocol] != protocolUDP:
		return FaultProtocol
	case binary.BigEndian.Uint16(b[offIPFragment:])&ipFragOffset != 0:
		return FaultLaterFragment
	case binary.BigEndian.Uint16(b[offDstPort:]) != UDPPort:
		return FaultPort
	case b[offMagic] != olafMagic:
		return FaultMagic
	}
	return 0
}

// checkOuter checks the lengths and checksums in the IPv4 and UDP headers.
func checkOuter(b []byte, wire int) FrameFault {
	ipLength := int(binary.BigEndian.Uint16(b[offIPLength:]))
	udpLength := int(binary.BigEndian.Uint16(b[offUDPLength:]))
	switch {
	case len(b) < HeaderBytes || wire < ethernetBytes+ipLength:
		return FaultTruncated
	case ipLength < HeaderBytes-ethernetBytes:
		return FaultIPLength
	case wire > ethernetBytes+ipLength || len(b) > wire:
		return FaultTrailing
	case fold(sum(0, b[offIP:offUDP])) != 0xffff:
		return FaultIPChecksum
	case binary.BigEndian.Uint16(b[offIPFragment:])&ipMoreFrag != 0:
		return FaultFragment
	case udpLength != ipLength-ipBytes:
		return FaultUDPLength
	case binary.BigEndian.Uint16(b[offUDPChecksum:]) != 0 && len(b) == wire && !udpChecksumFits(b):
		return FaultUDPChecksum
	}
	return 0
}

// checkHeader checks the OLAF header of a frame whose outer headers are valid.
func checkHeader(b []byte) FrameFault {
	flags, count := b[offBits], binary.BigEndian.Uint16(b[offCount:])
	kind := FrameKind(flags & bitsKind >> shiftKind)
	payload := int(binary.BigEndian.Uint16(b[offUDPLength:])) - udpBytes - olafBytes
	if kind == KindAck {
		if payload < AckStatusBytes {
			return FaultLanes
		}
		if len(b) < HeaderBytes+AckStatusBytes {
			return FaultTruncated
		}
	}
	switch {
	case flags>>shiftVersion != olafVersion:
		return FaultVersion
	case kind != KindUpdate && kind != KindAck:
		return FaultType
	case flags&bitsReserved != 0:
		return FaultReserved
	case kind == KindUpdate && count == 0, flags&bitAggregated != 0 != (count > 1):
		return FaultCount
	case payload%LaneBytes != 0 || payload > MaxLanes*LaneBytes:
		return FaultLanes
	}
	return 0
}

// PayloadOffset is the offset of the UDP payload in a frame. A UDP socket sends and receives a frame from there on.
const PayloadOffset = offMagic

// ParsePayload parses a frame received from a UDP socket. The payload must be in b from PayloadOffset on; ParsePayload
// writes matching headers before it.
func ParsePayload(b []byte) (Frame, error) {
	if len(b) < HeaderBytes || len(b) > int(MaxFrame) {
		return Frame{}, FaultShort
	}
	putOuter(b, &Addresses{})
	return ParseFrame(b)
}

// Kind returns the frame's kind, update or ACK.
func (f Frame) Kind() FrameKind { return FrameKind(f.b[offBits] & bitsKind >> shiftKind) }

// Size returns the frame's length on the wire, without FCS.
func (f Frame) Size() Size {
	return Size(ethernetBytes) + Size(binary.BigEndian.Uint16(f.b[offIPLength:]))
}

// Cluster returns the cluster id in the header, as claimed by the sender.
func (f Frame) Cluster() ClusterID { return ClusterID(binary.BigEndian.Uint16(f.b[offCluster:])) }

// Worker returns the worker id in the header, as claimed by the sender.
func (f Frame) Worker() WorkerID { return WorkerID(binary.BigEndian.Uint16(f.b[offWorker:])) }

// Update returns the contents of the OLAF header. For an ACK, these are the fields of the update that it acknowledges,
// but Lanes is the number of lanes in the ACK.
func (f Frame) Update() Update {
	b := f.b[:HeaderBytes]
	u := Update{
		GenNS:   uint64(binary.BigEndian.Uint16(b[offGen:]))<<32 | uint64(binary.BigEndian.Uint32(b[offGen+2:])),
		Seq:     binary.BigEndian.Uint32(b[offSeq:]),
		Reward:  int32(binary.BigEndian.Uint32(b[offReward:])),
		Cluster: ClusterID(binary.BigEndian.Uint16(b[offCluster:])),
		Worker:  WorkerID(binary.BigEndian.Uint16(b[offWorker:])),
		Count:   binary.BigEndian.Uint16(b[offCount:]),
		Lanes:   uint16(f.LaneCount()),
	}
	if b[offBits]&bitRetrans != 0 {
		u.Flags = Retransmission
	}
	return u
}

// Addresses returns the addresses and ports in the outer headers.
func (f Frame) Addresses() Addresses {
	b := f.b[:HeaderBytes]
	return Addresses{
		DstMAC:  [6]byte(b[0:]),
		SrcMAC:  [6]byte(b[offSrcMAC:]),
		SrcIP:   [4]byte(b[offSrcIP:]),
		DstIP:   [4]byte(b[offDstIP:]),
		SrcPort: binary.BigEndian.Uint16(b[offUDP:]),
	}
}

// LaneCount returns the number of gradients that the frame has on the wire, even if it was captured truncated.
func (f Frame) LaneCount() int { return int(f.Size()-Size(f.laneOffset())) / LaneBytes }

// Lanes copies gradients to dst and returns how many it copied. There are fewer than LaneCount if dst is shorter or the
// frame is truncated.
func (f Frame) Lanes(dst []int32) int {
	b := f.b[f.laneOffset():]
	n := min(len(dst), len(b)/LaneBytes)
	dst, b = dst[:n], b[:n*LaneBytes]
	for len(dst) >= 4 && len(b) >= 16 { // two loads and four lanes per iteration
		v, w := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
		dst[0], dst[1] = int32(v>>32), int32(v)
		dst[2], dst[3] = int32(w>>32), int32(w)
		dst, b = dst[4:], b[16:]
	}
	for i := range dst {
		dst[i] = int32(binary.BigEndian.Uint32(b[LaneBytes*i:]))
	}
	return n
}

func (f Frame) laneOffset() int {
	if f.Kind() == KindAck {
		return HeaderBytes + AckStatusBytes
	}
	return HeaderBytes
}

// QueueStatus describes the fill level of a queue. ACKs report it to workers.
type QueueStatus struct {
	Occupancy      uint32 // slots in use; saturates at 24 bits on the wire
	ActiveClusters uint16 // clusters with an update in the queue
	Slots          uint16 // slots built; 65,536 is sent as 65,535
	Full           bool   // no slot is free: the binary state of paper §5, sent in addition to the numbers
}

const (
	maxOccupancy = 1<<24 - 1 // maximum of 24 bits
	statusFull   = 1 << 7    // bit in the last byte of a status
)

// Busier reports whether s has more active clusters per slot than o. If so, a hop overwrites o in a passing ACK. The
// parameter server sends a zero status, which is always overwritten.
func (s QueueStatus) Busier(o QueueStatus) bool {
	if o.Slots == 0 {
		return true
	}
	return uint64(s.ActiveClusters)*uint64(o.Slots) > uint64(o.ActiveClusters)*uint64(s.Slots)
}

// QueueStatus returns the queue status in an ACK, or the zero status for an update.
func (f Frame) QueueStatus() QueueStatus {
	if f.Kind() != KindAck {
		return QueueStatus{}
	}
	v := binary.BigEndian.Uint64(f.b[HeaderBytes:])
	return QueueStatus{Occupancy: uint32(v >> 40), ActiveClusters: uint16(v >> 24), Slots: uint16(v >> 8), Full: v&statusFull != 0}
}

// SetQueueStatus writes the queue status of an ACK and clears the UDP checksum. For an update it does nothing.
func (f Frame) SetQueueStatus(s QueueStatus) {
	if f.Kind() != KindAck {
		return
	}
	putStatus(f.b[HeaderBytes:], s)
	binary.BigEndian.PutUint16(f.b[offUDPChecksum:], 0)
}

func putStatus(b []byte, s QueueStatus) {
	v := uint64(min(s.Occupancy, maxOccupancy))<<40 | uint64(s.ActiveClusters)<<24 | uint64(s.Slots)<<8
	if s.Full {
		v |= statusFull
	}
	binary.BigEndian.PutUint64(b, v)
}

// AckSize returns the length of an ACK frame with the given number of lanes.
func AckSize(lanes int) Size { return FrameSize(lanes) + AckStatusBytes }

// EncodeUpdate writes the frame for u and its gradients to the start of dst and returns its length. lanes must have
// u.Lanes values, or be nil to write zeros. GenNS is written modulo 2^48, Retransmission is the only flag that is
// written, and the UDP checksum is 0. Errors match ErrEncode; if dst is too short, the error also matches
// io.ErrShortBuffer.
func EncodeUpdate(dst []byte, addr *Addresses, u *Update, lanes []int32) (int, error) {
	size := int(u.Size())
	if u.Count == 0 {
		return 0, fmt.Errorf("%w: an update with count 0", ErrEncode)
	}
	if err := checkEncode(dst, size, u, lanes, MaxLanes); err != nil {
		return 0, err
	}
	dst = dst[:size]
	putHeaders(dst, addr, u, KindUpdate)
	putLanes(dst[HeaderBytes:], lanes)
	return size, nil
}

// EncodeAck writes an ACK frame to the start of dst and returns its length. The header identifies the acknowledged
// update; the status and u.Lanes lanes follow, at most MaxAckLanes. The same rules apply as for EncodeUpdate, except
// that Count may be 0.
func EncodeAck(dst []byte, addr *Addresses, u *Update, status QueueStatus, lanes []int32) (int, error) {
	size := int(AckSize(int(u.Lanes)))
	if err := checkEncode(dst, size, u, lanes, MaxAckLanes); err != nil {
		return 0, err
	}
	dst = dst[:size]
	putHeaders(dst, addr, u, KindAck)
	putStatus(dst[HeaderBytes:], status)
	putLanes(dst[HeaderBytes+AckStatusBytes:], lanes)
	return size, nil
}

func checkEncode(dst []byte, size int, u *Update, lanes []int32, most int) error {
	switch {
	case int(u.Lanes) > most:
		return fmt.Errorf("%w: %d lanes, at most %d fit", ErrEncode, u.Lanes, most)
	case lanes != nil && len(lanes) != int(u.Lanes):
		return fmt.Errorf("%w: the update has %d lanes, %d were given", ErrEncode, u.Lanes, len(lanes))
	case len(dst) < size:
		return fmt.Errorf("%w: %d bytes into a buffer of %d: %w", ErrEncode, size, len(dst), io.ErrShortBuffer)
	}
	return nil
}

// putHeaders writes the first 64 bytes of a frame, up to the OLAF header's end, into dst. The frame's length is
// len(dst).
func putHeaders(dst []byte, addr *Addresses, u *Update, kind FrameKind) {
	putOuter(dst, addr)
	b := dst[:HeaderBytes]
	flags := byte(olafVersion<<shiftVersion | kind<<shiftKind)
	if u.Flags&Retransmission != 0 {
		flags |= bitRetrans
	}
	if u.Count > 1 {
		flags |= bitAggregated
	}
	b[offMagic], b[offBits] = olafMagic, flags
	binary.BigEndian.PutUint16(b[offCluster:], uint16(u.Cluster))
	binary.BigEndian.PutUint16(b[offWorker:], uint16(u.Worker))
	binary.BigEndian.PutUint32(b[offSeq:], u.Seq)
	binary.BigEndian.PutUint16(b[offCount:], u.Count)
	binary.BigEndian.PutUint16(b[offGen:], uint16(u.GenNS>>32))
	binary.BigEndian.PutUint32(b[offGen+2:], uint32(u.GenNS))
	binary.BigEndian.PutUint32(b[offReward:], uint32(u.Reward))
}

// putOuter writes the Ethernet, IPv4 and UDP headers of a frame into dst. The frame's length is len(dst).
func putOuter(dst []byte, addr *Addresses) {
	b := dst[:PayloadOffset]
	ipLength := uint16(len(dst) - ethernetBytes)
	copy(b[0:6], addr.DstMAC[:])
	copy(b[offSrcMAC:], addr.SrcMAC[:])
	binary.BigEndian.PutUint16(b[offEtherType:], etherTypeIPv4)

	src, dstIP := binary.BigEndian.Uint32(addr.SrcIP[:]), binary.BigEndian.Uint32(addr.DstIP[:])
	binary.BigEndian.PutUint32(b[offIP:], ipVersionIHL<<24|uint32(ipLength))
	binary.BigEndian.PutUint32(b[offIP+4:], ipDontFrag)
	const ttlProtocol = ipTTL<<24 | protocolUDP<<16
	check := ^fold(ipVersionIHL<<8 + ipDontFrag + ttlProtocol>>16 + uint64(ipLength) + uint64(src) + uint64(dstIP))
	binary.BigEndian.PutUint32(b[offIPTTL:], ttlProtocol|uint32(check))
	binary.BigEndian.PutUint32(b[offSrcIP:], src)
	binary.BigEndian.PutUint32(b[offDstIP:], dstIP)

	binary.BigEndian.PutUint32(b[offUDP:], uint32(addr.SrcPort)<<16|UDPPort)
	binary.BigEndian.PutUint32(b[offUDPLength:], uint32(ipLength-ipBytes)<<16)
}

func putLanes(b []byte, lanes []int32) {
	if lanes == nil {
		clear(b)
		return
	}
	for len(lanes) >= 4 && len(b) >= 16 {
		binary.BigEndian.PutUint64(b, uint64(uint32(lanes[0]))<<32|uint64(uint32(lanes[1])))
		binary.BigEndian.PutUint64(b[8:], uint64(uint32(lanes[2]))<<32|uint64(uint32(lanes[3])))
		lanes, b = lanes[4:], b[16:]
	}
	for i, v := range lanes {
		binary.BigEndian.PutUint32(b[LaneBytes*i:], uint32(v))
	}
}

// udpChecksumFits reports whether the UDP checksum of a frame is correct. The frame's lengths must be valid.
func udpChecksumFits(b []byte) bool {
	length := uint64(binary.BigEndian.Uint16(b[offUDPLength:]))
	pseudo := sum(protocolUDP+length, b[offSrcIP:offUDP])
	return fold(sum(pseudo, b[offUDP:])) == 0xffff
}

// sum adds the big-endian words of b to s, a 64-bit ones' complement sum. An odd last byte is padded with zero.
func sum(s uint64, b []byte) uint64 {
	var carry uint64
	for len(b) >= 32 { // four at a time: Go keeps the carry flag only within one block
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b), 0)
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b[8:]), carry)
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b[16:]), carry)
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b[24:]), carry)
		s, carry = bits.Add64(s, 0, carry)
		s += carry
		b = b[32:]
	}
	carry = 0
	for len(b) >= 8 {
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	var rest [8]byte
	copy(rest[:], b)
	s, carry = bits.Add64(s, binary.BigEndian.Uint64(rest[:]), carry)
	s, carry = bits.Add64(s, 0, carry)
	return s + carry
}

// fold reduces a 64-bit ones' complement sum to 16 bits.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s&0xffff)
}
