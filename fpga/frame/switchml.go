package frame

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/switchml"
)

// switchMLPort is the first of the 16 UDP ports that the released program accepts; it matches them with a mask.
const switchMLPort = 0xbee0

// SwitchML is the format of the released P4 program and its UDP client. The source port of an answer is the destination
// port of its request.
var SwitchML = withOffsets(&Format{
	Name: "switchml", Proto: "switchml", Title: "SwitchML",
	Source:  "p4lang/p4app-switchML: types.p4, headers.p4, parsers.p4 and the DPDK client",
	Carrier: Carrier{EtherType: etherTypeIPv4, Protocol: protocolUDP, Port: switchMLPort, PortMask: 0xfff0},
	Messages: []Message{
		switchmlMessage("data 256", program.Data, 1, switchml.Lanes256),
		switchmlMessage("data 1024", program.Data, 3, switchml.Lanes1024),
		switchmlMessage("result 256", program.Result, 1, switchml.Lanes256),
		switchmlMessage("result 1024", program.Result, 3, switchml.Lanes1024),
	},
})

// switchmlMessage returns the message with one of the two packet sizes for which the program is built.
func switchmlMessage(name string, kind program.Kind, size uint64, lanes int) Message {
	exponent := func(name string, shift int) Field {
		return Field{
			Name: name, Doc: "exponent of the lanes before they were quantised, signed", Bits: 8, Form: Signed,
			Get: func(p *program.Packet) uint64 { return p.Value >> shift & 0xff },
			Set: func(p *program.Packet, v uint64) { p.Value |= v << shift },
		}
	}
	return Message{
		Name: name, Kind: kind, Reply: kind == program.Result,
		Head: []Field{
			{Name: "type", Doc: "both ways the same", Bits: 4, Fixed: true, Value: 1},
			{Name: "unused", Bits: 1},
			{Name: "size", Doc: "of the lanes: 128 · 2^size bytes, of which 256 and 1024 are built", Bits: 3,
				Fixed: true, Selects: true, Value: size},
			{Name: "job", Doc: "the low bits of its number", Bits: 8,
				Get: func(p *program.Packet) uint64 { return uint64(p.Job) }, Set: func(p *program.Packet,
					v uint64) {
					p.Job = olaf.ClusterID(v)
				}},
			{Name: "packet", Doc: "number of the packet in its vector, in the order of the host's bytes: only " +
				"hosts read it", Bits: 32, Little: true, Get: segOf, Set: setSeg},
			{Name: "set", Doc: "which of the slot's two", Bits: 1, Form: Mark, Flag: program.Set1},
			{Name: "unused", Bits: 1},
			{Name: "slot", Doc: "of the pool", Bits: 14, Get: indexOf, Set: setIndex},
		},
		Lanes: Lanes{Type: "int32", Most: lanes, Fixed: true},
		Tail:  []Field{exponent("exponent0", 8), exponent("exponent1", 0)},
	}
}

func indexOf(p *program.Packet) uint64     { return uint64(p.Index) }
func setIndex(p *program.Packet, v uint64) { p.Index = uint32(v) }
