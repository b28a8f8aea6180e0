package netlab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
)

// Forward lets a node pass packets on between its interfaces.
func (n *Node) Forward() error {
	err := n.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644) })
	if err != nil {
		return fmt.Errorf("%w: let %s forward: %w", ErrNetwork, n.name, err)
	}
	return nil
}

// Join gives end A of a cable addresses of a network, from the second one on, and end B the first one, by which all that A's node
// sends elsewhere goes.
func (c *Cable) Join(network netip.Prefix, addresses int) error {
	hub := network.Masked().Addr().Next()
	errs := []error{c.B.Address(netip.PrefixFrom(hub, network.Bits()))}
	for at, i := hub.Next(), 0; i < addresses; at, i = at.Next(), i+1 {
		errs = append(errs, c.A.Address(netip.PrefixFrom(at, network.Bits())))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	err := c.A.Do(func() error { return netlink.RouteAdd(&netlink.Route{LinkIndex: c.A.Index, Gw: net.IP(hub.AsSlice())}) })
	if err != nil {
		return fmt.Errorf("%w: the route of %s: %w", ErrNetwork, c.A.Name, err)
	}
	return nil
}

// SetMAC gives the interface another hardware address.
func (i *Interface) SetMAC(to net.HardwareAddr) error {
	if err := i.Do(func() error { return netlink.LinkSetHardwareAddr(i.link, to) }); err != nil {
		return fmt.Errorf("%w: the address of %s: %w", ErrNetwork, i.Name, err)
	}
	i.MAC = to
	return nil
}
