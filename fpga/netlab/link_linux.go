package netlab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
)

// Interface is one network interface of a node.
type Interface struct {
	Node  *Node // nil of one of this process's own namespace
	Name  string
	Index int
	MAC   net.HardwareAddr
	MTU   int
	link  netlink.Link
}

// findInterface looks in the namespace of the calling thread.
func findInterface(name string) (*Interface, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("%w: interface %s: %w", ErrNetwork, name, err)
	}
	a := link.Attrs()
	return &Interface{Name: name, Index: a.Index, MAC: a.HardwareAddr, MTU: a.MTU, link: link}, nil
}

// Interface finds one of the node's by its name.
func (n *Node) Interface(name string) (i *Interface, err error) {
	err = n.Do(func() error {
		if i, err = findInterface(name); err != nil {
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

// Cable is a pair of virtual interfaces, each in the namespace of its node.
type Cable struct{ A, B *Interface }

// Ends are those that are here: one may be of whatever is behind an interface.
func (c *Cable) Ends() (here []*Interface) {
	for _, end := range []*Interface{c.A, c.B} {
		if end != nil {
			here = append(here, end)
		}
	}
	return here
}

// MaxMTU is the longest frame, without its Ethernet header, for which a cable carries programs in native mode that see a frame
// in one piece.
const MaxMTU = 3000

// End is where a cable ends: a node, and the name of the interface there, at most 15 letters.
type End struct {
	Node *Node
	Name string
}

// Connect lays a cable between two nodes, and switches both of its ends on. Frames are up to mtu bytes long behind their Ethernet
// header.
func Connect(a, b End, mtu int) (*Cable, error) {
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

// physical is the kind of an interface that hardware made: the kernel gives it back to its first namespace when the one that it is
// in ends. What was made by a command ends with the namespace.
const physical = "device"

// Adopt takes an interface out of the namespace of the calling thread into the node's, and switches it on. When the node ends, in
// whatever way, the kernel gives a network card's back, switched off; virtual says that it may be another one, which ends with the
// node. One that is in use, as it has an address or belongs to a bridge or a bond, stays where it is. The error matches ErrNetwork.
func (n *Node) Adopt(name string, virtual bool) (*Interface, error) {
	link, err := n.find(name, virtual)
	if err != nil {
		return nil, err
	}
	return n.take(link)
}

// find looks for an interface that may be taken, in the namespace of the calling thread.
func (n *Node) find(name string, virtual bool) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("%w: interface %s for %s: %w; 'ip link' lists those that there are", ErrNetwork, name,
			n.name, err)
	}
	return link, n.mayTake(link, virtual)
}

func (n *Node) take(link netlink.Link) (*Interface, error) {
	name := link.Attrs().Name
	if err := netlink.LinkSetNsFd(link, int(n.file.Fd())); err != nil {
		return nil, fmt.Errorf("%w: take interface %s for %s: %w", ErrNetwork, name, n.name, err)
	}
	return End{n, name}.switchOn()
}

// mayTake refuses what can't be taken, or what somebody needs where it is.
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
			return refused("has the address %v, which it would lose, and whoever uses it the way there; 'ip address flush dev %s' takes it off", all[i].IPNet, link.Attrs().Name)
		}
	}
	return nil
}

// Address gives the interface an IPv4 address with the length of its network.
func (i *Interface) Address(p netip.Prefix) error {
	return i.Do(func() error {
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if err := netlink.AddrAdd(i.link, a); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%w: address %v of %s: %w", ErrNetwork, p, i.Name, err)
		}
		return nil
	})
}

// Counts are what an interface counted since it was made. Both ends of a cable are to be counted: what is missing was lost.
type Counts struct {
	Sent, Received               uint64
	SendDropped, ReceivedDropped uint64
}

// State is what an interface is at the moment.
type State struct {
	Counts
	Up      bool
	Program uint32 // of XDP, 0 for none
}

// State looks at the interface. The error matches ErrNetwork where it is gone.
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

// Counts reads the interface's counters. The error is that of State.
func (i *Interface) Counts() (Counts, error) {
	s, err := i.State()
	return s.Counts, err
}

// XDP says which program is attached to the interface, 0 for none. The error is that of State.
func (i *Interface) XDP() (program uint32, err error) {
	s, err := i.State()
	return s.Program, err
}

// Do runs f in the namespace of the interface.
func (i *Interface) Do(f func() error) error {
	if i.Node == nil {
		return f()
	}
	return i.Node.Do(f)
}
