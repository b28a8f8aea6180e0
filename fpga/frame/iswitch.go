package frame

import (
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
)

// Identification of iSwitch packets. The paper tags them by the ToS byte but gives no values, port or codes
// (docs/papers/iswitch.md).
const (
	iswitchPort    = 20301
	iswitchData    = iswitch.DataToS
	iswitchControl = 0x1c
)

// ISwitch is the paper's frame. ISwitchExact adds round and count in the upper half of Seg. They cannot be told
// apart on the wire.
var (
	ISwitch = withOffsets(iswitchFormat(iswitch.Published, "isw", "iSwitch",
		"Li et al., ISCA 2019, Fig. 7 and Table 2; port, ToS values and codes are ours", paperSeg))
	ISwitchExact = withOffsets(iswitchFormat(iswitch.Exactly, "iswx", "iSwitch isw-x",
		"ours: isw-1 with round and count in the upper half of Seg", exactSeg))
)

// paperSeg returns the 8-byte field described in the paper, which contains the position in the vector.
func paperSeg() []Field {
	return []Field{{Name: "seg", Doc: "place of the packet's lanes in the vector", Bits: 64, Get: segOf, Set: setSeg}}
}

// exactSeg returns the fields that the profile isw-x uses in place of the paper's 8-byte position.
func exactSeg() []Field {
	return []Field{
		{Name: "count", Doc: "vectors inside", Bits: 16, Get: countOf, Set: setCount},
		{Name: "round", Doc: "of the segment's use", Bits: 16, Get: roundOf, Set: setRound},
		{Name: "seg", Doc: "place of the packet's lanes in the vector", Bits: 32, Get: segOf, Set: setSeg},
	}
}

func segOf(p *program.Packet) uint64       { return p.Seg }
func setSeg(p *program.Packet, v uint64)   { p.Seg = v }
func valueOf(p *program.Packet) uint64     { return p.Value }
func setValue(p *program.Packet, v uint64) { p.Value = v }

// iswitchFormat returns the format for a profile of iSwitch. seg returns the fields that encode Seg in this profile.
func iswitchFormat(name, proto, title, source string, seg func() []Field) *Format {
	floats := Lanes{Type: "float32", Most: iswitch.Lanes}
	f := &Format{
		Name: name, Proto: proto, Title: title, Source: source,
		Carrier: Carrier{EtherType: etherTypeIPv4, Protocol: protocolUDP, Port: iswitchPort},
		Messages: []Message{
			{Name: "data", Kind: program.Data, ToS: iswitchData, Head: seg(), Lanes: floats},
			{Name: "result", Kind: program.Result, ToS: iswitchData, Head: seg(), Lanes: floats},
			{Name: "answer", Kind: program.Result, Past: true, Head: seg(), Lanes: floats},
		},
	}
	control := func(name string, action uint8, whole bool, value ...Field) {
		fields := append([]Field{{
			Name: "action", Doc: "what is asked for", Bits: 8, Fixed: true, Selects: true, Value: uint64(action),
			Names: actionNames,
		}}, value...)
		f.Messages = append(f.Messages, Message{Name: name, Kind: program.Control, Action: action, ToS: iswitchControl,
			AllSegments: whole, Head: fields})
	}
	control("join", iswitch.Join, false, joinFields()...)
	control("leave", iswitch.Leave, false)
	control("reset", iswitch.Reset, true)
	control("reset segment", iswitch.Reset, false, seg()...)
	control("set h", iswitch.SetH, false, Field{Name: "h", Doc: "vectors that complete a sum", Bits: 16, Get: valueOf,
		Set: setValue})
	control("fbcast", iswitch.ForceBroadcast, false, seg()...)
	control("help", iswitch.Help, false, seg()...)
	control("halt", iswitch.Halt, false)
	control("ack", iswitch.Acknowledge, false,
		Field{Name: "answers", Doc: "the action that is answered", Bits: 8, Names: actionNames,
			Get: func(p *program.Packet) uint64 { return p.Value >> 8 },
			Set: func(p *program.Packet, v uint64) { p.Value |= v << 8 }},
		Field{Name: "status", Doc: "whether it was done", Bits: 8, Names: []string{"done", "refused"},
			Get: func(p *program.Packet) uint64 { return p.Value & 0xff },
			Set: func(p *program.Packet, v uint64) { p.Value |= v }},
	)
	return f
}

// actionNames contains the name of each action, by its code.
var actionNames = []string{0: "", iswitch.Join: "join", iswitch.Leave: "leave", iswitch.Reset: "reset",
	iswitch.SetH:           "seth",
	iswitch.ForceBroadcast: "fbcast", iswitch.Help: "help", iswitch.Halt: "halt", iswitch.Acknowledge: "ack"}

// joinFields returns the fields in the value of a Join message, which describe the shape of the worker's vectors.
func joinFields() []Field {
	part := func(name, doc string, bits, shift int) Field {
		return Field{
			Name: name, Doc: doc, Bits: bits,
			Get: func(p *program.Packet) uint64 { return p.Value >> shift & (1<<bits - 1) },
			Set: func(p *program.Packet, v uint64) { p.Value |= v << shift },
		}
	}
	return []Field{
		part("floats", "of a vector", 32, 32), part("per_packet", "floats of a full packet", 16, 16),
		part("job", "0 is the paper's only one", 16, 0),
	}
}
