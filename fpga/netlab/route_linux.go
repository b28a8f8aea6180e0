package netlab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
)

// forwarding is the path of the kernel setting for IP forwarding in a namespace.
const forwarding = "/proc/sys/net/ipv4/ip_forward"

// Forward enables IP forwarding between the node's interfaces. If /proc/sys is read-only, as in a container, it fails
// unless forwarding is already enabled.
func (n *Node) Forward() error {
	err := n.Do(func() error { return switchOn(forwarding) })
	if errors.Is(err, syscall.EROFS) {
		err = fmt.Errorf("%w; start the container with --privileged or --sysctl net.ipv4.ip_forward=1", err)
	}
	if err != nil {
		return fmt.Errorf("%w: let %s forward: %w", ErrNetwork, n.name, err)
	}
	return nil
}

// switchOn writes 1 to the setting at path, unless its value is already 1.
func switchOn(path string) error {
	err := os.WriteFile(path, []byte("1\n"), 0o644)
	if err == nil {
		return nil
	}
	if now, readErr := os.ReadFile(path); readErr == nil && strings.TrimSpace(string(now)) == "1" {
		return nil
	}
	return err
}

// Join assigns addresses in a network to the cable's ends. End B gets the first address and end A the following ones.
// End B becomes the default gateway of A's node.
func (c *Cable) Join(network netip.Prefix, addresses int) error {
	hub := network.Masked().Addr().Next()
	errs := []error{c.B.Address(netip.PrefixFrom(hub, network.Bits()))}
	for at, i := hub.Next(), 0; i < addresses; at, i = at.Next(), i+1 {
		errs = append(errs, c.A.Address(netip.PrefixFrom(at, network.Bits())))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	err := c.A.Do(func() error {
		return netlink.RouteAdd(&netlink.Route{LinkIndex: c.A.Index,
			Gw: net.IP(hub.AsSlice())})
	})
	if err != nil {
		return fmt.Errorf("%w: the route of %s: %w", ErrNetwork, c.A.Name, err)
	}
	return nil
}

// SetMAC changes the interface's MAC address.
func (i *Interface) SetMAC(to net.HardwareAddr) error {
	if err := i.Do(func() error { return netlink.LinkSetHardwareAddr(i.link, to) }); err != nil {
		return fmt.Errorf("%w: the address of %s: %w", ErrNetwork, i.Name, err)
	}
	i.MAC = to
	return nil
}
