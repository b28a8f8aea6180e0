package realtime

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
)

// Hosts says who is at the ends of the cables, beside the card's own generator and capture.
type Hosts struct {
	// Workers have a namespace each, in which programs can run, and so has the server; 0 has one namespace for all, in which no
	// addresses are.
	Workers int
	// Addresses are those of a worker: its frames are told apart by them. 0 is one.
	Addresses int
	// Outside are hosts behind interfaces of this machine, by the number of a worker, or Server for the server. Only planes take them
	// between whose hosts the kernel forwards.
	Outside map[int]Outside
	// Wires are cables that join interfaces of this machine, by the same numbers; where all workers have one namespace, it is 0.
	Wires map[int]Wire
}

// Server is the number of the server among the hosts.
func (h Hosts) Server() int { return max(h.Workers, 1) }

// foreign says that interfaces of this machine are among the ends of the cables. They keep their hardware addresses.
func (h Hosts) foreign() bool { return len(h.Outside)+len(h.Wires) > 0 }

// Wire is a cable of this machine's own between a host and the switch.
type Wire struct {
	Host, Hub string // interfaces at its two ends
	Virtual   bool   // they are no network cards', and may end with the card
}

// Outside is a host that is no namespace, but whatever an interface of this machine leads to.
type Outside struct {
	Interface string
	Virtual   bool             // it is no network card's, and may end with the card
	Hub       netip.Prefix     // address of the switch at the interface, in the host's network
	MAC       net.HardwareAddr // of the server
}

// MaxHosts and MaxAddresses bound Hosts, by the addresses that there are.
const (
	MaxHosts     = 250
	MaxAddresses = 250
)

// check refuses servers that frames can't be sent to.
func (h Hosts) check(b *Backend) error {
	server, outside := h.Outside[h.Server()]
	switch {
	case h.foreign() && b.Forwards:
		return fmt.Errorf("%w: %s forwards packets only over virtual cables", netlab.ErrNetwork, b.Address)
	case outside && len(server.MAC) != macBytes:
		return fmt.Errorf("%w: the server behind %s has the MAC %q", netlab.ErrNetwork, server.Interface, server.MAC)
	}
	return nil
}

// macBytes is the length of a hardware address.
const macBytes = 6

// names are the namespaces of workers.
func (h Hosts) names() []string {
	if h.Workers == 0 {
		return []string{"workers"}
	}
	names := make([]string, h.Workers)
	for i := range names {
		names[i] = "worker" + strconv.Itoa(i)
	}
	return names
}

// network is that of a worker's cable, or of the server's, which is the one behind the last worker's.
func network(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 78, byte(i), 0}), 24)
}

// reach makes the way to a host: a cable to a namespace of its own, or the interface behind which it is, whose other end is not here.
func (c *Card) reach(hub *netlab.Node, number int, name string) (host, here *netlab.Interface, err error) {
	if at, outside := c.hosts.Outside[number]; outside {
		here, err = hub.Adopt(at.Interface, at.Virtual)
		return nil, here, err
	}
	node, err := c.lab.Node(name)
	if err != nil {
		return nil, nil, err
	}
	var cable *netlab.Cable
	if w, laid := c.hosts.Wires[number]; laid {
		cable, err = netlab.Lay(netlab.End{Node: node, Name: w.Host}, netlab.End{Node: hub, Name: w.Hub}, w.Virtual)
	} else {
		cable, err = netlab.Connect(netlab.End{Node: node, Name: "uplink"}, netlab.End{Node: hub, Name: name}, mtu)
	}
	if err != nil {
		return nil, nil, err
	}
	return cable.A, cable.B, nil
}

// gauge is what the ends of the cables are called by which is measured where hosts are outside: what they hear is only what the hosts say.
const gauge = "gauge"

// gauges makes the ends by which frames come and go while is measured: those of the first worker and of the server, where nothing of
// it leaves the machine.
func (c *Card) gauges(hub *netlab.Node) (in, out *netlab.Interface, err error) {
	if len(c.hosts.Outside) == 0 {
		return c.in[0].A, c.out.A, nil
	}
	in, here, err := c.reach(hub, -1, gauge)
	if err != nil {
		return nil, nil, err
	}
	c.in = append(c.in, &netlab.Cable{A: in, B: here})
	_, out, err = c.reach(hub, -1, gauge+"d")
	return in, out, err
}

// join makes workers, switch and server hosts that reach each other. To a worker the switch's interface has the server's hardware
// address, so that what the queue lets through is for the server as it is; where interfaces keep theirs, the pacer writes it.
func (c *Card) join(hub *netlab.Node) error {
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
		if err := cable.Join(network(i), addresses); err != nil {
			return err
		}
	}
	if c.hosts.foreign() {
		return nil
	}
	for _, cable := range c.in {
		if err := cable.B.SetMAC(c.out.B.MAC); err != nil {
			return err
		}
	}
	return nil
}

// serverMAC is the hardware address of the server.
func (c *Card) serverMAC() net.HardwareAddr {
	if at, outside := c.hosts.Outside[c.hosts.Server()]; outside {
		return at.MAC
	}
	return c.out.B.MAC
}

// Worker is the interface of a worker in a namespace, at the worker's end, and the first of its addresses.
func (c *Card) Worker(i int) (*netlab.Interface, netip.Addr) { return c.in[i].A, hostAddress(i) }

// ServerAddress is that of the server, where there are hosts.
func (c *Card) ServerAddress() netip.Addr { return hostAddress(c.hosts.Workers) }

func hostAddress(i int) netip.Addr { return network(i).Addr().Next().Next() }

// Hub is the interface of the switch towards a worker, or with as many as there are workers towards the server.
func (c *Card) Hub(host int) *netlab.Interface {
	if host == c.hosts.Workers {
		return c.out.A
	}
	return c.in[host].B
}

// marker is a plane that tells passing ACKs how full it is.
type marker interface {
	AttachMark(at *netlab.Interface, mode xdp.Mode) (io.Closer, error)
}

// Route is the network of a host, whose own end of the cable is A. Hub is the switch's address in it.
type Route struct {
	To  netip.Prefix
	Hub netip.Addr
	By  *netlab.Cable
}

// forwarder is a plane that passes packets on between hosts until what it returns is closed, and tells passing ACKs how full it is.
type forwarder interface {
	Forward(server *netlab.Interface, routes []Route) (io.Closer, error)
}

// routes are those to all hosts.
func (c *Card) routes() (all []Route) {
	for i, cable := range append(slices.Clone(c.in), &netlab.Cable{A: c.out.B, B: c.out.A}) {
		to := network(i)
		all = append(all, Route{To: to, Hub: to.Addr().Next(), By: cable})
	}
	return all
}
