package live

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/capture"
)

// Socket captures packets from one interface. It is a capture.Source that never ends and never blocks. It must be used
// by only one goroutine at a time.
type Socket struct {
	fd      int
	file    *os.File        // owns fd
	raw     syscall.RawConn // raw connection of file
	link    *link
	info    Info
	restore *unix.HwTstampConfig // the card's earlier stamping configuration; nil if it was not changed

	frame   []byte // vlanBytes of free space, then the packet
	control []byte
	packets int
	lastNS  int64
	stamped Stamped
	drops   Drops
	seen    Drops // the interface's counters at the last query
	down    bool  // the interface went down

	outgoing bool // also captures sent packets
}

// Open starts a capture. Errors match ErrInterface, ErrPermission or ErrUnsupported.
func Open(o Options) (*Socket, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	at, err := findInterface(o.Interface)
	if err != nil {
		return nil, err
	}
	// Protocol 0 receives nothing until bind, so that filter and stamps are set before the first packet.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return nil, fmt.Errorf("%w: it needs the capability CAP_NET_RAW; use sudo, or once: sudo setcap "+
			"cap_net_raw,cap_net_admin=ep $(command -v olafctl)", ErrPermission)
	case err != nil:
		return nil, fmt.Errorf("%w: open a packet socket: %w", ErrUnsupported, err)
	}
	s := &Socket{
		fd: fd, file: os.NewFile(uintptr(fd), o.Interface),
		info:  Info{Interface: o.Interface, SnapBytes: o.SnapBytes},
		frame: make([]byte, vlanBytes+o.SnapBytes), control: make([]byte, 256),
	}
	if err := s.open(o, at.Index); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Socket) open(o Options, index int) error {
	var err error
	if s.raw, err = s.file.SyscallConn(); err != nil {
		return err
	}
	if s.link, err = openLink(index); err != nil {
		return err
	}
	state, err := s.link.query()
	switch {
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: %q has just vanished", ErrInterface, o.Interface)
	case err != nil:
		return err
	case state.hardware != unix.ARPHRD_ETHER && state.hardware != unix.ARPHRD_LOOPBACK:
		return fmt.Errorf("%w: %s carries no Ethernet frames (link type %d)", ErrInterface, o.Interface, state.hardware)
	case state.flags&unix.IFF_UP == 0:
		return fmt.Errorf("%w: %s is down; sudo ip link set %s up", ErrInterface, o.Interface, o.Interface)
	}
	s.seen, s.info.Loopback = state.drops, state.hardware == unix.ARPHRD_LOOPBACK
	if err := s.configure(o, index); err != nil {
		return err
	}
	err = unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: index})
	if err != nil {
		return fmt.Errorf("%w: bind to %s: %w", ErrInterface, o.Interface, err)
	}
	return nil
}

// networkOrder returns v with its bytes in big-endian order.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// configure sets all options that must be in effect before the first packet arrives.
func (s *Socket) configure(o Options, index int) error {
	if err := s.setBuffer(o.BufferBytes); err != nil {
		return err
	}
	if err := s.enableStamps(o.Stamps); err != nil {
		return err
	}
	if err := s.attachFilter(buildFilter(o)); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
		return fmt.Errorf("ask for packet lengths: %w", err)
	}
	if s.outgoing = o.Outgoing; !o.Outgoing {
		// Needs Linux 4.20; older kernels deliver sent packets, and Next skips them.
		_ = unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	}
	if o.Promiscuous {
		join := &unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
		if err := unix.SetsockoptPacketMreq(s.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, join); err != nil {
			return fmt.Errorf("make %s promiscuous: %w", o.Interface, err)
		}
	}
	return nil
}

// setBuffer sets the size of the socket buffer. If permitted, it exceeds the system's limit.
func (s *Socket) setBuffer(want int) error {
	err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, want)
	if err != nil {
		err = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, want)
	}
	if err != nil {
		return fmt.Errorf("ask for a buffer of %d bytes: %w", want, err)
	}
	doubled, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF) // the kernel doubles the requested size
	if err != nil {
		return fmt.Errorf("ask for the size of the buffer: %w", err)
	}
	// the largest possible buffer is one byte less than 1 GiB
	if s.info.BufferBytes = doubled / 2; s.info.BufferBytes < want-1 {
		s.addNote("the buffer holds %d bytes instead of %d: raise net.core.rmem_max, or grant CAP_NET_ADMIN",
			s.info.BufferBytes, want)
	}
	return nil
}

func (s *Socket) addNote(format string, args ...any) {
	s.info.Notes = append(s.info.Notes, fmt.Sprintf(format, args...))
}

// Name returns the name of the interface for use in a decoder's errors.
func (s *Socket) Name() string { return s.info.Interface }

// Info returns the options that are in effect, and the interface's MTU at the moment.
func (s *Socket) Info() Info {
	if s.link == nil { // closed
		return s.info
	}
	if state, err := s.link.query(); err == nil {
		s.info.MTU = state.mtu
	}
	return s.info
}

// StampCounts returns the number of packets received so far, by the source of their timestamps.
func (s *Socket) StampCounts() Stamped { return s.stamped }

// Next reads the next packet from the buffer. It never blocks. If there is no packet, it returns capture.ErrIdle and
// may be called again. All other errors are final. ErrGone is returned only after all packets that were captured
// before.
func (s *Socket) Next(p *capture.Packet) error {
	for {
		n, controls, flags, from, err := unix.Recvmsg(s.fd, s.frame[vlanBytes:], s.control, unix.MSG_TRUNC)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN && s.down:
			return s.goneError()
		case err == unix.EAGAIN:
			return capture.ErrIdle
		case err == unix.ENETDOWN || err == unix.ENODEV || err == unix.ENXIO:
			s.down = true // the buffer still contains captured packets
			continue
		case err != nil:
			return fmt.Errorf("capture from %s: %w", s.info.Interface, err)
		case flags&unix.MSG_CTRUNC != 0:
			return fmt.Errorf("capture from %s: %w", s.info.Interface, errControl)
		}
		if sender, ok := from.(*unix.SockaddrLinklayer); ok && sender.Pkttype == unix.PACKET_OUTGOING && !s.outgoing {
			continue
		}
		c, err := parseControl(s.control[:controls])
		if err != nil {
			return fmt.Errorf("capture from %s: %w", s.info.Interface, err)
		}
		s.convert(p, n, &c)
		return nil
	}
}

// convert converts a received packet of n bytes and its metadata into p.
func (s *Socket) convert(p *capture.Packet, n int, c *control) {
	s.packets++
	wire := max(n, c.wire)
	data := s.frame[vlanBytes : vlanBytes+min(n, s.info.SnapBytes)]
	if c.status&unix.TP_STATUS_CSUMNOTREADY != 0 && len(data) == wire {
		finishChecksum(data)
	}
	if c.tpid != 0 && len(data) >= 2*macBytes {
		data = restoreTag(s.frame[:vlanBytes+len(data)], c.tpid, c.tci)
		data, wire = data[:min(len(data), s.info.SnapBytes)], wire+vlanBytes
	}
	*p = capture.Packet{Number: s.packets, UnixNS: s.chooseStamp(c), Data: data, Wire: wire}
}

// chooseStamp returns the packet's timestamp in ns and counts its source.
func (s *Socket) chooseStamp(c *control) int64 {
	var at int64
	switch {
	case s.info.Stamps == Hardware && c.hardwareNS != 0:
		at = c.hardwareNS
		s.stamped.Hardware++
	case c.kernelNS != 0:
		at = c.kernelNS
		s.stamped.Kernel++
	default:
		at = time.Now().UnixNano()
		s.stamped.Late++
	}
	if at < s.lastNS {
		s.stamped.Backwards++
	}
	s.lastNS = at
	return at
}

// goneError returns the reason why the interface is gone.
func (s *Socket) goneError() error {
	if _, err := s.link.query(); errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("%w: %s was removed", ErrGone, s.info.Interface)
	}
	return fmt.Errorf("%w: %s went down", ErrGone, s.info.Interface)
}

// Stop ends the capture immediately. Next first returns the packets that are still in the buffer and then
// capture.ErrIdle.
func (s *Socket) Stop() error {
	nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
	return s.attachFilter([]unix.SockFilter{nothing})
}

func (s *Socket) attachFilter(program []unix.SockFilter) error {
	err := unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	if err != nil {
		return fmt.Errorf("attach a filter: %w", err)
	}
	return nil
}

// Wait returns nil when Next has a packet or an error to return. If the context ends first, Wait returns the context's
// error.
func (s *Socket) Wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		err := s.raw.Read(func(uintptr) bool { return s.isReady() })
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), s.file.SetReadDeadline(time.Time{}))
		}
		if err := s.file.SetReadDeadline(time.Time{}); err != nil { // clear a deadline from an earlier context
			return err
		}
	}
}

func (s *Socket) isReady() bool {
	poll := [1]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll[:], 0)
	return s.down || n > 0 && err == nil
}

// Drops returns the number of packets lost since Open. If there is an error, the counts are the last known ones.
// ErrGone means that the interface can no longer be queried.
func (s *Socket) Drops() (Drops, error) {
	stats, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return s.drops, fmt.Errorf("ask for the socket's drops: %w", err)
	}
	s.drops.Socket += int64(stats.Drops) // reading the statistics resets the kernel's counter
	state, err := s.link.query()
	if errors.Is(err, unix.ENODEV) {
		return s.drops, fmt.Errorf("%w: %s was removed, and its counters with it", ErrGone, s.info.Interface)
	}
	if err != nil {
		return s.drops, err
	}
	s.drops.add(&s.seen, &state.drops)
	s.seen = state.drops
	return s.drops, nil
}

// DroppedPackets returns the total of Drops, as a capture's decoder expects.
func (s *Socket) DroppedPackets() int64 {
	d, _ := s.Drops() // on an error these are the last known counts; Drops returns the error
	return d.Total()
}

// Close ends the capture and restores the network card's previous timestamping configuration.
func (s *Socket) Close() error {
	var errs []error
	if s.restore != nil {
		errs = append(errs, unix.IoctlSetHwTstamp(s.fd, s.info.Interface, s.restore))
		s.restore = nil
	}
	if s.link != nil {
		errs = append(errs, s.link.close())
		s.link = nil
	}
	return errors.Join(append(errs, s.file.Close())...)
}
