package frame

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// OLAF is the table of fields in OLAF's frame, for the page and the dissector. The codec is olaf.EncodeUpdate and
// olaf.ParseFrame; docs/reference/semantics.md is normative.
var OLAF = withOffsets(&Format{
	Name: "olaf", Proto: "olaf", Title: "OLAF", Source: "docs/reference/semantics.md", Elsewhere: true,
	Carrier: Carrier{EtherType: etherTypeIPv4, Protocol: protocolUDP, Port: olaf.UDPPort},
	Messages: []Message{olafMessage("update", program.Data, 1, olaf.MaxLanes),
		olafMessage("ack", program.Ack, 2, olaf.MaxAckLanes)},
})

func olafMessage(name string, kind program.Kind, code uint64, lanes int) Message {
	m := Message{
		Name: name, Kind: kind, Lanes: Lanes{Type: "int32", Most: lanes},
		Head: []Field{
			{Name: "magic", Bits: 8, Form: Hex, Fixed: true, Selects: true, Value: 0x4f},
			{Name: "version", Bits: 2, Fixed: true, Value: 1},
			{Name: "type", Bits: 2, Fixed: true, Selects: true, Value: code, Names: []string{1: "update", 2: "ack"}},
			{Name: "reserved", Bits: 2, Fixed: true},
			{Name: "retransmission", Doc: "sent before", Bits: 1, Form: Mark},
			{Name: "aggregated", Doc: "more than one update inside", Bits: 1, Form: Mark},
			{Name: "cluster", Doc: "workers that may be merged with each other", Bits: 16},
			{Name: "worker", Doc: "the newest contributor", Bits: 16},
			{Name: "seq", Doc: "per worker, of the newest contributor", Bits: 32},
			{Name: "count", Doc: "updates inside", Bits: 16},
			{Name: "generated", Doc: "when the newest update inside was, ns modulo 2^48", Bits: 48},
			{Name: "reward", Doc: "sum, in 1/256", Bits: 32, Form: Signed},
		},
	}
	if kind == program.Ack {
		m.Head = append(m.Head, []Field{
			{Name: "occupancy", Doc: "slots in use", Bits: 24},
			{Name: "active", Doc: "clusters with an update inside", Bits: 16},
			{Name: "slots", Doc: "slots built", Bits: 16},
			{Name: "full", Doc: "no slot is free", Bits: 1, Form: Mark},
			{Name: "unused", Bits: 7},
		}...)
	}
	return m
}
