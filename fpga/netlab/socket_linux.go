package netlab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket sends and receives whole frames at one interface. One goroutine at a time may send, and one receive.
//
// Neither waits, so neither tells Go's scheduler that it is in the kernel. Who comes back from there looks for a place to go on, and
// holds the goroutines that it finds in the kernel meanwhile: one of a higher priority on the same processor would wait for it by
// looking again and again, and never let it go on.
type Socket struct {
	fd int
	to unix.RawSockaddrLinklayer
}

// ErrAgain says that no frame is there.
var ErrAgain = errors.New("no frame is there")

// Packets opens a packet socket at the interface. It receives what comes in there if hears is set, without waiting for it; one
// that only sends costs the interface's frames nothing.
func (i *Interface) Packets(hears bool) (*Socket, error) {
	if err := Missing(PacketRights...); err != nil {
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
		// Past the interface's queueing discipline, which has nothing to add to a virtual cable.
		return errors.Join(unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1),
			unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20), unix.Bind(s.fd, &bound))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: a packet socket at %s: %w", ErrNetwork, i.Name, err), s.Close())
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

// Show lets captures at the interface see what is sent, which takes a little longer then, or hides it again.
func (s *Socket) Show(on bool) error {
	past := 1
	if on {
		past = 0
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, past); err != nil {
		return fmt.Errorf("%w: the queueing discipline of interface %d: %w", ErrNetwork, s.to.Ifindex, err)
	}
	return nil
}

// Receive reads the next frame that came in; the error is ErrAgain where none is there.
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

// Wait sleeps until a frame is there, for some ms at most.
func (s *Socket) Wait(ms int) {
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	_, _ = unix.Poll(fds, ms) // whoever waits looks again
}

// Ears are sockets that one thread listens to.
type Ears struct {
	fds  []unix.PollFd
	held bool
}

// Listen gathers sockets; ready numbers them in this order.
func Listen(sockets ...*Socket) *Ears {
	e := &Ears{fds: make([]unix.PollFd, len(sockets))}
	for i, s := range sockets {
		e.fds[i] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
	}
	return e
}

// Hold keeps Wait from telling Go's scheduler, as sockets do: for a thread of its own that goes before others, and that has a place kept at
// which goroutines run.
func (e *Ears) Hold() { e.held = true }

// Wait sleeps until a frame is there at one of them, for some time at most, and calls ready for each that has one.
func (e *Ears) Wait(most time.Duration, ready func(socket int)) {
	if !e.poll(unix.NsecToTimespec(int64(max(most, 0)))) {
		return // whoever waits looks again
	}
	for i := range e.fds {
		if e.fds[i].Revents != 0 {
			ready(i)
		}
	}
}

// poll says whether a frame is there at one of them before some time is over.
func (e *Ears) poll(until unix.Timespec) bool {
	if !e.held {
		n, err := unix.Ppoll(e.fds, &until, nil)
		return n > 0 && err == nil
	}
	n, _, err := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(e.fds))), uintptr(len(e.fds)),
		uintptr(unsafe.Pointer(&until)), 0, 0, 0)
	return n > 0 && err == 0
}

// Lost is how many frames found no room in the socket since it was last asked.
func (s *Socket) Lost() (uint32, error) {
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
