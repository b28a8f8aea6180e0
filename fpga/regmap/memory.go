package regmap

import "github.com/olafctl/olaf"

// Words per record of the generator's memories.
const (
	DescriptorWords = 8
	FlowWords       = 16
	TemplateWords   = 2304
)

// UnitLane is the value of every lane in template 0, which is 1.0 in Q16.16 fixed point.
const UnitLane int32 = 1 << 16

// Flags of a descriptor. All except FlagRetransmission inject faults for tests.
const (
	FlagRetransmission uint16 = 1 << iota // sets the header's retransmission bit
	FlagBadChecksum                       // wrong IPv4 checksum: malformed
	FlagBadLength                         // wrong UDP length: malformed
	FlagNotOlaf                           // another UDP port: the queue is bypassed
)

// NotOlafPort is the UDP destination port of frames with FlagNotOlaf, the port of the discard protocol.
const NotOlafPort = 9

// MaxDescriptorTime is the latest cycle at which a descriptor can be sent, 13 days after the start of the run.
const MaxDescriptorTime = 1<<48 - 1

// Descriptor describes a packet to send.
type Descriptor struct {
	Time     uint64 // cycles on the run clock, at most MaxDescriptorTime
	Flow     uint16
	Length   uint16 // L2 bytes; 0 means the frame length of the flow
	Flags    uint16
	Sequence uint32
	Reward   int32 // Q24.8
}

// Put encodes d into the first DescriptorWords words of w. Time is truncated to 48 bits.
func (d *Descriptor) Put(w []uint32) {
	_ = w[DescriptorWords-1]
	w[0] = uint32(d.Time)
	w[1] = uint32(d.Time>>32)&0xFFFF | uint32(d.Flow)<<16
	w[2] = uint32(d.Length) | uint32(d.Flags)<<16
	w[3] = d.Sequence
	w[4] = uint32(d.Reward)
	w[5], w[6], w[7] = 0, 0, 0
}

// Get decodes d from the first words of w.
func (d *Descriptor) Get(w []uint32) {
	_ = w[DescriptorWords-1]
	d.Time = uint64(w[1]&0xFFFF)<<32 | uint64(w[0])
	d.Flow = uint16(w[1] >> 16)
	d.Length = uint16(w[2])
	d.Flags = uint16(w[2] >> 16)
	d.Sequence = w[3]
	d.Reward = int32(w[4])
}

// Flow describes a sender by its addresses, the identity in its headers, and the shape of its frames.
type Flow struct {
	SourceIP, DestIP     [4]byte
	SourceMAC, DestMAC   [6]byte
	SourcePort, DestPort uint16
	Cluster              olaf.ClusterID // id in the header; the tables decide
	Worker               olaf.WorkerID
	Length               uint16 // L2 bytes of a frame whose descriptor has length 0
	Template             uint16
	Enable               bool
	// These fields need the capability wire_formats. Format is 0 for OLAF's frames, or the code of a program. ToS is
	// the type of service in the IPv4 headers. Seg is the position of the lanes in the vector.
	Format uint8
	ToS    uint8
	Seg    uint64
}

// Put encodes f into the first FlowWords words of w.
func (f *Flow) Put(w []uint32) {
	_ = w[FlowWords-1]
	w[0] = be32(f.SourceIP)
	w[1] = be32(f.DestIP)
	w[2] = uint32(f.DestPort) | uint32(f.SourcePort)<<16
	w[3] = uint32(f.Worker) | uint32(f.Cluster)<<16
	w[4] = uint32(f.Length) | uint32(f.Template)<<16
	s, d := mac48(f.SourceMAC), mac48(f.DestMAC)
	w[5] = uint32(s >> 16)
	w[6] = uint32(s)<<16 | uint32(d>>32)
	w[7] = uint32(d)
	clear(w[8:FlowWords])
	w[8] = uint32(f.Format)<<8 | uint32(f.ToS)<<16
	if f.Enable {
		w[8] |= 1
	}
	w[9], w[10] = uint32(f.Seg), uint32(f.Seg>>32)
}

// Get decodes f from the first words of w.
func (f *Flow) Get(w []uint32) {
	_ = w[FlowWords-1]
	f.SourceIP, f.DestIP = splitOctets(w[0]), splitOctets(w[1])
	f.DestPort, f.SourcePort = uint16(w[2]), uint16(w[2]>>16)
	f.Worker, f.Cluster = olaf.WorkerID(w[3]), olaf.ClusterID(w[3]>>16)
	f.Length, f.Template = uint16(w[4]), uint16(w[4]>>16)
	f.SourceMAC = macBytes(uint64(w[5])<<16 | uint64(w[6]>>16))
	f.DestMAC = macBytes(uint64(w[6]&0xFFFF)<<32 | uint64(w[7]))
	f.Enable, f.Format, f.ToS = w[8]&1 != 0, uint8(w[8]>>8), uint8(w[8]>>16)
	f.Seg = uint64(w[10])<<32 | uint64(w[9])
}

func be32(a [4]byte) uint32 {
	return uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
}

func splitOctets(v uint32) [4]byte {
	return [4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

func mac48(a [6]byte) uint64 {
	return uint64(a[0])<<40 | uint64(a[1])<<32 | uint64(a[2])<<24 | uint64(a[3])<<16 | uint64(a[4])<<8 | uint64(a[5])
}

func macBytes(v uint64) [6]byte {
	return [6]byte{byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}
