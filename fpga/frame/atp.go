package frame

import (
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
)

// Identification of ATP packets. The released code uses an EtherType. The paper's header uses an IPv4 protocol, whose
// number is taken from public re-implementations.
const (
	atpEtherType = 0x0700
	atpProtocol  = 0x99
)

// ATPReleased is the frame of the released code, ATPPaper the header shown in the paper.
var (
	ATPReleased = withOffsets(&Format{
		Name: "atp-" + atp.Released, Proto: "inaatp", Title: "ATP p4ml",
		Source: "in-ATP/ATP: common/packet.h, p4src/includes/headers.p4",
		// The IPv4 header is the same in every packet; its length and protocol do not match the packet.
		Carrier:  Carrier{EtherType: atpEtherType, Protocol: 1, FixedLength: 84},
		Messages: []Message{atpReleased("data", program.Data), atpReleased("ack", program.Ack)},
	})
	ATPPaper = withOffsets(&Format{
		Name: "atp-" + atp.Paper, Proto: "inaatppaper", Title: "ATP paper",
		Source:   "Lao et al., NSDI 2021, Fig. 5; the protocol number is of public re-implementations",
		Carrier:  Carrier{EtherType: etherTypeIPv4, Protocol: atpProtocol},
		Messages: []Message{atpPaper("data", program.Data), atpPaper("ack", program.Ack)},
	})
)

// atpLanes describes the gradient in ATP's messages, always 62 words. Floats are in host byte order.
var atpLanes = Lanes{Type: "int32", Most: atp.Lanes, Fixed: true, HostOrder: program.Overflow}

// secondIndex is the distance between the two aggregators that a packet uses.
const secondIndex = 20_000

// atpReleased returns a message in the format of the released code. The upper half of the packet's Value is the key of
// the tensor. The lower half is the tensor's length or, in the acknowledgement of a collided packet, the aggregator
// proposed by the server.
func atpReleased(name string, kind program.Kind) Message {
	length := Field{Name: "elements", Doc: "of the tensor", Bits: 32}
	if kind == program.Ack {
		length = Field{Name: "elements", Doc: "of the tensor; of a collided packet the aggregator that the server proposes", Bits: 32}
	}
	length.Get = func(p *program.Packet) uint64 { return p.Value & 0xffffffff }
	length.Set = func(p *program.Packet, v uint64) { p.Value |= v }
	return Message{
		Name: name, Kind: kind,
		Head: []Field{
			{Name: "bitmap", Doc: "contributors; one bit of a worker's packet", Bits: 32, Form: Hex, Get: bitmapOf,
				Set: setBitmap},
			{Name: "workers", Doc: "how many complete a sum (agtr_time)", Bits: 8, Get: fanOf, Set: setFan},
			{Name: "overflow", Doc: "lanes are floats", Bits: 1, Form: Mark, Flag: program.Overflow},
			{Name: "ps", Doc: "which of several servers; 0 here", Bits: 2},
			{Name: "second_pass", Doc: "the switch's own: the second half of the lanes", Bits: 1},
			{Name: "ecn", Doc: "congestion was met", Bits: 1, Form: Mark, Flag: program.ECN},
			{Name: "resend", Doc: "sent before", Bits: 1, Form: Mark, Flag: program.Resend},
			{Name: "collision", Doc: "the aggregator was another's", Bits: 1, Form: Mark, Flag: program.Collision},
			ackBit(kind),
			{Name: "job", Doc: "from 1 (appID)", Bits: 16, Get: jobOf, Set: setJob},
			{Name: "seq", Doc: "from 1 in every tensor", Bits: 16, Get: segOf, Set: setSeg},
			{Name: "aggregator", Doc: "of the first half of the lanes (agtr)", Bits: 16, Get: indexOf, Set: setIndex},
			{Name: "aggregator2", Doc: "of the second half: 20,000 further", Bits: 16,
				Get: func(p *program.Packet) uint64 { return uint64(uint16(p.Index + secondIndex)) }},
		},
		Lanes: atpLanes,
		Tail: []Field{
			{
				Name: "key", Doc: "of the tensor, in the order of the host's bytes: only hosts read it", Bits: 64,
				Little: true,
				Get:    func(p *program.Packet) uint64 { return p.Value >> 32 },
				Set:    func(p *program.Packet, v uint64) { p.Value |= v << 32 },
			},
			length,
		},
	}
}

// atpPaper returns a message with the header described in the paper. Each level of switches has its own bitmap and
// fan-in. A packet carries both bitmaps, as halves of its Bitmap, and the fan-in of its current level.
func atpPaper(name string, kind program.Kind) Message {
	// of returns a field that belongs to one level. On the other level it is written as 0 and not read.
	of := func(second bool, name, doc string, bits int, get func(*program.Packet) uint64,
		set func(*program.Packet, uint64)) Field {
		mine := func(p *program.Packet) bool { return p.Flags&program.Second != 0 == second }
		f := Field{Name: name, Doc: doc, Bits: bits}
		f.Get = func(p *program.Packet) uint64 {
			if !mine(p) {
				return 0
			}
			return get(p)
		}
		f.Set = func(p *program.Packet, v uint64) {
			if mine(p) {
				set(p, v)
			}
		}
		return f
	}
	return Message{
		Name: name, Kind: kind,
		Head: []Field{
			bitmapAt(0, "bitmap0", "contributors at the workers' rack"),
			bitmapAt(32, "bitmap1", "racks that contributed, at the server's rack"),
			of(false, "fan0", "how many complete a sum at the workers' rack", 5, fanOf, setFan),
			of(true, "fan1", "how many complete a sum at the server's rack", 5, fanOf, setFan),
			{Name: "overflow", Doc: "lanes are floats", Bits: 1, Form: Mark, Flag: program.Overflow},
			{Name: "resend", Doc: "sent before", Bits: 1, Form: Mark, Flag: program.Resend},
			{Name: "collision", Doc: "the aggregator was another's", Bits: 1, Form: Mark, Flag: program.Collision},
			{Name: "ecn", Doc: "congestion was met", Bits: 1, Form: Mark, Flag: program.ECN},
			{Name: "edge", Doc: "on its way to the server's rack", Bits: 1, Form: Mark, Flag: program.Second},
			ackBit(kind),
			{Name: "aggregator", Doc: "that the sender chose", Bits: 16, Get: indexOf, Set: setIndex},
			{Name: "job", Doc: "the upper half of jobIdAndSequenceNumber, which the paper does not part", Bits: 16,
				Get: jobOf, Set: setJob},
			{Name: "seq", Doc: "its lower half", Bits: 16, Get: segOf, Set: setSeg},
		},
		Lanes: atpLanes,
	}
}

// bitmapAt returns the field for one level's bitmap, the half of the packet's Bitmap that begins at bit shift.
func bitmapAt(shift int, name, doc string) Field {
	return Field{
		Name: name, Doc: doc, Bits: 32, Form: Hex,
		Get: func(p *program.Packet) uint64 { return p.Bitmap >> shift & math.MaxUint32 },
		Set: func(p *program.Packet, v uint64) { p.Bitmap |= v << shift },
	}
}

func ackBit(kind program.Kind) Field {
	f := Field{Name: "ack", Doc: "from the server", Bits: 1, Form: Mark, Fixed: true, Selects: true}
	if kind == program.Ack {
		f.Value = 1
	}
	return f
}

func bitmapOf(p *program.Packet) uint64     { return p.Bitmap }
func setBitmap(p *program.Packet, v uint64) { p.Bitmap = v }
func fanOf(p *program.Packet) uint64        { return uint64(p.Fan) }
func setFan(p *program.Packet, v uint64)    { p.Fan = uint16(v) }
func jobOf(p *program.Packet) uint64        { return uint64(p.Job) }
func setJob(p *program.Packet, v uint64)    { p.Job = olaf.ClusterID(v) }
