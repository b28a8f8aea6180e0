package frame

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// xaggMagic distinguishes packets of XAgg from packets of OLAF, which use the same port.
const xaggMagic = 0x58

// XAgg is the format read by the kernel program fpga/xdp/bpf/xagg.c. Its header is as long as OLAF's, so that lanes are
// aligned. It replaces the header fields of the paper's Fig. 3. A sum is sent as data, both up and down.
var XAgg = withOffsets(xaggFormat())

func xaggFormat() *Format {
	lanes := Lanes{Type: "int32", Most: xaggLanes}
	f := &Format{
		Name: "xagg", Proto: "xagg", Title: "XAgg",
		Source:  "ours, for the fields of Zhang et al., IEEE/ACM ToN 2023, Fig. 3; docs/notes/kernel.md says why",
		Carrier: Carrier{EtherType: etherTypeIPv4, Protocol: protocolUDP, Port: olaf.UDPPort},
		Messages: []Message{
			{Name: "data", Kind: program.Data, Head: xaggData(), Lanes: lanes},
			{Name: "result", Kind: program.Result, Head: xaggData(), Lanes: lanes},
		},
	}
	control := func(name string, action uint8, value string, names bool) {
		f.Messages = append(f.Messages, Message{Name: name, Kind: program.Control, Action: action,
			Head: xaggControl(action, value, names)})
	}
	control("ready", xagg.Ready, "bit/s that the child can send", false)
	control("rate", xagg.Rate, "bit/s that the child may send", false)
	control("finished", xagg.Finished, "", false)
	control("lost", xagg.Lost, "", true)
	control("checked", xagg.Checked, "", false)
	control("ask", xagg.Ask, "the first epoch that the vector was sent in", true)
	control("renew", xagg.Renew, "changes of the tree so far", false)
	control("begin", xagg.Begin, "vectors of the job", false)
	control("first", xagg.First, "the epoch of the job's first vector", false)
	control("still", xagg.Still, "vectors of the job", false)
	control("leave", xagg.Leave, "vectors of the job; 0 where another one took its place", false)
	control("refuse", xagg.Refuse, "why the question has no answer: 2 too many vectors, 3 no epochs left, 4 a "+
		"worker left, 5 too many fragments", false)
	control("awaits", xagg.Awaits, "", true)
	return f
}

// xaggLanes is the maximum number of lanes that the kernel program adds in one run. The published fragment has 256.
const xaggLanes = 704

// Names of the codes of kinds and actions.
var (
	xaggKinds   = []string{1: "data", 2: "control"}
	xaggActions = []string{xagg.Ready: "ready", xagg.Rate: "rate", xagg.Finished: "finished", xagg.Lost: "lost",
		xagg.Checked: "checked",
		xagg.Ask:     "ask", xagg.Renew: "renew", xagg.Begin: "begin", xagg.First: "first", xagg.Still: "still",
		xagg.Leave: "leave", xagg.Refuse: "refuse", xagg.Awaits: "awaits"}
)

// xaggHead returns the first fields of every packet. In a data packet, two flag bits follow them.
func xaggHead(kind uint64) []Field {
	return []Field{
		{Name: "magic", Bits: 8, Form: Hex, Fixed: true, Selects: true, Value: xaggMagic},
		{Name: "version", Bits: 2, Fixed: true, Value: 1},
		{Name: "type", Bits: 2, Fixed: true, Selects: true, Value: kind, Names: xaggKinds},
		{Name: "reserved", Bits: 2, Fixed: true},
	}
}

// xaggWho returns the fields that identify a packet's job, child and fragment.
func xaggWho(fragment string) []Field {
	return []Field{
		{Name: "job", Bits: 16, Doc: "whose model it is", Get: jobOf, Set: setJob},
		{Name: "child", Bits: 16, Doc: "of the sender below its parent, from 0", Get: workerOf, Set: setWorker},
		{Name: "fragment", Bits: 32, Doc: fragment, Get: segOf, Set: setSeg},
	}
}

func xaggData() []Field {
	f := append(xaggHead(1),
		Field{Name: "retransmission", Doc: "sent before", Bits: 1, Form: Mark, Flag: program.Resend},
		Field{Name: "aggregated", Doc: "more than one vector inside", Bits: 1, Form: Mark,
			Get: func(p *program.Packet) uint64 {
				if p.Count > 1 {
					return 1
				}
				return 0
			}})
	f = append(f, xaggWho("of the model, from 0")...)
	return append(f,
		Field{Name: "count", Doc: "vectors inside", Bits: 16, Get: countOf, Set: setCount},
		Field{Name: "generated", Doc: "when the newest vector inside was, ns modulo 2^48", Bits: 48,
			Get: func(p *program.Packet) uint64 { return p.NewestNS % olaf.GenModulus },
			Set: func(p *program.Packet, v uint64) { p.NewestNS = v }},
		Field{Name: "epoch", Doc: "of the model", Bits: 16, Get: roundOf, Set: setRound},
		Field{Name: "unused", Bits: 16})
}

// xaggControl returns the fields of a control packet, which is as long as the header of a data packet. If names is set,
// a bitmap of fragments follows them.
func xaggControl(action uint8, value string, names bool) []Field {
	fragment := map[bool]string{false: "of finished how many were sent; of begin, first, still, leave and refuse " +
		"the number of the question", true: "the first that can be named"}[names]
	f := append(append(xaggHead(2), Field{Name: "unused", Bits: 2}), xaggWho(fragment)...)
	f = append(f,
		Field{Name: "action", Doc: "what is said", Bits: 8, Fixed: true, Selects: true, Value: uint64(action),
			Names: xaggActions},
		Field{Name: "unused", Bits: 8})
	argument := Field{Name: "value", Doc: value, Bits: 48, Get: valueOf, Set: setValue}
	if value == "" {
		argument = Field{Name: "value", Bits: 48}
	}
	f = append(f, argument, Field{Name: "epoch", Doc: "of the model", Bits: 16, Get: roundOf, Set: setRound},
		Field{Name: "unused", Bits: 16})
	if names {
		f = append(f, Field{
			Name: "which", Doc: "a bit a fragment, the lowest the first; of awaits a bit a child whose packet is missing", Bits: 64, Form: Hex,
			Get: func(p *program.Packet) uint64 { return p.Bitmap }, Set: func(p *program.Packet,
				v uint64) {
				p.Bitmap = v
			},
		})
	}
	return f
}

func workerOf(p *program.Packet) uint64     { return uint64(p.Worker) }
func setWorker(p *program.Packet, v uint64) { p.Worker = olaf.WorkerID(v) }
func countOf(p *program.Packet) uint64      { return uint64(p.Count) }
func setCount(p *program.Packet, v uint64)  { p.Count = uint16(v) }
func roundOf(p *program.Packet) uint64      { return uint64(p.Round) }
func setRound(p *program.Packet, v uint64)  { p.Round = uint16(v) }
