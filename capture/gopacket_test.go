package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/olafctl/olaf/capture/capturetest"
)

// TestFilesAreThoseOfGopacket checks that the bytes of both formats are those that the library writes for the same
// interfaces and packets.
func TestFilesAreThoseOfGopacket(t *testing.T) {
	from := []Interface{{Name: "left", Comment: "a remark", Filter: "udp", SnapBytes: 96}, {SnapBytes: 9000}}
	var packets []Packet
	for i := range 9 {
		packets = append(packets, Packet{UnixNS: wallNS + int64(i), Interface: i % 2, Data: make([]byte, 60+i), Wire: 70,
			Comment: "remark"[:i%4]})
	}
	for format, other := range map[Format]func(io.Writer, []Interface, []Packet) error{
		PCAP: writeClassicWithGopacket, PCAPNG: writeNgWithGopacket,
	} {
		var got, want bytes.Buffer
		w, err := newWriter(&got, format, 0, from...)
		w.SetDropped(5)
		for i := range packets {
			if err == nil {
				err = w.WritePacket(&packets[i])
			}
		}
		if err != nil || w.Finish() != nil {
			t.Fatal(err)
		}
		if err := other(&want, from, packets); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("format %d: wrote\n%x\nwant the library's\n%x", format, got.Bytes(), want.Bytes())
		}
	}
}

func writeClassicWithGopacket(out io.Writer, from []Interface, packets []Packet) error {
	w := pcapgo.NewWriterNanos(out)
	err := w.WriteFileHeader(uint32(from[0].SnapBytes), layers.LinkTypeEthernet)
	for i := range packets {
		if err == nil {
			err = w.WritePacket(packetInfo(&packets[i]), packets[i].Data)
		}
	}
	return err
}

func writeNgWithGopacket(out io.Writer, from []Interface, packets []Packet) error {
	describe := func(i Interface) pcapgo.NgInterface {
		return pcapgo.NgInterface{Name: i.Name, Comment: i.Comment, Filter: i.Filter,
			LinkType: layers.LinkTypeEthernet, SnapLength: uint32(i.SnapBytes)}
	}
	w, err := pcapgo.NewNgWriterInterface(out, describe(from[0]),
		pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "olafctl"}})
	if err != nil {
		return err
	}
	if _, err := w.AddInterface(describe(from[1])); err != nil {
		return err
	}
	for i := range packets {
		var options pcapgo.NgPacketOptions
		if c := packets[i].Comment; c != "" {
			options.Comments = []string{c}
		}
		if err := w.WritePacketWithOptions(packetInfo(&packets[i]), packets[i].Data, options); err != nil {
			return err
		}
	}
	end := packetInfo(&packets[len(packets)-1]).Timestamp
	for i, s := range []pcapgo.NgInterfaceStatistics{
		{LastUpdate: end, PacketsReceived: 10, PacketsDropped: 5}, {LastUpdate: end, PacketsReceived: 4},
	} {
		if err := w.WriteInterfaceStats(i, s); err != nil {
			return err
		}
	}
	return w.Flush()
}

func packetInfo(p *Packet) gopacket.CaptureInfo {
	return gopacket.CaptureInfo{Timestamp: time.Unix(0, p.UnixNS), CaptureLength: len(p.Data), Length: p.Wire,
		InterfaceIndex: p.Interface}
}

// TestClassicFilesAreReadAsByGopacket checks that pcap files of every form, whole, cut at any byte and with any word
// changed, are read with the packets and the error of the library.
func TestClassicFilesAreReadAsByGopacket(t *testing.T) {
	for _, c := range capturetest.Copies(t, sample(t, PCAP, 3))[:3] {
		for n := 2; n <= len(c.Data); n++ {
			compareWithGopacket(t, c.Name, c.Data[:n])
		}
		for at := 0; at < 56; at += 4 {
			for _, word := range []uint32{0, 1, 0xffff, 300_000, 1 << 31, 0xd4c3b2a1, 0x4d3cb2a1} {
				if at == 28 {
					continue // a packet's microseconds, which overflow in the library
				}
				changed := bytes.Clone(c.Data)
				binary.LittleEndian.PutUint32(changed[at:], word)
				compareWithGopacket(t, c.Name, changed)
			}
		}
	}
}

func compareWithGopacket(t *testing.T, name string, file []byte) {
	t.Helper()
	want, wantErr := pcapgo.NewReader(bytes.NewReader(file))
	got, err := newClassicReader(bytes.NewReader(file))
	for err == nil && wantErr == nil {
		var p rawPacket
		if p, err = got.nextPacket(); err == nil && p.link != linkType(want.LinkType()) {
			t.Fatalf("%s, %d bytes: link type %v, want %v", name, len(file), p.link, want.LinkType())
		}
		var data []byte
		var info gopacket.CaptureInfo
		if data, info, wantErr = want.ReadPacketData(); err != nil || wantErr != nil {
			break
		}
		at, timeErr := p.unixNS()
		if !bytes.Equal(p.data, data) || p.wire != info.Length || timeErr != nil || at != info.Timestamp.UnixNano() {
			t.Fatalf("%s, %d bytes: packet of %d bytes at %d (%v), want %d at %d", name, len(file), len(p.data), at, timeErr,
				len(data), info.Timestamp.UnixNano())
		}
	}
	if wantErr == io.EOF && errors.Is(err, io.ErrUnexpectedEOF) {
		return // the library accepts files that end behind a packet's header
	}
	if (err == nil) != (wantErr == nil) || err != nil && !strings.EqualFold(err.Error(), wantErr.Error()) {
		t.Fatalf("%s, %d bytes: error %v, want %v", name, len(file), err, wantErr)
	}
}

// TestLinkTypeNames checks that every link type has the library's name.
func TestLinkTypeNames(t *testing.T) {
	for i := range 1 << 16 {
		if got, want := linkType(i).String(), layers.LinkType(i).String(); got != want {
			t.Errorf("link type %d: %s, want %s", i, got, want)
		}
	}
}

// TestFilesCutBehindAHeaderAreRefused checks that a pcap file is complete only if the last packet's data follow its
// header.
func TestFilesCutBehindAHeaderAreRefused(t *testing.T) {
	file := sample(t, PCAP, 2)
	packet := (len(file) - classicHeader) / 2
	if _, _, err := decodeAll(file[:classicHeader+packet+classicPacketHead]); !errors.Is(err, ErrCut) {
		t.Errorf("error %v, want %v", err, ErrCut)
	}
}
