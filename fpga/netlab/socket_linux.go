package netlab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket sends and receives raw frames at one interface. One goroutine may send and one may receive at the same time.
// Its system calls do not block and are hidden from Go's scheduler. Otherwise, a goroutine that returns from a system
// call would hold a lock of the scheduler, and a real-time thread on the same processor would spin for that lock
// forever.
type Socket struct {
	fd int
	to unix.RawSockaddrLinklayer
}

// ErrAgain is the error of Receive if no frame is waiting.
var ErrAgain = errors.New("no frame is there")

// Packets opens a packet socket at the interface. If hears is set, the socket receives all incoming frames, without
// blocking. A socket that only sends does not slow down the interface's other traffic.
func (i *Interface) Packets(hears bool) (*Socket, error) {
	if err := CheckRights(PacketRights...); err != nil {
		return nil, err
	}
	s := &Socket{fd: -1, to: unix.RawSockaddrLinklayer{Family: unix.AF_PACKET, Ifindex: int32(i.Index), Halen: 6}}
	err := i.Do(func() (err error) {
		if s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		bound := unix.SockaddrLinklayer{Ifindex: i.Index, Halen: 6}
		if hears {
			bound.Protocol = binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
		}
		// Bypass the interface's queueing discipline, which has no use on a virtual cable.
		return errors.Join(unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1),
			unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20), unix.Bind(s.fd, &bound))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: a packet socket at %s: %w", ErrNetwork, i.Name, err), s.Close())
	}
	return s, nil
}

// HearAll sets the interface to promiscuous mode, in which it receives frames for any address, until the result is
// closed or the process ends.
func (i *Interface) HearAll() (io.Closer, error) { return i.packetsForAll(false) }

// packetsForAll opens a packet socket like Packets, and keeps the interface in promiscuous mode while it is open.
func (i *Interface) packetsForAll(hears bool) (*Socket, error) {
	s, err := i.Packets(hears)
	if err != nil {
		return nil, err
	}
	request := unix.PacketMreq{Ifindex: int32(i.Index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(s.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &request); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: receive frames for any address at %s: %w", ErrNetwork, i.Name, err), s.Close())
	}
	return s, nil
}

// Send sends a frame.
func (s *Socket) Send(frame []byte) error {
	for {
		_, _, err := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(frame))),
			uintptr(len(frame)), 0,
			uintptr(unsafe.Pointer(&s.to)), unix.SizeofSockaddrLinklayer)
		switch err {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return err
		}
	}
}

// SetVisible sets whether sent frames appear in captures at the interface. If they do, sending is slightly slower.
func (s *Socket) SetVisible(on bool) error {
	past := 1
	if on {
		past = 0
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, past); err != nil {
		return fmt.Errorf("%w: the queueing discipline of interface %d: %w", ErrNetwork, s.to.Ifindex, err)
	}
	return nil
}

// Receive reads the next received frame into buf and returns its length. The error is ErrAgain if no frame is waiting.
func (s *Socket) Receive(buf []byte) (int, error) {
	n, _, err := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))),
		uintptr(len(buf)), 0, 0, 0)
	switch err {
	case 0:
		return int(n), nil
	case unix.EAGAIN, unix.EINTR:
		return 0, ErrAgain
	default:
		return 0, err
	}
}

// Wait waits until a frame arrives, for at most ms milliseconds.
func (s *Socket) Wait(ms int) {
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	_, _ = unix.Poll(fds, ms) // callers poll again
}

// PollSet is a set of sockets that one thread polls.
type PollSet struct {
	fds  []unix.PollFd
	held bool
}

// NewEars returns a set with the given sockets, which are numbered in order.
func NewEars(sockets ...*Socket) *PollSet {
	e := &PollSet{fds: make([]unix.PollFd, len(sockets))}
	for i, s := range sockets {
		e.fds[i] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
	}
	return e
}

// BypassScheduler hides the system call in Wait from Go's scheduler, as for the calls of Socket. It is for a real-time
// thread that has a reserved place among Go's running threads.
func (e *PollSet) BypassScheduler() { e.held = true }

// Wait waits until a frame arrives at any of the sockets, for at most the given time. It then calls ready for each
// socket that has a frame.
func (e *PollSet) Wait(most time.Duration, ready func(socket int)) {
	if !e.poll(unix.NsecToTimespec(int64(max(most, 0)))) {
		return // callers poll again
	}
	for i := range e.fds {
		if e.fds[i].Revents != 0 {
			ready(i)
		}
	}
}

// poll reports whether a frame arrived at any of the sockets within the given time.
func (e *PollSet) poll(until unix.Timespec) bool {
	if !e.held {
		n, err := unix.Ppoll(e.fds, &until, nil)
		return n > 0 && err == nil
	}
	n, _, err := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(e.fds))), uintptr(len(e.fds)),
		uintptr(unsafe.Pointer(&until)), 0, 0, 0)
	return n > 0 && err == 0
}

// TakeLost returns the number of frames that were dropped since its previous call because the socket's buffer was full.
func (s *Socket) TakeLost() (uint32, error) {
	stats, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, err
	}
	return stats.Drops, nil
}

// Close closes the socket.
func (s *Socket) Close() error {
	if s.fd < 0 {
		return nil
	}
	return unix.Close(s.fd)
}
