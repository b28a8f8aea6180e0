package frame

import (
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// baselinePort is the UDP port on which baseline hosts receive gradients. It identifies packets of baselines.
const baselinePort = 20303

// Baseline is the format of hosts that sum without the network, such as a parameter server or a ring of workers.
// Switches forward its frames by address. A frame is as long as iSwitch's, so that the systems differ only in their
// switches. Jobs are identified by addresses.
var Baseline = withOffsets(&Format{
	Name: "baseline", Proto: "inabase", Title: "Baseline",
	Source:  "ours, as long as iSwitch's: parameter server and ring",
	Carrier: Carrier{EtherType: etherTypeIPv4, Protocol: protocolUDP, Port: baselinePort},
	Messages: []Message{
		baselineMessage("gradient", program.Data, 0, "who sends it"),
		baselineMessage("sum", program.Result, 1, "nobody in particular: a server's sum goes to all"),
		{Name: "missing", Kind: program.Control, Action: xagg.Awaits, Past: true, Reply: true, Head: []Field{
			baselineType(2), {Name: "unused", Bits: 30},
			{Name: "workers", Doc: "bitmap of those whose gradients the server lacks", Bits: 64, Form: Hex,
				Get: func(p *program.Packet) uint64 { return p.Bitmap },
				Set: func(p *program.Packet, v uint64) { p.Bitmap = v }},
		}},
		{Name: "left", Kind: program.Control, Action: xagg.Leave, Past: true, Head: []Field{
			baselineType(3), {Name: "unused", Bits: 14},
			{Name: "host", Doc: "who ended: a worker, the server after the workers, then the switch", Bits: 16,
				Get: workerOf, Set: setWorker},
			{Name: "sums", Doc: "number of sums that it had", Bits: 32, Get: valueOf, Set: setValue},
		}},
	},
})

// baselineType returns the field that selects the message.
func baselineType(code uint64) Field {
	return Field{Name: "type", Doc: "what the packet is", Bits: 2, Fixed: true, Selects: true, Value: code,
		Names: []string{"gradient", "sum", "missing", "left"}}
}

// baselineMessage returns the message with the given type code. Sums are sent by the server.
func baselineMessage(name string, kind program.Kind, code uint64, worker string) Message {
	return Message{
		Name: name, Kind: kind, Past: true, Reply: kind == program.Result,
		Head: []Field{
			baselineType(code),
			{Name: "step", Doc: "of a ring's 2 (N − 1), from 0; of a server's gradients and sums 0", Bits: 14,
				Get: indexOf, Set: setIndex},
			{Name: "worker", Doc: worker, Bits: 16, Get: workerOf, Set: setWorker},
			{Name: "last", Doc: "packet of the vector or chunk, if a program's vectors vary in length", Bits: 1,
				Form: Mark, Flag: program.Last},
			{Name: "packet", Doc: "of the vector, of a ring of its chunk", Bits: 31, Get: segOf, Set: setSeg},
		},
		Lanes: Lanes{Type: "float32", Most: iswitch.Lanes},
	}
}
