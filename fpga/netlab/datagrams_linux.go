package netlab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Datagrams opens a UDP socket in the calling thread's namespace for hosts of kernel programs. Its datagrams have no
// checksum, because the programs see a frame before a network card fills in the checksum.
func Datagrams(ctx context.Context, at netip.AddrPort) (*net.UDPConn, error) {
	config := net.ListenConfig{Control: prepareSocket}
	c, err := config.ListenPacket(ctx, "udp4", at.String())
	if err != nil {
		return nil, fmt.Errorf("%w: listen at %s: %w", ErrNetwork, at, err)
	}
	return c.(*net.UDPConn), nil
}

// Datagrams opens a UDP socket for hosts of kernel programs in the node's namespace; see the function Datagrams.
func (n *Node) Datagrams(at netip.AddrPort) (c *net.UDPConn, err error) {
	err = n.Do(func() error {
		c, err = Datagrams(context.Background(), at)
		return err
	})
	return c, err
}

// receiveBytes is the requested size of a socket's receive buffer. The kernel may allocate less.
const receiveBytes = 8 << 20

func prepareSocket(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1)
		// Without the right to exceed the kernel's limit, the buffer is smaller.
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBytes) != nil {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBytes)
		}
	})
	if err != nil {
		return err
	}
	return set
}
