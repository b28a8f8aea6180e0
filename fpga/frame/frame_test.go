package frame

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/internal/test/peer"
)

var update = flag.Bool("update", false, "write goldens and docs/reference/wire.md")

var home = olaf.Addresses{
	SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2}, SrcIP: [4]byte{10, 0, 0, 1}, DstIP: [4]byte{10, 0, 1, 1},
	SrcPort: 4000,
}

func encoded(t testing.TB, f *Format, to Outer, p *program.Packet, lanes []uint32) []byte {
	t.Helper()
	b := make([]byte, olaf.MaxFrame)
	n, err := f.Encode(b, &to, p, lanes)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func read(v *View) (p program.Packet) {
	v.Packet(&p)
	return p
}

// TestGolden checks the bytes that are printed in the sources or follow from their text. "…" stands for the lanes.
func TestGolden(t *testing.T) {
	released := &program.Packet{
		Kind: program.Data, Bitmap: 1 << 2, Fan: 4, Job: 1, Seg: 5, Index: 1234, Flags: program.Resend, Value: 7<<32 | 62, Lanes: 62,
	}
	for name, c := range map[string]struct {
		f    *Format
		to   Outer
		p    *program.Packet
		from int
		want string
	}{
		// Made by compiling the released packet.h: host 2, 4 workers, app 1, seq 5, agtr 1234, a repeat, key 7, 62 elements.
		"ATP p4ml": {ATPReleased, Outer{}, released, 34, "000000040404000100050 4d252f2 … 07000000000000000000003e"},
		// The released template of the outer headers.
		"ATP p4ml, in front": {ATPReleased, Outer{Addresses: olaf.Addresses{SrcIP: [4]byte{13, 7, 56, 102},
			DstIP: [4]byte{13, 7, 56, 127}}}, released, 12,
			"0700 45000054000040004001afb6 0d073866 0d07387f 00000004 0404 0001 0005 04d2 52f2 … 0700000000000000 0000003e"},
		"ATP paper, first level": {ATPPaper, Outer{},
			&program.Packet{Kind: program.Data, Bitmap: 2, Fan: 3, Job: 1, Seg: 5, Index: 7, Lanes: 62}, 34,
			"00000002 00000000 1800 0007 0001 0005 …"},
		"ATP paper, second level": {ATPPaper, Outer{},
			&program.Packet{Kind: program.Data, Bitmap: 2<<32 | 5, Fan: 3, Flags: program.Second, Job: 1, Seg: 5, Index: 7, Lanes: 62},
			34, "00000005 00000002 00c2 0007 0001 0005 …"},
		"ATP paper, answer": {ATPPaper, Outer{},
			&program.Packet{Kind: program.Ack, Flags: program.Overflow | program.Resend | program.Collision | program.ECN, Lanes: 62},
			34, "00000000 00000000 003d 0000 0000 0000 …"},
		"SwitchML 256": {SwitchML, Outer{Addresses: home},
			&program.Packet{Kind: program.Data, Job: 3, Seg: 0x01020304, Index: 5, Flags: program.Set1, Value: 0x81ff, Lanes: 64}, 34,
			"0fa0 bee0 0112 0000 11 03 04030201 8005 … 81ff"},
		"SwitchML 1024, answer": {SwitchML, Outer{Addresses: home},
			&program.Packet{Kind: program.Result, Seg: 1, Index: 5, Lanes: 256}, 34, "bee0 0fa0 0412 0000 13 00 01000000 0005 … 0000"},
		"P4INC data": {P4INC, Outer{Addresses: home},
			&program.Packet{Kind: program.Data, Job: 3, Worker: 2, Seg: 0x01020304, Index: 5, Lanes: 64}, 34,
			"0fa0 4f4e 0114 0000 01 02 0003 01020304 0005 0000 …"},
		"P4INC result": {P4INC, Outer{Addresses: home},
			&program.Packet{Kind: program.Result, Job: 3, Seg: 7, Index: 5, Lanes: 1}, 34,
			"4f4e 0fa0 0018 0000 01 00 0003 00000007 0005 4000 …"},
		"P4INC mark": {P4INC, Outer{Addresses: home},
			&program.Packet{Kind: program.Control, Action: p4inc.Collided, Flags: program.ECN, Job: 3, Worker: 2, Seg: 7, Index: 5}, 14,
			"4503 0028 0000 4000 4011 25c1 0a000001 0a000101 4f4e 0fa0 0014 0000 01 02 0003 00000007 0005 8000"},
		"iSwitch data": {ISwitch, Outer{Addresses: home}, &program.Packet{Kind: program.Data, Seg: 4593, Lanes: 2}, 14,
			"450c 002c 0000 4000 4011 25b4 0a000001 0a000101 0fa0 4f4d 0018 0000 00000000000011f1 …"},
		"isw-x data": {ISwitchExact, Outer{Addresses: home},
			&program.Packet{Kind: program.Data, Seg: 4593, Round: 2, Count: 3, Lanes: 2}, 42, "0003 0002 000011f1 …"},
		"iSwitch answer": {ISwitch, Outer{Addresses: home, Past: true},
			&program.Packet{Kind: program.Result, Seg: 1, Lanes: 2}, 14, "4500 002c"},
		"iSwitch join": {ISwitch, Outer{Addresses: home},
			&program.Packet{Kind: program.Control, Action: iswitch.Join, Value: 1_681_062<<32 | 366<<16 | 2}, 42,
			"01 0019a6a6 016e 0002"},
		"iSwitch set h": {ISwitch, Outer{Addresses: home},
			&program.Packet{Kind: program.Control, Action: iswitch.SetH, Value: 3}, 38, "000b 0000 04 0003"},
		"iSwitch reset": {ISwitch, Outer{Addresses: home},
			&program.Packet{Kind: program.Control, Action: iswitch.Reset, Seg: everySegment}, 38, "0009 0000 03"},
		"XAgg data": {XAgg, Outer{Addresses: home},
			&program.Packet{Kind: program.Data, Job: 7, Worker: 3, Seg: 0x10002, Round: 9, Count: 2, Lanes: 2,
				Trace: program.Trace{NewestNS: 0x010203040506}}, 34,
			"0fa0 4f4c 0026 0000 58 51 0007 0003 00010002 0002 010203040506 0009 0000 …"},
		"XAgg ask": {XAgg, Outer{Addresses: home},
			&program.Packet{Kind: program.Control, Action: xagg.Ask, Job: 7, Worker: 3, Seg: 64, Round: 9, Value: 8, Bitmap: 5}, 38,
			"0026 0000 58 60 0007 0003 00000040 06 00 000000000008 0009 0000 0000000000000005"},
		"XAgg begin": {XAgg, Outer{Addresses: home},
			&program.Packet{Kind: program.Control, Action: xagg.Begin, Job: 7, Worker: 3, Seg: 0xa0b0c0d0, Value: 20}, 38,
			"001e 0000 58 60 0007 0003 a0b0c0d0 08 00 000000000014 0000 0000"},
		"baseline gradient": {Baseline, Outer{Addresses: home, Past: true},
			&program.Packet{Kind: program.Data, Index: 5, Worker: 3, Seg: 7, Lanes: 2}, 34, "0fa0 4f4f 0018 0000 0005 0003 00000007 …"},
		"baseline sum": {Baseline, Outer{Addresses: home, Past: true}, &program.Packet{Kind: program.Result, Seg: 7, Lanes: 2}, 34,
			"4f4f 0fa0 0018 0000 4000 0000 00000007 …"},
		"iSwitch ack": {ISwitch, Outer{Addresses: home},
			&program.Packet{Kind: program.Control, Action: iswitch.Acknowledge, Value: uint64(iswitch.SetH)<<8 | iswitch.Refused}, 38,
			"000b 0000 08 04 01"},
	} {
		t.Run(name, func(t *testing.T) {
			have := encoded(t, c.f, c.to, c.p, nil)[c.from:]
			head, tail, lanes := strings.Cut(strings.ReplaceAll(c.want, " ", ""), "…")
			if want := bytesOf(t, head); !strings.HasPrefix(string(have), string(want)) {
				t.Errorf("begins % x, want % x", have[:len(want)], want)
			}
			if want := bytesOf(t, tail); lanes && !strings.HasSuffix(string(have), string(want)) {
				t.Errorf("ends % x, want % x", have[len(have)-len(want):], want)
			}
		})
	}
}

func bytesOf(t *testing.T, text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		f     *Format
		lanes int
		want  olaf.Size
	}{
		{ISwitch, iswitch.Lanes, 1514}, {ISwitch, 0, Least}, {ISwitchExact, 3, 62}, {SwitchML, 64, 308}, {SwitchML, 1, 308},
		{SwitchML, 65, 1076},
		{ATPReleased, 62, 308}, {ATPReleased, 5, 308}, {ATPPaper, 62, 298}, {P4INC, p4inc.Lanes, 310}, {P4INC, 1, Least},
		{OLAF, 48, 256},
		{XAgg, 256, 1088}, {XAgg, 0, 64}, {Baseline, iswitch.Lanes, 1514}, {Baseline, 1, Least},
	} {
		if have := c.f.Size(c.lanes); have != c.want {
			t.Errorf("%s with %d lanes is %s, want %s", c.f.Name, c.lanes, have, c.want)
		}
	}
}

// TestRoundTrip checks that any packet is decoded as it was encoded, for every message and every field.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(allFormats()).Draw(t, "format")
		m := rapid.SampledFrom(f.Messages).Draw(t, "message")
		p := program.Packet{Kind: m.Kind, Action: m.Action}
		if m.AllSegments {
			p.Seg = everySegment
		}
		for _, fields := range [][]Field{m.Head, m.Tail} {
			for _, flags := range []bool{true, false} {
				for i := range fields {
					if x := &fields[i]; x.Flag != 0 && flags && rapid.Bool().Draw(t, x.Name) {
						p.Flags |= x.Flag
					} else if x.Set != nil && !flags {
						x.Set(&p, rapid.Uint64Max(1<<x.Bits-1).Draw(t, x.Name))
					}
				}
			}
		}
		p.Lanes = uint16(rapid.IntRange(0, m.Lanes.Most).Draw(t, "lanes"))
		if m.Lanes.Fixed {
			p.Lanes = uint16(m.Lanes.Most)
		}
		lanes := rapid.SliceOfN(rapid.Uint32(), int(p.Lanes), int(p.Lanes)).Draw(t, "values")
		to := Outer{Addresses: home, Past: m.Past}
		b := make([]byte, olaf.MaxFrame)
		n, err := f.Encode(b, &to, &p, lanes)
		if err != nil {
			t.Fatal(err)
		}
		v, err := f.Decode(b[:n])
		if err != nil {
			t.Fatal(err)
		}
		have, want := read(&v), p
		if v.Message.Kind == program.Data && p.Kind == program.Result {
			want.Kind = program.Data // the frame alone does not distinguish results from data
		}
		if have != want {
			t.Fatalf("%s %s: %+v came back as %+v", f.Name, m.Name, want, have)
		}
		back := make([]uint32, p.Lanes)
		if v.Lanes(back); fmt.Sprint(back) != fmt.Sprint(lanes) {
			t.Fatalf("lanes %v came back as %v", lanes, back)
		}
		outer := v.Outer()
		if f.Carrier.Port == 0 {
			outer.SrcPort = home.SrcPort
		}
		if outer != to {
			t.Fatalf("%+v came back as %+v", to, outer)
		}
	})
}

// TestTables checks that the fields of every message can be distinguished, as the tests above require.
func TestTables(t *testing.T) {
	names := map[string]bool{}
	for _, f := range allTables() {
		if names[f.Name] || names[f.Proto] {
			t.Errorf("%s or its dissector's name is there twice", f.Name)
		}
		names[f.Name], names[f.Proto] = true, true
		for i := range f.Messages {
			m := &f.Messages[i]
			bits := 0
			for _, fields := range [][]Field{m.Head, m.Tail} {
				for j := range fields {
					x := &fields[j]
					bits += x.Bits
					if x.at%8 != 0 && x.Bits > 56 || x.Little && (x.at%8 != 0 || x.Bits%8 != 0) {
						t.Errorf("%s %s: %s begins %d bits into a byte", f.Name, m.Name, x.Name, x.at%8)
					}
				}
			}
			if bits%8 != 0 {
				t.Errorf("%s %s has %d bits", f.Name, m.Name, bits)
			}
		}
	}
}

// TestOLAF checks that OLAF's table describes the bytes that its codec writes.
func TestOLAF(t *testing.T) {
	u := &olaf.Update{GenNS: 0x0102030405, Seq: 77, Reward: -512, Cluster: 3, Worker: 9, Count: 4, Lanes: 2, Flags: olaf.Retransmission}
	b := make([]byte, olaf.MaxFrame)
	n, err := olaf.EncodeUpdate(b, &home, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]uint64{}
	m := &OLAF.Messages[0]
	for i := range m.Head {
		x := &m.Head[i]
		have[x.Name] = x.read(b[OLAF.Carrier.payload():n])
		if x.Fixed && have[x.Name] != x.Value {
			t.Errorf("%s is %d, the table says %d", x.Name, have[x.Name], x.Value)
		}
	}
	for name, want := range map[string]uint64{
		"retransmission": 1, "aggregated": 1, "cluster": 3, "worker": 9, "seq": 77, "count": 4, "generated": 0x0102030405,
		"reward": 1<<32 - 512,
	} {
		if have[name] != want {
			t.Errorf("%s is %d, want %d", name, have[name], want)
		}
	}
	if n, err := olaf.EncodeAck(b, &home, u, olaf.QueueStatus{Occupancy: 5, ActiveClusters: 6, Slots: 7, Full: true}, nil); err != nil ||
		n != int(OLAF.SizeOf(&program.Packet{Kind: program.Ack, Lanes: 2}, false)) {
		t.Errorf("an ACK is %d bytes, %v", n, err)
	}
	ack := &OLAF.Messages[1]
	for i, want := range []uint64{5, 6, 7, 1, 0} {
		x := &ack.Head[len(ack.Head)-5+i]
		if have := x.read(b[OLAF.Carrier.payload():]); have != want {
			t.Errorf("%s is %d, want %d", x.Name, have, want)
		}
	}
	if _, err := OLAF.Encode(b, &Outer{}, &program.Packet{Kind: program.Data}, nil); !errors.Is(err, ErrEncode) {
		t.Errorf("OLAF by its table: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	data := func(f *Format, lanes int) []byte {
		return encoded(t, f, Outer{Addresses: home}, &program.Packet{Kind: program.Data, Lanes: uint16(lanes)}, nil)
	}
	set := func(b []byte, at int, with ...byte) []byte {
		copy(b[at:], with)
		sum := onesSum(0, append(append([]byte{}, b[offIP:offChecksum]...), b[offSource:offUDP]...))
		b[offChecksum], b[offChecksum+1] = byte(^sum>>8), byte(^sum)
		return b
	}
	help := encoded(t, ISwitch, Outer{Addresses: home}, &program.Packet{Kind: program.Control, Action: iswitch.Help, Seg: 1}, nil)
	for name, c := range map[string]struct {
		f    *Format
		b    []byte
		kind error
		is   Fault
		says string
	}{
		"nothing": {ISwitch, nil, ErrOther, FaultShort,
			"another frame (isw-1): 0 bytes, too few for its headers, which take 42"},
		"ARP":          {ISwitch, set(data(ISwitch, 1), 12, 8, 6), ErrOther, FaultEtherType, "EtherType 0x0806, not 0x0800"},
		"IPv6":         {ISwitch, set(data(ISwitch, 1), 14, 0x60), ErrOther, FaultIP, "not IPv4 without options"},
		"TCP":          {ISwitch, set(data(ISwitch, 1), 23, 6), ErrOther, FaultProtocol, "IPv4 protocol 6, not 17"},
		"a fragment":   {ISwitch, set(data(ISwitch, 1), 20, 0x20, 1), ErrOther, FaultFragment, "a fragment"},
		"another port": {ISwitch, set(data(ISwitch, 1), 36, 0, 53), ErrOther, FaultPort, "UDP port 53, not 20301"},
		"another ToS":  {ISwitch, set(data(ISwitch, 1), 15, 0x40), ErrOther, FaultToS, "ToS 0x40"},
		"cut": {ISwitch, data(ISwitch, 100)[:200], ErrMalformed, FaultCut,
			"malformed frame (isw-1): cut: 200 bytes of 450"},
		"bytes behind": {ISwitch, append(data(ISwitch, 100), 0), ErrMalformed, FaultTrailing,
			"451 bytes, but its packet ends after 450"},
		"a wrong checksum": {ISwitch, append([]byte{}, flip(data(ISwitch, 100), 24)...), ErrMalformed, FaultChecksum,
			"wrong checksum"},
		"UDP of another size": {ISwitch, set(data(ISwitch, 100), 38, 0, 9), ErrMalformed, FaultLength, "IPv4 length is 436 bytes, UDP length 9"},
		"no IPv4 payload": {ISwitch, set(data(ISwitch, 1), 16, 0, 20), ErrMalformed, FaultMessage,
			"payload of 20 bytes; it takes 28"},
		"half a lane": {ISwitch, short(set, data(ISwitch, 100), 2), ErrMalformed, FaultLanes,
			"data payload of 406 bytes; headers and at most 366 lanes of 4 bytes fit"},
		"no Seg":              {ISwitch, short(set, data(ISwitch, 100), 404), ErrMalformed, FaultLanes, "data payload of 4 bytes"},
		"an oversized packet": {ISwitch, long(set, data(ISwitch, 366), 4), ErrMalformed, FaultLanes, "payload of 1476 bytes"},
		"an unknown action": {ISwitch, set(append([]byte{}, help...), 42, 9), ErrMalformed, FaultCode,
			"malformed frame (isw-1): action has the unknown value 9"},
		"a help without a Seg": {ISwitch, set(append([]byte{}, help...), 42, byte(iswitch.Halt)), ErrMalformed, FaultMessage,
			"halt payload of 9 bytes; it takes 1"},
		"an unbuilt size":   {SwitchML, set(data(SwitchML, 64), 42, 0x12), ErrMalformed, FaultCode, "size has the unknown value 2"},
		"a type of another": {SwitchML, set(data(SwitchML, 64), 42, 0x21), ErrMalformed, FaultField, "type is 2, it must be 1"},
		"a size that lies": {SwitchML, set(data(SwitchML, 64), 42, 0x13), ErrMalformed, FaultMessage,
			"data 1024 payload of 266 bytes; it takes 1034"},
		"a server's job":   {P4INC, set(data(P4INC, 64), 42, 0), ErrMalformed, FaultCode, "service has the unknown value 0"},
		"an unknown type":  {P4INC, set(data(P4INC, 64), 52, 0xc0), ErrMalformed, FaultCode, "type has the unknown value 3"},
		"a type of nobody": {Baseline, set(data(Baseline, 1), 42, 0x80), ErrMalformed, FaultCode, "type has the unknown value 2"},
		"a packet of OLAF": {XAgg, set(data(XAgg, 1), 42, 0x4f), ErrMalformed, FaultCode, "magic has the unknown value 79"},
		"a short aggregate": {ATPReleased, data(ATPReleased, 62)[:300], ErrMalformed, FaultMessage,
			"payload of 266 bytes; it takes 274"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.f.Decode(c.b)
			if !errors.Is(err, c.kind) || !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

func flip(b []byte, at int) []byte {
	b[at] ^= 1
	return b
}

// short removes bytes from the end of a frame and adapts its headers; long adds bytes.
func short(set func([]byte, int, ...byte) []byte, b []byte, n int) []byte {
	b = b[:len(b)-n]
	ip, udp := len(b)-ethernetBytes, len(b)-offUDP
	set(b, offUDPLength, byte(udp>>8), byte(udp))
	b = set(b, offIPLength, byte(ip>>8), byte(ip))
	return append(b, make([]byte, max(0, int(Least)-len(b)))...)
}

func long(set func([]byte, int, ...byte) []byte, b []byte, n int) []byte {
	return short(set, append(b, make([]byte, 2*n)...), n)
}

func TestUnwritablePackets(t *testing.T) {
	b := make([]byte, olaf.MaxFrame)
	for name, c := range map[string]struct {
		f     *Format
		p     program.Packet
		lanes []uint32
		room  int
		is    error
		says  string
	}{
		"a kind that is not there": {ISwitch, program.Packet{Kind: program.Ack}, nil, 2000, ErrEncode,
			"isw-1 has no message of kind ack"},
		"an unknown action": {ISwitch, program.Packet{Kind: program.Control, Action: 9}, nil, 2000, ErrEncode,
			"isw-1 has no action 9"},
		"too many lanes": {ISwitch, program.Packet{Kind: program.Data, Lanes: 367}, nil, 2000, ErrEncode,
			"367 lanes; 366 fit"},
		"other lanes": {ISwitch, program.Packet{Kind: program.Data, Lanes: 2}, []uint32{1}, 2000, ErrEncode,
			"has 2 lanes, 1 were given"},
		"a job beyond its bits": {SwitchML, program.Packet{Kind: program.Data, Job: 256}, nil, 2000, ErrEncode,
			"job 256 needs more than the 8 bits"},
		"a worker beyond its bits": {P4INC, program.Packet{Kind: program.Data, Worker: 256}, nil, 2000, ErrEncode,
			"worker 256 needs more than the 8 bits"},
		"too many fragments": {P4INC, program.Packet{Kind: program.Data, Seg: 1 << 32}, nil, 2000, ErrEncode,
			"fragment 4294967296 needs more than the 32 bits"},
		"too many of ATP's": {ATPReleased, program.Packet{Kind: program.Data, Seg: 1 << 16}, nil, 2000, ErrEncode,
			"seq 65536 needs more than the 16 bits"},
		"a step beyond its bits": {Baseline, program.Packet{Kind: program.Data, Index: 1 << 14}, nil, 2000, ErrEncode,
			"step 16384 needs more than the 14 bits"},
		"no room": {ISwitch, program.Packet{Kind: program.Data}, nil, 59, io.ErrShortBuffer,
			"60 bytes into a buffer of 59"},
	} {
		if _, err := c.f.Encode(b[:c.room], &Outer{}, &c.p, c.lanes); !errors.Is(err, ErrEncode) || !errors.Is(err, c.is) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if name := DetectSystem(encoded(t, ATPPaper, Outer{}, &program.Packet{Kind: program.Data, Lanes: 62}, nil),
		298); name != "ATP paper (atp-paper)" {
		t.Errorf("a frame of ATP's is of %q", name)
	}
	if name := DetectSystem(make([]byte, 64), 64); name != "" {
		t.Errorf("a frame of nobody is of %q", name)
	}
}

// TestTruncated checks that headers are decoded from a capture with a short snapshot length.
func TestTruncated(t *testing.T) {
	p := &program.Packet{Kind: program.Data, Bitmap: 1, Job: 1, Seg: 2, Value: 7<<32 | 62, Lanes: 62}
	b := encoded(t, ATPReleased, Outer{}, p, nil)
	v, err := ATPReleased.DecodeTruncated(b[:64], len(b))
	if err != nil {
		t.Fatal(err)
	}
	want := *p
	want.Value = 0
	if have := read(&v); have != want {
		t.Errorf("%+v, want %+v", have, want)
	}
	if n := v.Lanes(make([]uint32, 62)); n != 4 {
		t.Errorf("%d lanes were kept, want 4", n)
	}
	if _, err := ATPReleased.DecodeTruncated(b[:40], len(b)); !errors.Is(err, FaultCut) {
		t.Errorf("without headers: %v", err)
	}
}

// FuzzDecode checks that no bytes make a reader panic, and that accepted bytes are encoded again as they were, except
// for fields that the table leaves out.
func FuzzDecode(f *testing.F) {
	for i, format := range allFormats() {
		for j := range format.Messages {
			m := &format.Messages[j]
			f.Add(uint8(i), encoded(f, format, Outer{Addresses: home, Past: m.Past},
				&program.Packet{Kind: m.Kind, Action: m.Action, Lanes: uint16(m.Lanes.Most)}, nil))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		format := allFormats()[int(which)%len(allFormats())]
		v, err := format.Decode(b)
		if err != nil {
			if _, ok := err.(*Error); !ok || err.Error() == "" {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		p, to := read(&v), v.Outer()
		lanes := make([]uint32, p.Lanes)
		if n := v.Lanes(lanes); n != len(lanes) {
			t.Fatalf("%d of %d lanes", n, len(lanes))
		}
		again, err := format.Decode(encoded(t, format, to, &p, lanes))
		if err != nil {
			t.Fatal(err)
		}
		if have := read(&again); have != p {
			t.Fatalf("%+v came back as %+v", p, have)
		}
	})
}

const page = "../../docs/reference/wire.md"

// TestPage checks docs/reference/wire.md against the tables that the codec uses; -update writes the page.
func TestPage(t *testing.T) {
	if *update {
		if err := os.WriteFile(page, []byte(renderPage()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != renderPage() {
		t.Fatal("docs/reference/wire.md differs from the tables; run the tests with -update")
	}
}

func BenchmarkCodec(b *testing.B) {
	for _, f := range allFormats() {
		p := &program.Packet{Kind: program.Data, Bitmap: 1, Seg: 3, Lanes: uint16(f.Messages[0].Lanes.Most)}
		lanes, frame, to := make([]uint32, p.Lanes), make([]byte, olaf.MaxFrame), &Outer{Addresses: home}
		b.Run("encode/"+f.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Encode(frame, to, p, lanes); err != nil {
					b.Fatal(err)
				}
			}
		})
		n, err := f.Encode(frame, to, p, lanes)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("decode/"+f.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v, err := f.Decode(frame[:n])
				if err != nil {
					b.Fatal(err)
				}
				v.Packet(p)
				v.Lanes(lanes)
			}
		})
	}
}

// TestDissector checks with tshark as the peer that our dissector reads from every message what was written.
func TestDissector(t *testing.T) {
	tshark := peer.NeedProgram(t, "tshark")
	dir := t.TempDir()
	lua := filepath.Join(dir, "inagg.lua")
	if err := os.WriteFile(lua, []byte(DissectorScript()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, f := range allTables() {
		file := filepath.Join(dir, f.Name+".pcap")
		want := written(t, f, file)
		out, err := exec.Command(tshark, "-n", "-X", "lua_script:"+lua, "-o", "ip.check_checksum:TRUE", "-d",
			"udp.port==20301,"+iswitchBy(f), "-r", file,
			"-T", "fields", "-E", "separator=|", "-e", f.Proto+".message", "-e", "_ws.col.Info", "-e", "_ws.malformed", "-e",
			"ip.checksum.status").Output()
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		var have []string
		for line := range strings.Lines(string(out)) {
			have = append(have, strings.TrimSuffix(line, "\n"))
		}
		for i := range want {
			if i >= len(have) || have[i] != want[i] {
				t.Errorf("%s: tshark says\n%s\nwant\n%s", f.Name, strings.Join(have, "\n"), strings.Join(want, "\n"))
				break
			}
		}
	}
}

// iswitchBy returns the iSwitch profile for which tshark should use the port.
func iswitchBy(f *Format) string {
	if f == ISwitchExact {
		return f.Proto
	}
	return ISwitch.Proto
}

// written writes a capture with a frame of every message that a reader can distinguish, and returns the lines expected
// from tshark.
func written(t *testing.T, f *Format, file string) (want []string) {
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := pcapgo.NewWriterNanos(out)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, olaf.MaxFrame)
	for i := range f.Messages {
		m := &f.Messages[i]
		if m.Kind == program.Result && !m.Past && !m.Reply {
			continue // indistinguishable from data
		}
		n, info := filled(t, f, m, b)
		if err := w.WritePacket(gopacket.CaptureInfo{CaptureLength: n, Length: n}, b[:n]); err != nil {
			t.Fatal(err)
		}
		sum := "1"
		if f.Carrier.EtherType != etherTypeIPv4 {
			sum = ""
		}
		want = append(want, m.Name+"|"+info+"||"+sum)
	}
	return want
}

// filled writes a message with a value in every field, and returns the dissector's expected summary.
func filled(t *testing.T, f *Format, m *Message, b []byte) (n int, info string) {
	p := program.Packet{Kind: m.Kind, Action: m.Action, Lanes: uint16(min(3, m.Lanes.Most))}
	if m.Lanes.Fixed {
		p.Lanes = uint16(m.Lanes.Most)
	}
	if m.AllSegments {
		p.Seg = everySegment
	}
	words := []string{m.Name}
	if f.Elsewhere {
		u := &olaf.Update{Cluster: 3, Worker: 9, Seq: 77, Count: 1, GenNS: 5, Reward: -256, Lanes: 3}
		var err error
		if n, err = olaf.EncodeUpdate(b, &home, u, nil); m.Kind == program.Ack {
			n, err = olaf.EncodeAck(b, &home, u, olaf.QueueStatus{Occupancy: 5, ActiveClusters: 6, Slots: 7, Full: true}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	} else {
		for i := range m.Head {
			x := &m.Head[i]
			if x.Flag != 0 && i%2 == 0 {
				p.Flags |= x.Flag
			}
			if x.Set != nil {
				x.Set(&p, uint64(i+1))
			}
		}
		to := Outer{Addresses: home, Past: m.Past}
		to.SrcPort = 9 // a port that no other dissector claims
		n = copy(b, encoded(t, f, to, &p, nil))
	}
	for i := range m.Head {
		x := &m.Head[i]
		switch v := x.read(b[f.Carrier.payload():n]); {
		case x.Fixed, x.spare(), x.Form == Mark && v == 0:
		case x.Form == Mark:
			words = append(words, x.Name)
		case int(v) < len(x.Names) && x.Names[v] != "":
			words = append(words, x.Name+"="+x.Names[v])
		case x.Form == Signed:
			words = append(words, fmt.Sprintf("%s=%d", x.Name, int32(v)))
		default:
			words = append(words, fmt.Sprintf("%s=%d", x.Name, v))
		}
	}
	return n, strings.TrimSpace(strings.Join(words, " "))
}
