package realtime

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
)

// Hosts describes the workers and the server at the ends of the cables.
type Hosts struct {
	// Workers is the number of workers. Each worker and the server have their own namespace, in which programs can run.
	// If Workers is 0, one namespace without addresses stands for all workers.
	Workers int
	// Addresses is the number of addresses per worker, by which its frames differ; 0 means one.
	Addresses int
	// Outside lists hosts that are connected to interfaces of this machine, by worker number, or Server for the server.
	// It needs planes whose packets the kernel forwards between hosts.
	Outside map[int]Outside
	// Wires lists cables between interfaces of this machine, by the same numbers. If all workers share a namespace, its
	// number is 0.
	Wires map[int]Wire
	// Generator is an interface of this machine at which the generator sends, instead of sending to the queue. The card
	// is then only a generator.
	Generator string
}

// Between returns the hosts for a card that is only a queue between two interfaces of this machine. Frames arrive at in
// and leave at out. Both interfaces stay in their namespace.
func Between(in, out string) Hosts {
	return Hosts{Outside: map[int]Outside{0: {Interface: in, InPlace: true}, 1: {Interface: out, InPlace: true}}}
}

// isBetween reports whether the card is only a queue between two interfaces of this machine.
func (h Hosts) isBetween() bool { return h.Outside[0].InPlace }

// Server returns the server's number among the hosts. It follows the number of the last worker.
func (h Hosts) Server() int { return max(h.Workers, 1) }

// hasForeign reports whether interfaces of this machine are used as ends of cables. Such interfaces keep their MAC
// addresses.
func (h Hosts) hasForeign() bool { return len(h.Outside)+len(h.Wires) > 0 }

// Wire is an existing cable between a host and the switch.
type Wire struct {
	Host, Hub string // interfaces at the two ends
	Virtual   bool   // the interfaces are not network cards, and may be removed with the card
}

// Outside describes a host that is connected to an interface of this machine.
type Outside struct {
	Interface string
	Virtual   bool             // the interface is not a network card, and may be removed with the card
	Hub       netip.Prefix     // the switch's address at the interface, in the host's network
	MAC       net.HardwareAddr // MAC address of the server
	// InPlace means that the interface, with its addresses, stays in this process's namespace.
	InPlace bool
}

// MaxHosts and MaxAddresses limit Hosts to the available addresses.
const (
	MaxHosts     = 250
	MaxAddresses = 250
)

// checkHosts returns an error for a combination that the backend does not support, or for a server without a valid MAC
// address.
func (h Hosts) checkHosts(b *dataplane.Backend) error {
	server, outside := h.Outside[h.Server()]
	switch {
	case h.hasForeign() && b.Forwards:
		return fmt.Errorf("%w: %s forwards packets only over virtual cables", netlab.ErrNetwork, b.Address)
	case outside && !server.InPlace && len(server.MAC) != macBytes:
		return fmt.Errorf("%w: the server behind %s has the MAC address %q", netlab.ErrNetwork, server.Interface,
			server.MAC)
	}
	return nil
}

// macBytes is the length of a MAC address.
const macBytes = 6

// workerNames returns the names of the workers' namespaces.
func (h Hosts) workerNames() []string {
	if h.Workers == 0 {
		return []string{"workers"}
	}
	names := make([]string, h.Workers)
	for i := range names {
		names[i] = "worker" + strconv.Itoa(i)
	}
	return names
}

// hostNetwork returns the IP network for the cable of host i. The server's number follows the last worker's.
func hostNetwork(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 78, byte(i), 0}), 24)
}

// connectHost connects a host to the switch and returns the interfaces at the host and at the switch. The host is
// usually a new namespace at the end of a cable. For a host that is connected to an interface of this machine, the
// first result is nil.
func (c *Card) connectHost(hub *netlab.Node, number int, name string) (host, here *netlab.Interface, err error) {
	switch at, outside := c.hosts.Outside[number]; {
	case outside && at.InPlace:
		here, err = c.findInPlace(at.Interface)
		return nil, here, err
	case outside:
		here, err = hub.Adopt(at.Interface, at.Virtual)
		return nil, here, err
	}
	node, err := c.lab.Node(name)
	if err != nil {
		return nil, nil, err
	}
	var cable *netlab.Cable
	if w, laid := c.hosts.Wires[number]; laid {
		cable, err = netlab.LayCable(netlab.End{Node: node, Name: w.Host}, netlab.End{Node: hub, Name: w.Hub}, w.Virtual)
	} else {
		cable, err = netlab.ConnectNodes(netlab.End{Node: node, Name: "uplink"}, netlab.End{Node: hub, Name: name}, mtu)
	}
	if err != nil {
		return nil, nil, err
	}
	return cable.A, cable.B, nil
}

// findInPlace returns an interface of this process's network namespace, which is not moved to another namespace. The
// interface must be up.
func (c *Card) findInPlace(name string) (*netlab.Interface, error) {
	if c.here == nil {
		here, err := c.lab.Enter("this machine", "/proc/thread-self/ns/net")
		if err != nil {
			return nil, err
		}
		c.here = here
	}
	at, err := c.here.Interface(name)
	if err != nil {
		return nil, err
	}
	s, err := at.State()
	if err == nil && !s.Up {
		err = fmt.Errorf("%w: interface %s is down; run 'ip link set %s up'", netlab.ErrNetwork, name, name)
	}
	return at, err
}

// gauge is the name of the interfaces between which capacity is measured if hosts are connected to interfaces of this
// machine. The interfaces of such hosts cannot be used, because they receive only frames from the hosts.
const gauge = "gauge"

// makeGauges returns the interfaces for sending and receiving while capacity is measured. It returns the interfaces of
// the first worker and of the server, or creates extra ones if frames would otherwise leave the machine.
func (c *Card) makeGauges(hub *netlab.Node) (in, out *netlab.Interface, err error) {
	if len(c.hosts.Outside) == 0 {
		return c.in[0].A, c.out.A, nil
	}
	in, here, err := c.connectHost(hub, -1, gauge)
	if err != nil {
		return nil, nil, err
	}
	c.in = append(c.in, &netlab.Cable{A: in, B: here})
	_, out, err = c.connectHost(hub, -1, gauge+"d")
	return in, out, err
}

// joinHosts assigns addresses and routes so that workers, switch and server can reach each other. The switch's
// interfaces to workers have the server's MAC address, so that frames that pass the queue need not be rewritten. If
// interfaces keep their own MAC addresses, the pacer rewrites the frames.
func (c *Card) joinHosts(hub *netlab.Node) error {
	if c.hosts.Workers == 0 {
		return nil
	}
	if !c.backend.Forwards {
		if err := hub.Forward(); err != nil {
			return err
		}
	}
	for i, cable := range append(slices.Clone(c.in[:c.hosts.Workers]), &netlab.Cable{A: c.out.B, B: c.out.A}) {
		if at, outside := c.hosts.Outside[i]; outside {
			if err := cable.B.Address(at.Hub); err != nil {
				return err
			}
			continue
		}
		addresses := 1
		if i < c.hosts.Workers {
			addresses = max(c.hosts.Addresses, 1)
		}
		if err := cable.Join(hostNetwork(i), addresses); err != nil {
			return err
		}
	}
	if c.hosts.hasForeign() {
		return nil
	}
	for _, cable := range c.in {
		if err := cable.B.SetMAC(c.out.B.MAC); err != nil {
			return err
		}
	}
	return nil
}

// serverMAC returns the server's MAC address.
func (c *Card) serverMAC() net.HardwareAddr {
	if at, outside := c.hosts.Outside[c.hosts.Server()]; outside {
		return at.MAC
	}
	return c.out.B.MAC
}

// Worker returns the interface and the first address of a worker in a namespace.
func (c *Card) Worker(i int) (*netlab.Interface, netip.Addr) { return c.in[i].A, hostAddress(i) }

// ServerAddress returns the server's IP address if the card has hosts.
func (c *Card) ServerAddress() netip.Addr { return hostAddress(c.hosts.Workers) }

func hostAddress(i int) netip.Addr { return hostNetwork(i).Addr().Next().Next() }

// Hub returns the switch's interface to a worker. If host is the number of workers, it returns the switch's interface
// to the server.
func (c *Card) Hub(host int) *netlab.Interface {
	if host == c.hosts.Workers {
		return c.out.A
	}
	return c.in[host].B
}

// marker is implemented by planes that write their fill level into passing ACKs.
type marker interface {
	AttachMark(at *netlab.Interface, mode dataplane.Mode) (io.Closer, error)
}

// Route describes how to reach a host: by its network, the cable with the host at end A, and the switch's address in
// this network.
type Route struct {
	To  netip.Prefix
	Hub netip.Addr
	By  *netlab.Cable
}

// forwarder is implemented by planes that forward packets between hosts, until the result of Forward is closed, and
// write their fill level into passing ACKs.
type forwarder interface {
	Forward(server *netlab.Interface, routes []Route) (io.Closer, error)
}

// listRoutes returns the routes to all hosts.
func (c *Card) listRoutes() (all []Route) {
	for i, cable := range append(slices.Clone(c.in), &netlab.Cable{A: c.out.B, B: c.out.A}) {
		to := hostNetwork(i)
		all = append(all, Route{To: to, Hub: to.Addr().Next(), By: cable})
	}
	return all
}
