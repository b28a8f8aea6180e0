package frame

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/p4inc"
)

// p4incPort is the UDP port that identifies P4INC's packets. Switches receive on it. The paper does not specify a port.
const p4incPort = 20302

// P4INC is the format of P4INC-AOI. Its five fields are from the paper. The paper does not specify their widths, the
// headers and the type field, so these are our choice. Congestion is marked in the IPv4 header.
var P4INC = withOffsets(&Format{
	Name: "p4inc", Proto: "p4inc", Title: "P4INC-AOI",
	Source:  "Xie et al., §VI-B, for the five fields; widths, order, port and type are ours",
	Carrier: Carrier{EtherType: etherTypeIPv4, Protocol: protocolUDP, Port: p4incPort},
	Messages: []Message{
		p4incMessage("data", program.Data, 0, "who sends it", p4inc.Lanes),
		p4incMessage("result", program.Result, 1, "nobody in particular: a sum goes to all", p4inc.Lanes),
		p4incMessage("mark", program.Control, 2, "whom it is for", 0),
	},
})

// p4incMessage returns the message with the given type code. All messages except data are sent by the switch.
func p4incMessage(name string, kind program.Kind, code uint64, worker string, lanes int) Message {
	m := Message{
		Name: name, Kind: kind, Reply: kind != program.Data,
		Head: []Field{
			{Name: "service", Doc: "who sums the job; packets of another value are not of this format and are " +
				"passed on", Bits: 8, Fixed: true, Selects: true, Value: 1, Names: []string{"server", "switch"}},
			{Name: "worker", Doc: worker, Bits: 8, Get: func(p *program.Packet) uint64 { return uint64(p.Worker) },
				Set: func(p *program.Packet, v uint64) { p.Worker = olaf.WorkerID(v) }},
			{Name: "job", Doc: "of the job table", Bits: 16, Get: jobOf, Set: setJob},
			{Name: "fragment", Doc: "counted from the job's first gradient on", Bits: 32, Get: segOf, Set: setSeg},
			{Name: "aggregator", Doc: "that the worker chose in its job's segment (the paper's Index)", Bits: 16,
				Get: indexOf, Set: setIndex},
			{Name: "type", Doc: "what the packet is", Bits: 2, Fixed: true, Selects: true, Value: code,
				Names: []string{"gradient", "sum", "mark"}},
			{Name: "unused", Bits: 14},
		},
		Lanes: Lanes{Type: "int32", Most: lanes},
	}
	if kind == program.Control {
		m.Action, m.Lanes = p4inc.Collided, Lanes{}
	}
	return m
}
