//go:build linux

package live

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"golang.org/x/sys/unix"
)

// message returns one control message, padded like the kernel's.
func message(level, kind int32, data []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	word := unix.SizeofCmsghdr - 8 // size of the length field
	if word == 8 {
		binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(len(data))))
	} else {
		binary.NativeEndian.PutUint32(b, uint32(unix.CmsgLen(len(data))))
	}
	binary.NativeEndian.PutUint32(b[word:], uint32(level))
	binary.NativeEndian.PutUint32(b[word+4:], uint32(kind))
	copy(b[unix.CmsgLen(0):], data)
	return b
}

// times returns three stamps of seconds and nanoseconds in 64 bits each.
func times(v ...int64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.NativeEndian.AppendUint64(b, uint64(x))
	}
	return b
}

func times32(v ...int32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.NativeEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func aux(status, length uint32, tci, tpid uint16) []byte {
	b := make([]byte, 20)
	binary.NativeEndian.PutUint32(b, status)
	binary.NativeEndian.PutUint32(b[4:], length)
	binary.NativeEndian.PutUint16(b[16:], tci)
	binary.NativeEndian.PutUint16(b[18:], tpid)
	return b
}

func stampMessage(data []byte) []byte { return message(unix.SOL_SOCKET, unix.SCM_TIMESTAMPING, data) }
func auxMessage(data []byte) []byte   { return message(unix.SOL_PACKET, unix.PACKET_AUXDATA, data) }

func TestParseControl(t *testing.T) {
	const vlan, tpid = unix.TP_STATUS_VLAN_VALID, unix.TP_STATUS_VLAN_TPID_VALID
	kernel := stampMessage(times(5, 7, 0, 0, 0, 0))
	for _, tt := range []struct {
		name string
		b    []byte
		want control
		err  error
	}{
		{"nothing", nil, control{}, nil},
		{"kernel", kernel, control{kernelNS: 5_000_000_007}, nil},
		{"hardware", stampMessage(times(0, 0, 0, 0, 3, 4)), control{hardwareNS: 3_000_000_004}, nil},
		{"both", stampMessage(times(5, 7, 9, 9, 3, 4)), control{kernelNS: 5_000_000_007, hardwareNS: 3_000_000_004}, nil},
		{"32 bits", stampMessage(times32(5, 7, 0, 0, 3, 4)), control{kernelNS: 5_000_000_007,
			hardwareNS: 3_000_000_004}, nil},
		{"length", auxMessage(aux(unix.TP_STATUS_USER, 256, 0, 0)), control{wire: 256, status: 1}, nil},
		{"tag", auxMessage(aux(vlan|tpid, 256, 7, 0x88a8)), control{wire: 256, status: vlan | tpid, tci: 7,
			tpid: 0x88a8}, nil},
		{"tag of an old kernel", auxMessage(aux(vlan, 256, 7, 0)), control{wire: 256, status: vlan, tci: 7,
			tpid: 0x8100}, nil},
		{"no tag", auxMessage(aux(0, 256, 7, 0x8100)), control{wire: 256}, nil},
		{"all", append(bytes.Clone(kernel), auxMessage(aux(1, 99, 0, 0))...), control{kernelNS: 5_000_000_007,
			wire: 99, status: 1}, nil},
		{"unknown", append(message(1, 2, []byte{1, 2, 3}), kernel...), control{kernelNS: 5_000_000_007}, nil},
		{"last second", stampMessage(times(9_223_372_035, 999_999_999, 0, 0, 0, 0)),
			control{kernelNS: 9_223_372_035_999_999_999}, nil},

		{"a word", []byte{1, 2, 3, 4}, control{}, errControl},
		{"cut", kernel[:len(kernel)-1], control{}, errControl},
		{"length 0", make([]byte, 32), control{}, errControl},
		{"two stamps", stampMessage(times(5, 7, 0, 0)), control{}, errControl},
		{"before 1970", stampMessage(times(-1, 0, 0, 0, 0, 0)), control{}, errControl},
		{"beyond 64 bits", stampMessage(times(9_223_372_036, 0, 0, 0, 0, 0)), control{}, errControl},
		{"a second of ns", stampMessage(times(5, 1_000_000_000, 0, 0, 0, 0)), control{}, errControl},
		{"negative ns", stampMessage(times(0, 0, 0, 0, 5, -1)), control{}, errControl},
		{"short auxiliary", auxMessage(make([]byte, 19)), control{}, errControl},
		{"absurd length", auxMessage(aux(0, math.MaxUint32, 0, 0)), control{}, errControl},
	} {
		got, err := parseControl(tt.b)
		if got != tt.want || err != tt.err {
			t.Errorf("%s: %+v, %v; want %+v, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = parseControl(kernel) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseControl(f *testing.F) {
	f.Add([]byte{})
	f.Add(stampMessage(times(5, 7, 0, 0, 3, 4)))
	f.Add(append(stampMessage(times(5, 7, 0, 0, 0, 0)), auxMessage(aux(0x51, 256, 7, 0x8100))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseControl(bytes.Clone(b)) // the parser may expect aligned data
		if err != nil && c != (control{}) {
			t.Errorf("%v and %+v", err, c)
		}
		if c.kernelNS < 0 || c.hardwareNS < 0 || c.wire < 0 || c.wire > maxWire {
			t.Errorf("%+v", c)
		}
	})
}

// linkAnswer returns a RTM_NEWLINK with a name and the interface's counters, which are 100, 101, ….
func linkAnswer() []byte {
	stats := make([]byte, 24*8)
	for i := range 24 {
		binary.NativeEndian.PutUint64(stats[8*i:], uint64(100+i))
	}
	attribute := func(kind uint16, data []byte) []byte {
		b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
		b = append(binary.NativeEndian.AppendUint16(b, kind), data...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
		return b
	}
	body := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint16(body[2:], unix.ARPHRD_ETHER)
	binary.NativeEndian.PutUint32(body[8:], unix.IFF_UP|unix.IFF_RUNNING)
	body = append(body, attribute(unix.IFLA_IFNAME, []byte("eth0\x00"))...)
	body = append(body, attribute(unix.IFLA_MTU, binary.NativeEndian.AppendUint32(nil, 1500))...)
	body = append(body, attribute(unix.IFLA_STATS64, stats)...)
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
	b = binary.NativeEndian.AppendUint16(b, unix.RTM_NEWLINK)
	return append(append(b, make([]byte, 10)...), body...)
}

func TestParseLink(t *testing.T) {
	got, err := parseLink(linkAnswer())
	// The order of struct rtnl_link_stats64: rx_dropped is its 7th number, rx_length_errors the 11th.
	want := linkState{hardware: unix.ARPHRD_ETHER, flags: unix.IFF_UP | unix.IFF_RUNNING, mtu: 1500, drops: Drops{
		RXDropped: 106, RXLength: 110, RXOver: 111, RXCRC: 112, RXFrame: 113, RXFIFO: 114, RXMissed: 115,
	}}
	if got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for n := range linkAnswer() {
		if _, err := parseLink(linkAnswer()[:n]); err == nil {
			t.Errorf("an answer cut after %d bytes is taken", n)
		}
	}
	refusal := append(binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint32(nil, 36),
		unix.NLMSG_ERROR), make([]byte, 30)...)
	gone := int32(-int(unix.ENODEV))
	binary.NativeEndian.PutUint32(refusal[16:], uint32(gone))
	if _, err := parseLink(refusal); !errors.Is(err, unix.ENODEV) {
		t.Error(err)
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add(linkAnswer())
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = parseLink(b) })
}

func TestDropsAdd(t *testing.T) {
	d := Drops{Socket: 3}
	d.add(&Drops{RXDropped: 10, RXMissed: 5}, &Drops{RXDropped: 12, RXMissed: 5, RXCRC: 1})
	// the driver reset its counters
	d.add(&Drops{RXDropped: 12, RXCRC: 1}, &Drops{RXDropped: 4, RXCRC: 1, RXFIFO: 1, RXOver: 1, RXFrame: 1, RXLength: 1})
	want := Drops{Socket: 3, RXDropped: 6, RXCRC: 1, RXFIFO: 1, RXOver: 1, RXFrame: 1, RXLength: 1}
	if d != want || d.Total() != 14 || d.Interface() != 11 {
		t.Errorf("%+v, want %+v", d, want)
	}
}

func TestFinishChecksum(t *testing.T) {
	// A datagram of 3 bytes from 10.0.0.1:20301 to 10.0.0.2:20300 before checksum offload: the field contains the
	// sum of the pseudo header, 0a00+0001+0a00+0002+0011+000b.
	frame, _ := hex.DecodeString("020000000002020000000001080045000000000040004011000" + "00a0000010a000002" +
		"4f4d4f4c000b141f" + "616263" + "0000")
	finishChecksum(frame)
	if got, want := binary.BigEndian.Uint16(frame[40:]), sumOf(frame[26:34], []byte{0, 17, 0, 11}, frame[34:40],
		frame[42:45]); got != want {
		t.Errorf("%#04x, want %#04x", got, want)
	}
	for n := range frame { // no panic, and no other change
		cut := bytes.Clone(frame[:n])
		if finishChecksum(cut); n < 45 && !bytes.Equal(cut, frame[:n]) {
			t.Errorf("%d bytes changed", n)
		}
	}
	tcp := bytes.Clone(frame)
	tcp[23] = 6
	before := bytes.Clone(tcp)
	if finishChecksum(tcp); !bytes.Equal(tcp, before) {
		t.Error("touched a frame that is no UDP")
	}
}

// sumOf returns the internet checksum of parts, each padded to whole words.
func sumOf(parts ...[]byte) uint16 {
	sum := 0
	for _, p := range parts {
		for i, b := range p {
			sum += int(b) << (8 * (1 - i%2))
		}
	}
	return ^uint16(sum % 0xffff)
}

func TestStamped(t *testing.T) {
	for _, tt := range []struct {
		stamped Stamped
		mixed   bool
	}{
		{Stamped{}, false}, {Stamped{Hardware: 5, Backwards: 2}, false}, {Stamped{Kernel: 5, Late: 1}, false},
		{Stamped{Hardware: 5, Kernel: 1}, true}, {Stamped{Hardware: 5, Late: 1}, true},
	} {
		if err := tt.stamped.Err(); errors.Is(err, ErrClocks) != tt.mixed {
			t.Errorf("%+v: %v", tt.stamped, err)
		}
	}
}

// TestClocks checks that a packet without a stamp from the chosen clock is counted under the clock that it has.
func TestClocks(t *testing.T) {
	s := &Socket{info: Info{Stamps: Hardware}}
	at := []int64{s.chooseStamp(&control{hardwareNS: 50, kernelNS: 9}), s.chooseStamp(&control{kernelNS: 9}),
		s.chooseStamp(&control{hardwareNS: 60})}
	if at[0] != 50 || at[1] != 9 || at[2] != 60 || s.stamped != (Stamped{Hardware: 2, Kernel: 1, Backwards: 1}) {
		t.Errorf("%v, %+v", at, s.stamped)
	}
	if s.chooseStamp(&control{}) < 1e18 || s.stamped.Late != 1 {
		t.Errorf("%+v", s.stamped)
	}
	s = &Socket{info: Info{Stamps: Kernel}}
	if s.chooseStamp(&control{hardwareNS: 50, kernelNS: 9}) != 9 || s.stamped.Kernel != 1 {
		t.Errorf("%+v", s.stamped)
	}
}
