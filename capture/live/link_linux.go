package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// link queries the kernel about one interface over netlink. Unlike /sys/class/net, its answers always refer to the
// network namespace in which the link was opened.
type link struct {
	fd     int
	index  int
	answer []byte
}

// linkState is the state of an interface.
type linkState struct {
	hardware uint16 // one of ARPHRD_…
	flags    uint32 // IFF_… flags
	mtu      int    // 0 if the kernel does not report it
	drops    Drops  // drops since the interface was created
}

func openLink(index int) (*link, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("ask the kernel about interfaces: %w", err)
	}
	return &link{fd, index, make([]byte, 1<<15)}, nil
}

func (l *link) close() error { return unix.Close(l.fd) }

// query returns the current state of the interface, or ENODEV if it no longer exists.
func (l *link) query() (linkState, error) {
	var ask [unix.NLMSG_HDRLEN + unix.SizeofIfInfomsg]byte
	binary.NativeEndian.PutUint32(ask[0:], uint32(len(ask)))
	binary.NativeEndian.PutUint16(ask[4:], unix.RTM_GETLINK)
	binary.NativeEndian.PutUint16(ask[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(ask[unix.NLMSG_HDRLEN+4:], uint32(l.index))
	if err := unix.Sendto(l.fd, ask[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return linkState{}, fmt.Errorf("ask the kernel about an interface: %w", err)
	}
	n, _, err := unix.Recvfrom(l.fd, l.answer, 0)
	if err != nil {
		return linkState{}, fmt.Errorf("ask the kernel about an interface: %w", err)
	}
	return parseLink(l.answer[:n])
}

var errNetlink = errors.New("malformed answer about an interface")

// parseLink parses the response to an RTM_GETLINK request for one interface.
func parseLink(b []byte) (linkState, error) {
	if len(b) < unix.NLMSG_HDRLEN+4 || int(binary.NativeEndian.Uint32(b)) > len(b) {
		return linkState{}, errNetlink
	}
	kind, body := binary.NativeEndian.Uint16(b[4:]), b[unix.NLMSG_HDRLEN:]
	if kind == unix.NLMSG_ERROR {
		return linkState{}, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
	}
	if kind != unix.RTM_NEWLINK || len(body) < unix.SizeofIfInfomsg {
		return linkState{}, errNetlink
	}
	state := linkState{hardware: binary.NativeEndian.Uint16(body[2:]), flags: binary.NativeEndian.Uint32(body[8:])}
	for at := body[unix.SizeofIfInfomsg:]; len(at) >= unix.SizeofRtAttr; {
		length, name := int(binary.NativeEndian.Uint16(at)), binary.NativeEndian.Uint16(at[2:])
		if length < unix.SizeofRtAttr || length > len(at) {
			return linkState{}, errNetlink
		}
		switch value := at[unix.SizeofRtAttr:length]; {
		case name == unix.IFLA_MTU && len(value) == 4:
			state.mtu = int(binary.NativeEndian.Uint32(value))
		case name == unix.IFLA_STATS64: // after the others
			return state, state.drops.parseStats(value)
		}
		at = at[min((length+3)&^3, len(at)):]
	}
	return state, errNetlink
}

// parseStats parses the loss counters of a struct rtnl_link_stats64.
func (d *Drops) parseStats(b []byte) error {
	if len(b) < 16*8 {
		return errNetlink
	}
	word := func(i int) int64 { return int64(binary.NativeEndian.Uint64(b[8*i:])) }
	*d = Drops{RXDropped: word(6), RXLength: word(10), RXOver: word(11), RXCRC: word(12), RXFrame: word(13),
		RXFIFO: word(14), RXMissed: word(15)}
	return nil
}

// add adds the increase in each counter from last to now. If a driver was reset, its counters start at 0 again.
func (d *Drops) add(last, now *Drops) {
	for _, c := range []struct {
		sum       *int64
		last, now int64
	}{
		{&d.RXDropped, last.RXDropped, now.RXDropped}, {&d.RXMissed, last.RXMissed, now.RXMissed},
		{&d.RXFIFO, last.RXFIFO, now.RXFIFO}, {&d.RXOver, last.RXOver, now.RXOver}, {&d.RXCRC, last.RXCRC, now.RXCRC},
		{&d.RXFrame, last.RXFrame, now.RXFrame}, {&d.RXLength, last.RXLength, now.RXLength},
	} {
		if c.now < c.last {
			c.last = 0
		}
		*c.sum += c.now - c.last
	}
}

// findInterface returns the interface with the given name. If there is none, the error lists the existing interfaces.
func findInterface(name string) (*net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	names := make([]string, len(all))
	for i := range all {
		if names[i] = all[i].Name; names[i] == name {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("%w: there is no %q; there are %s", ErrInterface, name, strings.Join(names, ", "))
}
