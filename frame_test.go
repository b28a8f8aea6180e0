package olaf

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var testAddr = Addresses{
	SrcMAC: [6]byte{2, 0, 10, 1, 0, 5}, DstMAC: [6]byte{2, 0, 10, 0, 0, 1},
	SrcIP: [4]byte{10, 1, 0, 5}, DstIP: [4]byte{10, 0, 0, 1}, SrcPort: 40005,
}

func testFrame(t testing.TB, lanes int) []byte {
	t.Helper()
	u := Update{GenNS: 0x123456789abc, Seq: 7, Reward: -256, Cluster: 3, Worker: 5, Count: 2, Lanes: uint16(lanes),
		Flags: Retransmission}
	values := make([]int32, lanes)
	for i := range values {
		values[i] = int32(i) - 1
	}
	b := make([]byte, MaxFrame)
	n, err := EncodeUpdate(b, &testAddr, &u, values)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func testAck(t testing.TB) []byte {
	t.Helper()
	b := make([]byte, 128)
	n, err := EncodeAck(b, &testAddr, &Update{Lanes: 1, Count: 1}, QueueStatus{Occupancy: 5, ActiveClusters: 3, Slots: 8}, []int32{-1})
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// TestFrameBytes checks the bytes of one frame, so that an error that encoder and decoder share is noticed.
func TestFrameBytes(t *testing.T) {
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"update", testFrame(t, 2), "02000a000001 02000a010005 0800" +
			"4500003a 00004000 401126ad 0a010005 0a000001" +
			"9c45 4f4c 0026 0000" +
			"4f 53 0003 0005 00000007 0002 123456789abc ffffff00" +
			"ffffffff 00000000"},
		{"ack", testAck(t), "02000a000001 02000a010005 0800" +
			"4500003e 00004000 401126a9 0a010005 0a000001" +
			"9c45 4f4c 002a 0000" +
			"4f 60 0000 0000 00000000 0001 000000000000 00000000" +
			"000005 0003 0008 00" + "ffffffff"},
	}
	for _, tt := range tests {
		want, err := hex.DecodeString(strings.ReplaceAll(tt.want, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func genAddresses(t *rapid.T) Addresses {
	b := rapid.SliceOfN(rapid.Byte(), 22, 22).Draw(t, "addresses")
	return Addresses{SrcMAC: [6]byte(b), DstMAC: [6]byte(b[6:]), SrcIP: [4]byte(b[12:]), DstIP: [4]byte(b[16:]),
		SrcPort: binary.BigEndian.Uint16(b[20:])}
}

func genUpdate(t *rapid.T, lanes int) Update {
	return Update{
		GenNS:   rapid.Uint64Range(0, GenModulus-1).Draw(t, "gen"),
		Seq:     rapid.Uint32().Draw(t, "seq"),
		Reward:  rapid.Int32().Draw(t, "reward"),
		Cluster: ClusterID(rapid.Uint16().Draw(t, "cluster")),
		Worker:  WorkerID(rapid.Uint16().Draw(t, "worker")),
		Count:   rapid.Uint16Range(1, MaxCount).Draw(t, "count"),
		Lanes:   uint16(lanes),
		Flags:   Flags(rapid.SampledFrom([]uint8{0, uint8(Retransmission)}).Draw(t, "flags")),
	}
}

// TestFrameRoundTrip checks that decoding an encoded frame returns its fields and that encoding them again gives the
// same bytes, for updates and ACKs.
func TestFrameRoundTrip(t *testing.T) {
	b, again := make([]byte, MaxFrame), make([]byte, MaxFrame)
	rapid.Check(t, func(t *rapid.T) {
		ack := rapid.Bool().Draw(t, "ack")
		n := rapid.OneOf(rapid.IntRange(0, 50), rapid.Just(MaxAckLanes)).Draw(t, "lanes")
		lanes := rapid.SliceOfN(rapid.Int32(), n, n).Draw(t, "values")
		addr, u := genAddresses(t), genUpdate(t, n)
		status := QueueStatus{rapid.Uint32Range(0, maxOccupancy).Draw(t, "occupancy"), rapid.Uint16().Draw(t, "active"),
			rapid.Uint16().Draw(t, "slots"), rapid.Bool().Draw(t, "full")}
		encode := func(dst []byte, addr *Addresses, u *Update, s QueueStatus, lanes []int32) []byte {
			size, err := EncodeUpdate(dst, addr, u, lanes)
			if ack {
				size, err = EncodeAck(dst, addr, u, s, lanes)
			}
			if err != nil {
				t.Fatal(err)
			}
			return dst[:size]
		}
		wire := encode(b, &addr, &u, status, lanes)
		f, err := ParseFrame(wire)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]int32, n)
		if k := f.Lanes(got); k != n {
			t.Fatalf("%d lanes of %d", k, n)
		}
		if ack != (f.Kind() == KindAck) || !ack && f.QueueStatus() != (QueueStatus{}) || ack && f.QueueStatus() != status {
			t.Fatalf("kind %d, status %+v", f.Kind(), f.QueueStatus())
		}
		if f.Update() != u || f.Addresses() != addr || !cmp.Equal(got, lanes) || f.Cluster() != u.Cluster || f.Worker() != u.Worker {
			t.Fatalf("%+v %+v became %+v %+v", addr, u, f.Addresses(), f.Update())
		}
		back, backAddr := f.Update(), f.Addresses()
		if !bytes.Equal(wire, encode(again, &backAddr, &back, f.QueueStatus(), got)) {
			t.Fatal("the second encoding differs")
		}
	})
}

func setUDPChecksum(b []byte) {
	b[offUDPChecksum], b[offUDPChecksum+1] = 0, 0
	c := ^fold(sum(sum(protocolUDP+uint64(len(b)-offUDP), b[offSrcIP:offUDP]), b[offUDP:]))
	if c == 0 {
		c = 0xffff
	}
	binary.BigEndian.PutUint16(b[offUDPChecksum:], c)
}

func setIPChecksum(b []byte) {
	b[offIPChecksum], b[offIPChecksum+1] = 0, 0
	binary.BigEndian.PutUint16(b[offIPChecksum:], ^slowSum(b[offIP:offUDP]))
}

// slowSum computes the checksum of RFC 1071 word by word.
func slowSum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		s += uint32(b[i]) << 8
		if i+1 < len(b) {
			s += uint32(b[i+1])
		}
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

func TestParseFrameFaults(t *testing.T) {
	grow := func(n int) func([]byte) []byte {
		return func(b []byte) []byte { return append(b, make([]byte, n)...) }
	}
	poke := func(at int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = v; return b }
	}
	// resize sets an IPv4 total length, with consistent headers.
	resize := func(ip int) func([]byte) []byte {
		return func(b []byte) []byte {
			b = append(b, make([]byte, 1<<16)...)[:ethernetBytes+ip]
			binary.BigEndian.PutUint16(b[offIPLength:], uint16(ip))
			binary.BigEndian.PutUint16(b[offUDPLength:], uint16(ip-ipBytes))
			setIPChecksum(b)
			return b
		}
	}
	withIP := func(at int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = v; setIPChecksum(b); return b }
	}
	tests := []struct {
		name  string
		ack   bool
		spoil func([]byte) []byte
		want  FrameFault // 0: valid
	}{
		{"as it is", false, grow(0), 0},
		{"good UDP checksum", false, func(b []byte) []byte { setUDPChecksum(b); return b }, 0},
		{"other TTL and DSCP", false, func(b []byte) []byte { b[15], b[offIPTTL] = 0xb8, 1; setIPChecksum(b); return b }, 0},
		{"no lanes", false, resize(50), 0},
		{"most lanes", false, resize(9036 - 14), 0},
		{"empty", false, func([]byte) []byte { return nil }, FaultShort},
		{"ends before the magic", false, func(b []byte) []byte { return b[:42] }, FaultShort},
		{"VLAN", false, poke(offEtherType, 0x81), FaultEtherType},
		{"IPv6", false, poke(offIP, 0x65), FaultIPVersion},
		{"IP options", false, poke(offIP, 0x46), FaultIPOptions},
		{"TCP", false, poke(offIPProtocol, 6), FaultProtocol},
		{"later fragment", false, poke(offIPFragment+1, 1), FaultLaterFragment},
		{"other port", false, poke(offDstPort, 0), FaultPort},
		{"other magic", false, poke(offMagic, 0), FaultMagic},
		{"first fragment", false, withIP(offIPFragment, 0x20), FaultFragment},
		{"IP length below the headers", false, resize(49), FaultTruncated},
		{"IP length below the headers, long frame", false, withIP(offIPLength+1, 40), FaultIPLength},
		{"FCS", false, grow(4), FaultTrailing},
		{"one byte short", false, func(b []byte) []byte { return b[:len(b)-1] }, FaultTruncated},
		{"IP checksum", false, poke(offIPTTL, 63), FaultIPChecksum},
		{"UDP length", false, poke(offUDPLength+1, 3), FaultUDPLength},
		{"odd payload", false, resize(51), FaultLanes},
		{"too many lanes", false, resize(9036 - 14 + 4), FaultLanes},
		{"longest IP packet", false, resize(65535), FaultLanes},
		{"UDP checksum", false, poke(offUDPChecksum, 1), FaultUDPChecksum},
		{"version 2", false, poke(offBits, 0x93), FaultVersion},
		{"type 0", false, poke(offBits, 0x43), FaultType},
		{"type 3", false, poke(offBits, 0x73), FaultType},
		{"reserved", false, poke(offBits, 0x57), FaultReserved},
		{"count 0", false, poke(offCount+1, 0), FaultCount},
		{"count 1 with the aggregated bit", false, poke(offCount+1, 1), FaultCount},
		{"ACK as it is", true, grow(0), 0},
		{"ACK without lanes", true, resize(58), 0},
		{"ACK without status", true, resize(54), FaultLanes},
		{"ACK too long", true, resize(9036 - 14 + 4), FaultLanes},
		{"ACK with count 0", true, poke(offCount+1, 0), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := testFrame(t, 4)
			if tt.ack {
				b = testAck(t)
			}
			_, err := ParseFrame(tt.spoil(b))
			if tt.want == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			kind, other := ErrMalformed, ErrNotOLAF
			if tt.want <= lastNotOLAF {
				kind, other = other, kind
			}
			if err != tt.want || !errors.Is(err, kind) || errors.Is(err, other) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestEveryFaultHasText(t *testing.T) {
	for f := FrameFault(1); f < FrameFaults; f++ {
		if faultText[f] == "" {
			t.Errorf("fault %d has no text", f)
		}
	}
	if FrameFault(0).Is(ErrNotOLAF) || FrameFaults.Is(ErrMalformed) {
		t.Error("a fault that does not exist matches a kind")
	}
}

// TestParseFrameDetectsDamage checks that no prefix of a frame parses or panics, and that every changed bit is noticed
// in the IPv4 header, and with a UDP checksum in all bytes after it.
func TestParseFrameDetectsDamage(t *testing.T) {
	for _, whole := range [][]byte{testFrame(t, 3), testAck(t)} {
		for n := range whole {
			if _, err := ParseFrame(whole[:n]); err == nil {
				t.Fatalf("%d of %d bytes parse", n, len(whole))
			}
		}
		setUDPChecksum(whole)
		for bit := offIP * 8; bit < len(whole)*8; bit++ {
			whole[bit/8] ^= 1 << (bit % 8)
			if _, err := ParseFrame(whole); err == nil {
				t.Errorf("flipped bit %d of byte %d parses", bit%8, bit/8)
			}
			whole[bit/8] ^= 1 << (bit % 8)
		}
	}
}

func TestParseTruncated(t *testing.T) {
	whole := testFrame(t, 48)
	f, err := ParseTruncated(whole[:96], len(whole))
	if err != nil {
		t.Fatal(err)
	}
	lanes := make([]int32, 48)
	if n := f.Lanes(lanes); n != 8 || f.LaneCount() != 48 || f.Update().Lanes != 48 || f.Size() != 256 || lanes[7] != 6 {
		t.Errorf("%d lanes of %d, size %v, %v", n, f.LaneCount(), f.Size(), lanes[:8])
	}
	withChecksum := bytes.Clone(whole)
	setUDPChecksum(withChecksum)
	if _, err := ParseTruncated(withChecksum[:64], len(whole)); err != nil {
		t.Errorf("a checksum over missing bytes was verified: %v", err)
	}
	tests := []struct {
		b    []byte
		wire int
		want FrameFault
	}{
		{whole[:64], len(whole) - 1, FaultTruncated},
		{whole[:64], len(whole) + 1, FaultTrailing},
		{whole[:63], len(whole), FaultTruncated},
		{testAck(t)[:71], len(testAck(t)), FaultTruncated},
		{append(whole, 0), len(whole), FaultTrailing},
	}
	for _, tt := range tests {
		if _, err := ParseTruncated(tt.b, tt.wire); err != tt.want {
			t.Errorf("%d of %d bytes: %v, want %v", len(tt.b), tt.wire, err, tt.want)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	b := make([]byte, MaxFrame)
	tests := []struct {
		name  string
		dst   []byte
		u     Update
		lanes []int32
		ack   bool
		short bool
	}{
		{name: "count 0", dst: b},
		{name: "too many lanes", dst: b, u: Update{Count: 1, Lanes: uint16(MaxLanes) + 1}},
		{name: "too many ACK lanes", dst: b, u: Update{Lanes: uint16(MaxAckLanes) + 1}, ack: true},
		{name: "other lanes", dst: b, u: Update{Count: 1, Lanes: 2}, lanes: make([]int32, 3)},
		{name: "short", dst: b[:71], u: Update{Count: 1, Lanes: 2}, short: true},
		{name: "no buffer", u: Update{Count: 1}, short: true},
	}
	for _, tt := range tests {
		n, err := EncodeUpdate(tt.dst, &testAddr, &tt.u, tt.lanes)
		if tt.ack {
			n, err = EncodeAck(tt.dst, &testAddr, &tt.u, QueueStatus{}, tt.lanes)
		}
		if n != 0 || !errors.Is(err, ErrEncode) || errors.Is(err, io.ErrShortBuffer) != tt.short {
			t.Errorf("%s: %d, %v", tt.name, n, err)
		}
	}
}

// TestEncodeNilLanes checks that, in a buffer that is used for many frames, nil lanes do not leak its old content.
func TestEncodeNilLanes(t *testing.T) {
	b := bytes.Repeat([]byte{0xff}, 128)
	n, err := EncodeUpdate(b, &testAddr, &Update{Count: 1, Lanes: 4, GenNS: GenModulus + 5}, nil)
	if err != nil || !bytes.Equal(b[HeaderBytes:n], make([]byte, 16)) {
		t.Errorf("%x, %v", b[:n], err)
	}
	if f, err := ParseFrame(b[:n]); err != nil || f.Update().GenNS != 5 {
		t.Errorf("generation time is not taken modulo 2^48: %v", err)
	}
}

func TestRewrite(t *testing.T) {
	b := testAck(t)
	setUDPChecksum(b)
	f, err := ParseFrame(b)
	if err != nil {
		t.Fatal(err)
	}
	f.SetQueueStatus(QueueStatus{Occupancy: 1 << 30, ActiveClusters: 9, Slots: 8, Full: true})
	f, err = ParseFrame(b)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.QueueStatus(); got != (QueueStatus{maxOccupancy, 9, 8, true}) {
		t.Errorf("status %+v", got)
	}
	b = testFrame(t, 2)
	setUDPChecksum(b)
	want := bytes.Clone(b)
	f, _ = ParseFrame(b)
	f.SetQueueStatus(QueueStatus{1, 1, 1, false})
	if !bytes.Equal(b, want) {
		t.Error("a queue status was written into an update")
	}
}

func TestBusier(t *testing.T) {
	tests := []struct {
		s, o QueueStatus
		want bool
	}{
		{QueueStatus{0, 4, 8, false}, QueueStatus{}, true},
		{QueueStatus{0, 0, 8, false}, QueueStatus{}, true},
		{QueueStatus{0, 4, 8, false}, QueueStatus{0, 4, 8, false}, false},
		{QueueStatus{0, 5, 8, false}, QueueStatus{0, 4, 8, false}, true},
		{QueueStatus{0, 5, 16, false}, QueueStatus{0, 4, 8, false}, false},
		{QueueStatus{0, 65535, 65534, false}, QueueStatus{0, 65535, 65535, false}, true},
	}
	for _, tt := range tests {
		if got := tt.s.Busier(tt.o); got != tt.want {
			t.Errorf("%+v busier than %+v: %v", tt.s, tt.o, got)
		}
	}
}

func TestSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.Just(byte(0xff))), 0, 70).Draw(t, "bytes")
		if got, want := fold(sum(0, b)), slowSum(b); got%0xffff != want%0xffff {
			t.Fatalf("%x sums to %04x, want %04x", b, got, want)
		}
	})
}

// FuzzParseFrame checks that parsed frames encode to the same fields and that nothing panics.
func FuzzParseFrame(f *testing.F) {
	f.Add(testFrame(f, 48), 0)
	f.Add(testFrame(f, 0), 0)
	f.Add(testAck(f), 0)
	f.Add(testFrame(f, 3)[:64], 12)
	f.Add([]byte{}, 0)
	again := make([]byte, MaxFrame)
	f.Fuzz(func(t *testing.T, b []byte, missing int) {
		fr, err := ParseTruncated(b, len(b)+max(0, missing))
		if err != nil {
			if errors.Is(err, ErrNotOLAF) == errors.Is(err, ErrMalformed) {
				t.Fatalf("%v is of no kind, or of both", err)
			}
			return
		}
		u, addr, lanes := fr.Update(), fr.Addresses(), make([]int32, fr.LaneCount())
		fr.Lanes(lanes)
		n, err := EncodeUpdate(again, &addr, &u, lanes)
		if fr.Kind() == KindAck {
			n, err = EncodeAck(again, &addr, &u, fr.QueueStatus(), lanes)
		}
		if err != nil {
			t.Fatal(err)
		}
		second, err := ParseFrame(again[:n])
		if err != nil || second.Update() != u || second.Addresses() != addr || second.QueueStatus() != fr.QueueStatus() {
			t.Fatalf("%+v came back as %v", u, err)
		}
	})
}

func BenchmarkEncodeUpdate48(b *testing.B) {
	u := Update{GenNS: 1234567, Seq: 1, Reward: 256, Cluster: 1, Worker: 2, Count: 1, Lanes: 48}
	lanes, dst := make([]int32, 48), make([]byte, 256)
	b.ReportAllocs()
	for b.Loop() {
		u.Seq++
		if _, err := EncodeUpdate(dst, &testAddr, &u, lanes); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkDecode(b *testing.B, frame []byte) {
	lanes := make([]int32, 48)
	b.ReportAllocs()
	var seq uint32
	for b.Loop() {
		f, err := ParseFrame(frame)
		if err != nil {
			b.Fatal(err)
		}
		u := f.Update()
		seq += u.Seq
		f.Lanes(lanes)
	}
	_ = seq
}

func BenchmarkDecode48(b *testing.B) { benchmarkDecode(b, testFrame(b, 48)) }

func BenchmarkDecode48UDPChecksum(b *testing.B) {
	frame := testFrame(b, 48)
	setUDPChecksum(frame)
	benchmarkDecode(b, frame)
}
