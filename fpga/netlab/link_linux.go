package netlab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
)

// Interface is a network interface in a node.
type Interface struct {
	Node  *Node // nil for an interface in the process's own namespace
	Name  string
	Index int
	MAC   net.HardwareAddr
	MTU   int
	link  netlink.Link
}

// FindInterface returns the interface with the given name in the calling thread's namespace. The error matches
// ErrNetwork.
func FindInterface(name string) (*Interface, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("%w: interface %s: %w", ErrNetwork, name, err)
	}
	a := link.Attrs()
	return &Interface{Name: name, Index: a.Index, MAC: a.HardwareAddr, MTU: a.MTU, link: link}, nil
}

// Interface returns the node's interface with the given name.
func (n *Node) Interface(name string) (i *Interface, err error) {
	err = n.Do(func() error {
		if i, err = FindInterface(name); err != nil {
			return err
		}
		i.Node = n
		return nil
	})
	return i, err
}

func (i *Interface) setUp() error {
	if err := netlink.LinkSetUp(i.link); err != nil {
		return fmt.Errorf("%w: bring %s up: %w", ErrNetwork, i.Name, err)
	}
	return nil
}

// Cable connects two interfaces, each in the namespace of its node. An end that is on another machine is nil.
type Cable struct{ A, B *Interface }

// Ends returns the cable's ends that are on this machine.
func (c *Cable) Ends() (here []*Interface) {
	for _, end := range []*Interface{c.A, c.B} {
		if end != nil {
			here = append(here, end)
		}
	}
	return here
}

// MaxMTU is the largest MTU for native mode XDP programs, which must see a frame in one piece.
const MaxMTU = 3000

// End specifies one end of a cable by its node and the name of its interface, which may have at most 15 letters.
type End struct {
	Node *Node
	Name string
}

// ConnectNodes creates a virtual cable between two nodes and brings both ends up. Frames can have up to mtu bytes after
// their Ethernet header.
func ConnectNodes(a, b End, mtu int) (*Cable, error) {
	if mtu < 68 || mtu > 65535 {
		return nil, fmt.Errorf("%w: an MTU of %d bytes from %s to %s; 68 to 65535 can be, and up to %d in native mode",
			ErrNetwork, mtu, a.Node.name, b.Node.name, MaxMTU)
	}
	err := a.Node.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: a.Name, MTU: mtu}, PeerName: b.Name, PeerMTU: uint32(mtu),
			PeerNamespace: netlink.NsFd(b.Node.file.Fd()),
		})
	})
	if err != nil {
		return nil, fmt.Errorf("%w: a cable from %s to %s: %w", ErrNetwork, a.Node.name, b.Node.name, err)
	}
	c := new(Cable)
	c.A, err = a.switchOn()
	if err == nil {
		c.B, err = b.switchOn()
	}
	return c, err
}

func (e End) switchOn() (*Interface, error) {
	i, err := e.Node.Interface(e.Name)
	if err != nil {
		return nil, err
	}
	return i, i.Do(i.setUp)
}

// physical is the link type of a hardware interface. When its namespace ends, the kernel returns it to the namespace
// that it came from. Interfaces of other types, which were created by commands, are removed with the namespace.
const physical = "device"

// Adopt moves an interface from the calling thread's namespace to the node's and brings it up. When the node ends, the
// kernel moves a network card back and switches it off. Other interfaces are removed with the node, so they are only
// accepted if virtual is set. Interfaces that have an address or belong to a bridge or bond are rejected. The error
// matches ErrNetwork.
func (n *Node) Adopt(name string, virtual bool) (*Interface, error) {
	link, err := n.findAdoptable(name, virtual)
	if err != nil {
		return nil, err
	}
	return n.takeLink(link)
}

// findAdoptable returns the interface with the given name in the calling thread's namespace, and an error if it may not
// be moved.
func (n *Node) findAdoptable(name string, virtual bool) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("%w: interface %s for %s: %w; 'ip link' lists those that there are", ErrNetwork, name,
			n.name, err)
	}
	return link, n.mayTake(link, virtual)
}

func (n *Node) takeLink(link netlink.Link) (*Interface, error) {
	name := link.Attrs().Name
	if err := netlink.LinkSetNsFd(link, int(n.file.Fd())); err != nil {
		return nil, fmt.Errorf("%w: take interface %s for %s: %w", ErrNetwork, name, n.name, err)
	}
	return End{n, name}.switchOn()
}

// mayTake returns an error if an interface is in use or cannot be moved to the node.
func (n *Node) mayTake(link netlink.Link, virtual bool) error {
	refused := func(format string, a ...any) error {
		return fmt.Errorf("%w: interface %s for %s %w", ErrNetwork, link.Attrs().Name, n.name, fmt.Errorf(format, a...))
	}
	switch a := link.Attrs(); {
	case a.Flags&net.FlagLoopback != 0:
		return refused("leads nowhere")
	case link.Type() != physical && !virtual:
		return refused("is of kind %s and would end with the namespace; use a network card's, or say 'virtual: true' if it may", link.Type())
	case a.MasterIndex != 0:
		return refused("belongs to a bridge or a bond; 'ip link set %s nomaster' frees it", a.Name)
	}
	all, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return refused("does not tell its addresses: %w", err)
	}
	for i := range all {
		if all[i].IP.IsGlobalUnicast() {
			return refused("has the address %v, which it would lose, and whoever uses it the way there; 'ip "+
				"address flush dev %s' takes it off", all[i].IPNet, link.Attrs().Name)
		}
	}
	return nil
}

// Address assigns an IPv4 address with its prefix length to the interface.
func (i *Interface) Address(p netip.Prefix) error {
	return i.Do(func() error {
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if err := netlink.AddrAdd(i.link, a); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%w: address %v of %s: %w", ErrNetwork, p, i.Name, err)
		}
		return nil
	})
}

// Counts contains an interface's counters since its creation. Compare the two ends of a cable to find lost frames.
type Counts struct {
	Sent, Received               uint64
	SendDropped, ReceivedDropped uint64
}

// State is the state of an interface at one instant.
type State struct {
	Counts
	Up      bool
	Program uint32 // XDP program id, 0 for none
}

// State returns the interface's current state. The error matches ErrNetwork if the interface no longer exists.
func (i *Interface) State() (s State, err error) {
	err = i.Do(func() error {
		link, err := netlink.LinkByIndex(i.Index)
		if err != nil {
			return fmt.Errorf("%w: %s is gone: %w", ErrNetwork, i.Name, err)
		}
		a := link.Attrs()
		s.Up = a.Flags&net.FlagUp != 0
		if n := a.Statistics; n != nil {
			s.Counts = Counts{n.TxPackets, n.RxPackets, n.TxDropped, n.RxDropped}
		}
		if x := a.Xdp; x != nil && x.Attached {
			s.Program = x.ProgId
		}
		return nil
	})
	return s, err
}

// Counts returns the interface's counters. The error is the same as for State.
func (i *Interface) Counts() (Counts, error) {
	s, err := i.State()
	return s.Counts, err
}

// XDP returns the id of the XDP program that is attached to the interface, or 0 if there is none. The error is the same
// as for State.
func (i *Interface) XDP() (program uint32, err error) {
	s, err := i.State()
	return s.Program, err
}

// Do calls f in the namespace of the interface.
func (i *Interface) Do(f func() error) error {
	if i.Node == nil {
		return f()
	}
	return i.Node.Do(f)
}
