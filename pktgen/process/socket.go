package process

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/olafctl/olaf/fpga/program"
)

// Codec is how packets are in datagrams.
type Codec interface {
	// Encode writes a datagram into dst, which is long enough, and says which part of dst it is. generated is when the run clock of
	// the packet's times was 0, on the clock of everybody.
	Encode(dst []byte, p *program.Packet, lanes []uint32, reward int32, generated uint64) ([]byte, error)
	// Decode reads one that b holds from Offset on, behind zeros. lanes is overwritten by the next one; ok is false for what is no
	// packet of its.
	Decode(b []byte, p *program.Packet) (lanes []uint32, ok bool)
	// Offset is how much room a datagram needs in front of it.
	Offset() int
}

// Traffic is what went through a socket.
type Traffic struct {
	Packets      int `json:"packets_out"`
	Calls        int `json:"send_calls"`
	Received     int `json:"packets_in"`
	ReceiveCalls int `json:"receive_calls"`
	Strange      int `json:"packets_strange"`          // that no codec knows
	Unsent       int `json:"packets_unsent,omitempty"` // that the kernel refused
}

// batch is how many packets a system call takes.
const batch = 64

// datagram is the longest datagram with what stands in front of it.
const datagram = 9216

// socket sends and receives packets in batches of one system call.
type socket struct {
	codec     Codec
	conn      *net.UDPConn
	packets   *ipv4.PacketConn
	traffic   Traffic
	out, in   []ipv4.Message
	buffers   [][]byte // of what leaves
	rooms     [][]byte // of what comes, with what stands in front
	addresses map[netip.AddrPort]*net.UDPAddr
	sources   map[netip.Addr][]byte
	unsent    error // why the first one was
}

func newSocket(conn *net.UDPConn, codec Codec) *socket {
	s := &socket{codec: codec, conn: conn, packets: ipv4.NewPacketConn(conn),
		addresses: map[netip.AddrPort]*net.UDPAddr{}, sources: map[netip.Addr][]byte{}, in: make([]ipv4.Message, batch)}
	for i := range s.in {
		s.rooms = append(s.rooms, make([]byte, datagram))
		s.in[i].Buffers = [][]byte{s.rooms[i][codec.Offset():]}
	}
	return s
}

// wake ends a wait for packets.
func (s *socket) wake() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) }

// read takes a batch of packets that are there before the socket's deadline, with who sent each.
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
		var p program.Packet
		lanes, ok := s.codec.Decode(s.rooms[i][:s.codec.Offset()+s.in[i].N], &p)
		if !ok {
			s.traffic.Strange++
			continue
		}
		s.traffic.Received++
		from := netip.AddrPort{}
		if at, is := s.in[i].Addr.(*net.UDPAddr); is {
			from = at.AddrPort()
		}
		take(&p, lanes, from)
	}
	return n, nil
}

// write puts a packet into the batch that leaves next, a copy to each of some addresses. from is which of the socket's addresses it
// leaves from; the zero address leaves that to the kernel.
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

// source is what tells the kernel which address a datagram leaves from.
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

// offline tells a network that is gone from a packet that can't be sent.
func offline(err error) error {
	for _, gone := range []syscall.Errno{syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ENODEV, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %w", ErrOffline, err)
		}
	}
	return err
}

// flush sends the batch. What the kernel refuses is counted, as if it were lost.
func (s *socket) flush() {
	for left := s.out; len(left) > 0; {
		n, err := s.packets.WriteBatch(left, 0)
		if err != nil {
			s.unsent = cmp.Or(s.unsent, offline(err))
			s.traffic.Unsent++
			left = left[1:]
			continue
		}
		s.traffic.Calls++
		s.traffic.Packets += n
		left = left[n:]
	}
	s.out = s.out[:0]
}
