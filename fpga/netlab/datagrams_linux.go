package netlab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Datagrams opens a UDP socket in the namespace of the calling thread by which hosts speak to programs of the kernel. What it sends
// carries no checksum: programs meet it where no card has filled one in.
func Datagrams(ctx context.Context, at netip.AddrPort) (*net.UDPConn, error) {
	config := net.ListenConfig{Control: prepare}
	c, err := config.ListenPacket(ctx, "udp4", at.String())
	if err != nil {
		return nil, fmt.Errorf("%w: listen at %s: %w", ErrNetwork, at, err)
	}
	return c.(*net.UDPConn), nil
}

// Datagrams opens such a socket inside.
func (n *Node) Datagrams(at netip.AddrPort) (c *net.UDPConn, err error) {
	err = n.Do(func() error {
		c, err = Datagrams(context.Background(), at)
		return err
	})
	return c, err
}

// receiveBytes is the room of such sockets for what comes, as far as the kernel gives it.
const receiveBytes = 8 << 20

func prepare(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1)
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBytes) != nil { // without the right there is less
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBytes)
		}
	})
	if err != nil {
		return err
	}
	return set
}
