// Package capturetest converts a capture into other formats, for tests that must succeed for all of them.
package capturetest

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/big"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"
)

// Copy is a capture in another format.
type Copy struct {
	Name string
	Data []byte
	// GrainNS bounds how much earlier the copy's stamps may be than the original's.
	GrainNS int64
}

// fataler contains the methods of testing.TB that this package uses.
type fataler interface {
	Helper()
	Fatal(...any)
}

// packet is a packet in the original capture.
type packet struct {
	ns   int64
	data []byte
	wire int
}

// Copies returns a valid capture in every format that its packets allow: with microseconds, in big-endian byte order,
// and with decimal and binary timestamp resolutions.
func Copies(t fataler, capture []byte) []Copy {
	t.Helper()
	packets := readPackets(t, capture)
	le, be := binary.LittleEndian, binary.BigEndian
	return []Copy{
		{"pcap, µs", classicFile(le, 0xa1b2c3d4, 1000, packets), 1000},
		{"pcap, µs, big-endian", classicFile(be, 0xa1b2c3d4, 1000, packets), 1000},
		{"pcap, ns, big-endian", classicFile(be, 0xa1b23c4d, 1, packets), 0},
		{"pcapng, ns, big-endian", sectionFile(be, 9, packets), 0},
		{"pcapng, 10^-6", sectionFile(le, 6, packets), 1000},
		{"pcapng, 10^-7", sectionFile(le, 7, packets), 100},
		{"pcapng, 10^-12", sectionFile(le, 12, packets), 0},
		{"pcapng, 2^-20", sectionFile(le, 0x80|20, packets), 954},
		{"pcapng, 2^-30", sectionFile(be, 0x80|30, packets), 1},
		{"pcapng, 2^-32", sectionFile(le, 0x80|32, packets), 0},
		{"pcapng, 2^-40", sectionFile(le, 0x80|40, packets), 0},
	}
}

// readPackets returns the packets in a capture that was written by this project.
func readPackets(t fataler, capture []byte) []packet {
	t.Helper()
	var source gopacket.PacketDataSource
	var err error
	if len(capture) > 3 && capture[0] == 0x0a {
		source, err = pcapgo.NewNgReader(bytes.NewReader(capture), pcapgo.DefaultNgReaderOptions)
	} else {
		source, err = pcapgo.NewReader(bytes.NewReader(capture))
	}
	if err != nil {
		t.Fatal(err)
	}
	var packets []packet
	for {
		data, info, err := source.ReadPacketData()
		if err == io.EOF {
			return packets
		}
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, packet{info.Timestamp.UnixNano(), data, info.Length})
	}
}

// order is a byte order with methods for appending numbers.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// classicFile returns a pcap file. The subsecond part of its timestamps is in units of unitNS.
func classicFile(o order, magic uint32, unitNS int64, packets []packet) []byte {
	b := o.AppendUint32(nil, magic)
	b = o.AppendUint16(o.AppendUint16(b, 2), 4)
	b = append(b, appendWords(o, 0, 0, 262144, 1)...)
	for _, p := range packets {
		b = append(b, appendWords(o, uint32(p.ns/1e9), uint32(p.ns%1e9/unitNS), uint32(len(p.data)), uint32(p.wire))...)
		b = append(b, p.data...)
	}
	return b
}

// sectionFile returns a pcapng file with one interface whose option if_tsresol is resolution.
func sectionFile(o order, resolution byte, packets []packet) []byte {
	b := append(SectionHeader(o), InterfaceBlock(o, BlockOption(o, 9, []byte{resolution}))...)
	for _, p := range packets {
		b = append(b, PacketBlock(o, Ticks(p.ns, resolution), p.data, p.wire)...)
	}
	return b
}

// SectionHeader returns the header of a pcapng section.
func SectionHeader(o order) []byte {
	head := appendWords(o, 0x1a2b3c4d)
	head = o.AppendUint16(o.AppendUint16(head, 1), 0)
	return NewBlock(o, 0x0a0d0d0a, append(head, appendWords(o, 0xffffffff, 0xffffffff)...))
}

// InterfaceBlock returns a pcapng block that describes an Ethernet interface.
func InterfaceBlock(o order, options ...[]byte) []byte {
	head := o.AppendUint16(o.AppendUint16(nil, 1), 0)
	return NewBlock(o, 1, bytes.Join(append([][]byte{head, appendWords(o, 262144)}, options...), nil))
}

// PacketBlock returns an enhanced packet block for the first interface.
func PacketBlock(o order, ticks uint64, data []byte, wire int, options ...[]byte) []byte {
	head := appendWords(o, 0, uint32(ticks>>32), uint32(ticks), uint32(len(data)), uint32(wire))
	return NewBlock(o, 6, bytes.Join(append([][]byte{head, padWord(data)}, options...), nil))
}

// BlockOption returns an option of a pcapng block.
func BlockOption(o order, code uint16, value []byte) []byte {
	return append(o.AppendUint16(o.AppendUint16(nil, code), uint16(len(value))), padWord(value)...)
}

// NewBlock returns a pcapng block.
func NewBlock(o order, kind uint32, body []byte) []byte {
	length := uint32(len(body) + 12)
	return bytes.Join([][]byte{appendWords(o, kind, length), body, appendWords(o, length)}, nil)
}

func padWord(b []byte) []byte { return append(bytes.Clone(b), make([]byte, -len(b)&3)...) }

func appendWords(o order, values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = o.AppendUint32(b, v)
	}
	return b
}

// Ticks converts ns to ticks of the given resolution. It rounds down, as capturing programs do.
func Ticks(ns int64, resolution byte) uint64 {
	perSecond := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(resolution)), nil)
	if resolution&0x80 != 0 {
		perSecond.Lsh(big.NewInt(1), uint(resolution&0x7f))
	}
	ticks := perSecond.Mul(perSecond, big.NewInt(ns))
	return ticks.Div(ticks, big.NewInt(1e9)).Uint64()
}
