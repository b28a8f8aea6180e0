package realtime

import (
	"io"
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
}

// MaxHosts and MaxAddresses bound Hosts, by the addresses that there are.
const (
	MaxHosts     = 250
	MaxAddresses = 250
)

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

// join makes workers, switch and server hosts that reach each other. To a worker the switch's interface has the server's hardware
// address, so that what the queue lets through is for the server as it is.
func (c *Card) join(hub *netlab.Node) error {
	if c.hosts.Workers == 0 {
		return nil
	}
	if !c.backend.Forwards {
		if err := hub.Forward(); err != nil {
			return err
		}
	}
	server := netlab.Cable{A: c.out.B, B: c.out.A}
	if err := server.Join(network(c.hosts.Workers), 1); err != nil {
		return err
	}
	for i, cable := range c.in {
		if err := cable.Join(network(i), max(c.hosts.Addresses, 1)); err != nil {
			return err
		}
		if err := cable.B.SetMAC(c.out.B.MAC); err != nil {
			return err
		}
	}
	return nil
}

// Worker is the interface of a worker, at the worker's end, and the first of its addresses.
func (c *Card) Worker(i int) (*netlab.Interface, netip.Addr) { return c.in[i].A, hostAddress(i) }

// ServerAddress is that of the server, where there are hosts.
func (c *Card) ServerAddress() netip.Addr { return hostAddress(c.hosts.Workers) }

func hostAddress(i int) netip.Addr { return network(i).Addr().Next().Next() }

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
