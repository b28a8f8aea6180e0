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

// Socket sends and receives raw frames at one interface. One goroutine at a time may send, and one receive.
//
// Its system calls do not block, so they are hidden from Go's scheduler. A goroutine that returns from a visible
// system call holds a lock while it looks for a free place to run. A thread of higher priority on the same processor
// would spin for that lock and never let it continue.
type Socket struct {
	fd int
	to unix.RawSockaddrLinklayer
}

// ErrAgain reports that no frame is waiting.
var ErrAgain = errors.New("no frame is there")

// Packets opens a packet socket at the interface. If hears, it receives incoming frames without blocking. A socket
// that only sends costs the interface's other frames nothing.
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
		// Bypass the interface's queueing discipline, which adds nothing to a virtual cable.
		return errors.Join(unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1),
			unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20), unix.Bind(s.fd, &bound))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: a packet socket at %s: %w", ErrNetwork, i.Name, err), s.Close())
	}
	return s, nil
}

// HearAll lets the interface receive frames for any address until the result is closed or the process ends.
func (i *Interface) HearAll() (io.Closer, error) {
	s, err := i.Packets(false)
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

// SetVisible shows sent frames to captures at the interface, which makes sending slightly slower, or hides them.
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

// Receive reads the next received frame. The error is ErrAgain if there is none.
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

// Wait sleeps until a frame has arrived, for at most ms milliseconds.
func (s *Socket) Wait(ms int) {
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	_, _ = unix.Poll(fds, ms) // callers poll again
}

// Ears is a set of sockets polled by one thread.
type Ears struct {
	fds  []unix.PollFd
	held bool
}

// NewEars returns a set of sockets, which are numbered in this order.
func NewEars(sockets ...*Socket) *Ears {
	e := &Ears{fds: make([]unix.PollFd, len(sockets))}
	for i, s := range sockets {
		e.fds[i] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
	}
	return e
}

// BypassScheduler hides Wait from Go's scheduler, like the sockets' calls. It is for a real-time thread that has a
// reserved place among Go's running threads.
func (e *Ears) BypassScheduler() { e.held = true }

// Wait sleeps until a frame has arrived at one of the sockets, for at most the given time, and calls ready for each
// socket with a frame.
func (e *Ears) Wait(most time.Duration, ready func(socket int)) {
	if !e.poll(unix.NsecToTimespec(int64(max(most, 0)))) {
		return // callers poll again
	}
	for i := range e.fds {
		if e.fds[i].Revents != 0 {
			ready(i)
		}
	}
}

// poll reports whether a frame arrived within the given time.
func (e *Ears) poll(until unix.Timespec) bool {
	if !e.held {
		n, err := unix.Ppoll(e.fds, &until, nil)
		return n > 0 && err == nil
	}
	n, _, err := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(e.fds))), uintptr(len(e.fds)),
		uintptr(unsafe.Pointer(&until)), 0, 0, 0)
	return n > 0 && err == 0
}

// TakeLost returns the number of frames dropped for lack of socket buffer since its last call.
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
