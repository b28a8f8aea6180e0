package process

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/olafctl/olaf/fpga/program"
)

// Codec encodes packets as datagrams and decodes them.
type Codec interface {
	// Encode writes a datagram to dst, which is long enough, and returns the used part of dst. generated is the origin,
	// on the common clock, of the run clock that the packet's times refer to.
	Encode(dst []byte, p *program.Packet, lanes []uint32, reward int32, generated uint64) ([]byte, error)
	// Decode decodes the datagram that b contains after Offset zero bytes. lanes is overwritten by the next call; ok is
	// false for an unknown packet.
	Decode(b []byte, p *program.Packet) (lanes []uint32, ok bool)
	// Offset returns the number of bytes that Decode needs before the datagram.
	Offset() int
}

// Traffic counts the packets sent and received by a socket.
type Traffic struct {
	Packets      int `json:"packets_out"`
	Calls        int `json:"send_calls"`
	Received     int `json:"packets_in"`
	ReceiveCalls int `json:"receive_calls"`
	Strange      int `json:"packets_strange"`          // not decodable by the codec
	Unsent       int `json:"packets_unsent,omitempty"` // refused by the kernel
}

// batch is the maximum number of packets per system call.
const batch = 64

// datagram is the maximum length of a datagram, including its offset.
const datagram = 9216

// joinedRoom is the maximum length of joined datagrams, including the offset of the first.
const joinedRoom = 1 << 16

// socket sends and receives packets in batches, with one system call per batch.
type socket struct {
	codec     Codec
	conn      *net.UDPConn
	packets   *ipv4.PacketConn
	traffic   Traffic
	out, in   []ipv4.Message
	joins     bool           // join packets, see joinPackets
	joined    []ipv4.Message // joined messages of the batch
	buffers   [][]byte       // buffers for outgoing datagrams
	rooms     [][]byte       // buffers for received datagrams, each after the codec's offset
	addresses map[netip.AddrPort]*net.UDPAddr
	sources   map[netip.Addr][]byte
	unsent    error // why the first unsent packet was not sent
}

func newSocket(conn *net.UDPConn, codec Codec) *socket {
	s := &socket{codec: codec, conn: conn, packets: ipv4.NewPacketConn(conn),
		addresses: map[netip.AddrPort]*net.UDPAddr{}, sources: map[netip.Addr][]byte{}, in: make([]ipv4.Message, batch)}
	room := datagram
	if receiveJoined(conn) == nil { // packets that were sent joined are received joined
		room = joinedRoom
	}
	for i := range s.in {
		s.rooms = append(s.rooms, make([]byte, room))
		s.in[i].Buffers = [][]byte{s.rooms[i][codec.Offset():]}
		if room == joinedRoom {
			s.in[i].OOB = make([]byte, joinedControl)
		}
	}
	return s
}

// joinPackets enables or disables sending successive packets to the same address as one message, which the kernel
// splits where necessary. This requires a checksum, which a network card or the receiving host completes.
func (s *socket) joinPackets(on bool) {
	s.joins = on && addChecksums(s.conn) == nil
}

func (s *socket) setDeadline(until time.Time) error { return s.conn.SetReadDeadline(until) }
func (s *socket) counts() Traffic                   { return s.traffic }
func (s *socket) sendError() error                  { return s.unsent }

// wake interrupts a wait for packets.
func (s *socket) wake() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) }

// read receives a batch of packets before the socket's deadline and calls take with each packet and its sender.
func (s *socket) read(take func(p *program.Packet, lanes []uint32, from netip.AddrPort)) (int, error) {
	n, err := s.packets.ReadBatch(s.in, 0)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err
	}
	n = max(n, 0)
	if n > 0 {
		s.traffic.ReceiveCalls++
	}
	for i := range n {
		from := netip.AddrPort{}
		if at, is := s.in[i].Addr.(*net.UDPAddr); is {
			from = at.AddrPort()
		}
		offset, end := s.codec.Offset(), s.codec.Offset()+s.in[i].N
		size := joinedSize(&s.in[i])
		for at := offset; ; at += size {
			clear(s.rooms[i][at-offset : at]) // free space for the codec, after the previous packet was taken
			s.decode(s.rooms[i][at-offset:min(at+size, end)], from, take)
			if at+size >= end {
				break
			}
		}
	}
	return n, nil
}

// decode decodes a datagram and calls take with the packet.
func (s *socket) decode(b []byte, from netip.AddrPort, take func(p *program.Packet, lanes []uint32, from netip.AddrPort)) {
	var p program.Packet
	lanes, ok := s.codec.Decode(b, &p)
	if !ok {
		s.traffic.Strange++
		return
	}
	s.traffic.Received++
	take(&p, lanes, from)
}

// write adds a packet to the next batch, with one copy per address in to. from is the source address; if it is the zero
// address, the kernel chooses one.
func (s *socket) write(p *program.Packet, lanes []uint32, reward int32, zeroNS uint64, from netip.Addr, to ...netip.AddrPort) error {
	if len(s.out)+len(to) > batch {
		s.flush()
	}
	n := len(s.out)
	for n >= len(s.buffers) {
		s.buffers = append(s.buffers, make([]byte, datagram))
	}
	b, err := s.codec.Encode(s.buffers[n], p, lanes, reward, zeroNS)
	if err != nil {
		return err
	}
	for _, at := range to {
		s.out = append(s.out, ipv4.Message{Buffers: [][]byte{b}, Addr: s.address(at), OOB: s.source(from)})
	}
	return nil
}

func (s *socket) address(to netip.AddrPort) *net.UDPAddr {
	a := s.addresses[to]
	if a == nil {
		a = net.UDPAddrFromAddrPort(to)
		s.addresses[to] = a
	}
	return a
}

// source returns a control message that sets the source address of a datagram.
func (s *socket) source(from netip.Addr) []byte {
	if !from.IsValid() {
		return nil
	}
	b := s.sources[from]
	if b == nil {
		b = (&ipv4.ControlMessage{Src: from.AsSlice()}).Marshal()
		s.sources[from] = b
	}
	return b
}

// offline returns an error that matches ErrOffline if the network is gone, and other errors unchanged.
func offline(err error) error {
	for _, gone := range []syscall.Errno{syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ENODEV, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %w", ErrOffline, err)
		}
	}
	return err
}

// flush sends the batch. Packets that the kernel rejects are counted and treated as lost.
func (s *socket) flush() {
	s.join()
	for left := s.joined; len(left) > 0; {
		n, err := s.packets.WriteBatch(left, 0)
		if err != nil && len(left[0].Buffers) > 1 { // the kernel cannot send them in one piece on this path
			s.joins = false
			left = slices.Concat(split(&left[0]), left[1:])
			continue
		}
		if err != nil {
			s.unsent = cmp.Or(s.unsent, offline(err))
			s.traffic.Unsent++
			left = left[1:]
			continue
		}
		s.traffic.Calls++
		for i := range left[:n] {
			s.traffic.Packets += len(left[i].Buffers)
		}
		left = left[n:]
	}
	s.out = s.out[:0]
}

// mostJoined and mostBytes limit the number and the size of packets that the kernel splits again.
const (
	mostJoined = 64
	mostBytes  = 65_000
)

// join combines the packets in the batch that have the same address into messages, so that they pass through the
// sender's network stack as one. The kernel splits a message into packets with the length of the first (UDP_SEGMENT).
func (s *socket) join() {
	s.joined = s.joined[:0]
	for i := range s.out {
		m := &s.out[i]
		if k := s.room(m); k != nil {
			k.Buffers = append(k.Buffers, m.Buffers[0])
			continue
		}
		s.joined = append(s.joined, ipv4.Message{Buffers: m.Buffers[:1:1], Addr: m.Addr, OOB: m.OOB})
	}
	for i := range s.joined {
		if m := &s.joined[i]; len(m.Buffers) > 1 {
			m.OOB = slices.Concat(m.OOB, segments(len(m.Buffers[0])))
		}
	}
}

// room returns the newest message for the packet's address if the packet can be appended to it, or nil.
func (s *socket) room(m *ipv4.Message) *ipv4.Message {
	if !s.joins || len(m.OOB) > 0 {
		return nil
	}
	for i := len(s.joined) - 1; i >= 0; i-- {
		k := &s.joined[i]
		if k.Addr != m.Addr {
			continue
		}
		n, first, last := len(k.Buffers), len(k.Buffers[0]), len(k.Buffers[len(k.Buffers)-1])
		if n == mostJoined || (n+1)*first > mostBytes || last != first || len(m.Buffers[0]) > first {
			return nil
		}
		return k
	}
	return nil
}

// split returns the packets in a message as separate messages.
func split(m *ipv4.Message) (all []ipv4.Message) {
	for i := range m.Buffers {
		all = append(all, ipv4.Message{Buffers: m.Buffers[i : i+1], Addr: m.Addr})
	}
	return all
}
