package frame

import (
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
)

// BaselinePort is the UDP port of gradient receivers. It identifies packets of baselines.
const BaselinePort = 20303

// Baseline is the frame used by hosts that sum without the network: a parameter server or a ring of workers.
// Switches forward it by address. It is as long as iSwitch's frame, so that systems differ only in the switches.
// Jobs are identified by addresses.
var Baseline = withOffsets(&Format{
	Name: "baseline", Proto: "inabase", Title: "Baseline",
	Source:  "ours, as long as iSwitch's: parameter server and ring",
	Carrier: Carrier{EtherType: etherTypeIPv4, Protocol: protocolUDP, Port: BaselinePort},
	Messages: []Message{
		baselineMessage("gradient", program.Data, 0, "who sends it"),
		baselineMessage("sum", program.Result, 1, "nobody in particular: a server's sum goes to all"),
	},
})

// baselineMessage returns the message of one type; sums come from the server.
func baselineMessage(name string, kind program.Kind, code uint64, worker string) Message {
	return Message{
		Name: name, Kind: kind, Past: true, Reply: kind == program.Result,
		Head: []Field{
			{Name: "type", Doc: "what the packet is", Bits: 2, Fixed: true, Selects: true, Value: code,
				Names: []string{"gradient", "sum"}},
			{Name: "step", Doc: "of a ring's 2 (N − 1), from 0; of a server's gradients and sums 0", Bits: 14,
				Get: indexOf, Set: setIndex},
			{Name: "worker", Doc: worker, Bits: 16, Get: workerOf, Set: setWorker},
			{Name: "packet", Doc: "of the vector, of a ring of its chunk", Bits: 32, Get: segOf, Set: setSeg},
		},
		Lanes: Lanes{Type: "float32", Most: iswitch.Lanes},
	}
}
