package process

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/olafctl/olaf/fpga/program"
)

// TestJoinedPackets sends packets of several lengths to two addresses, joined if possible. It checks that each receiver
// gets its packets in order, with their lanes, whether the kernel split them or not.
func TestJoinedPackets(t *testing.T) {
	listen := func() (*socket, netip.AddrPort) {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		at, err := netip.ParseAddrPort(conn.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		return newSocket(conn, &bareCodec{}), at
	}
	from, _ := listen()
	from.joinPackets(true)
	if !from.joins {
		t.Fatal("packets cannot be joined")
	}
	a, atA := listen()
	b, atB := listen()
	want := map[*socket][]int{}
	send := func(to *socket, at netip.AddrPort, lanes int) {
		p := program.Packet{Kind: program.Data, Job: 1, Seg: uint64(len(want[to])), Count: 1, Lanes: uint16(lanes)}
		if err := from.write(&p, slices.Repeat([]uint32{uint32(lanes)}, lanes), 0, 0, netip.Addr{}, at); err != nil {
			t.Fatal(err)
		}
		want[to] = append(want[to], lanes)
	}
	for _, lanes := range []int{300, 300, 300, 7, 300, 301, 301, 2} {
		send(a, atA, lanes)
		send(b, atB, 704)
	}
	for range 40 { // more than one message has room for
		send(b, atB, 704)
	}
	from.flush()
	if n := from.traffic; n.Packets != 56 || n.Unsent > 0 {
		t.Errorf("sent %+v, want 56 packets", n)
	}
	for to, lengths := range want {
		var got []int
		for len(got) < len(lengths) {
			if err := to.conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			n, err := to.read(func(p *program.Packet, lanes []uint32, _ netip.AddrPort) {
				if int(p.Seg) != len(got) || slices.ContainsFunc(lanes, func(v uint32) bool { return int(v) != len(lanes) }) {
					t.Errorf("packet %d has %d lanes %v", p.Seg, len(lanes), lanes)
				}
				got = append(got, len(lanes))
			})
			if n == 0 || err != nil {
				t.Fatalf("after %d of %d packets: %v", len(got), len(lengths), err)
			}
		}
		if !slices.Equal(got, lengths) {
			t.Errorf("received packets of %d lanes, want %d", got, lengths)
		}
	}
}

// bareCodec encodes a packet as its fragment's number and its lanes.
type bareCodec struct{ lanes []uint32 }

// Encode implements Codec.
func (*bareCodec) Encode(dst []byte, p *program.Packet, lanes []uint32, _ int32, _ uint64) ([]byte, error) {
	dst = binary.BigEndian.AppendUint64(dst[:0], p.Seg)
	for _, v := range lanes {
		dst = binary.BigEndian.AppendUint32(dst, v)
	}
	return dst, nil
}

// Decode implements Codec.
func (c *bareCodec) Decode(b []byte, p *program.Packet) (lanes []uint32, ok bool) {
	p.Seg, c.lanes = binary.BigEndian.Uint64(b), c.lanes[:0]
	for at := 8; at < len(b); at += 4 {
		c.lanes = append(c.lanes, binary.BigEndian.Uint32(b[at:]))
	}
	return c.lanes, true
}

// Offset implements Codec.
func (*bareCodec) Offset() int { return 0 }
