package netlab

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// FrameConn is a packet socket at one interface whose waits have deadlines. Unlike a Socket, it waits in Go's scheduler.
type FrameConn struct {
	*os.File
	raw    syscall.RawConn
	buffer []byte
}

// Frames opens a packet socket that receives the interface's incoming frames, also those for other addresses.
func (i *Interface) Frames() (*FrameConn, error) {
	s, err := i.packetsForAll(true)
	if err != nil {
		return nil, err
	}
	c := &FrameConn{File: os.NewFile(uintptr(s.fd), i.Name), buffer: make([]byte, 1<<16)}
	if c.raw, err = c.SyscallConn(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// mostFrames is the maximum number of frames that one call of Receive passes on.
const mostFrames = 64

// Receive waits for frames until the read deadline, and passes up to 64 waiting ones to take. Its argument is valid
// during the call. After the deadline the error matches os.ErrDeadlineExceeded.
func (c *FrameConn) Receive(take func(frame []byte)) (n int, err error) {
	wait := c.raw.Read(func(fd uintptr) bool {
		for n < mostFrames {
			size, _, failed := unix.Recvfrom(int(fd), c.buffer, unix.MSG_DONTWAIT)
			switch failed {
			case nil:
				take(c.buffer[:size])
				n++
			case unix.EINTR:
			case unix.EAGAIN:
				return n > 0
			default:
				err = fmt.Errorf("%w: receive at %s: %w", ErrNetwork, c.Name(), failed)
				return true
			}
		}
		return true
	})
	if err == nil && n == 0 {
		err = wait
	}
	return n, err
}

// Send sends a frame.
func (c *FrameConn) Send(frame []byte) error {
	_, err := c.Write(frame)
	return err
}
