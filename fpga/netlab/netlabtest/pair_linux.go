// Package netlabtest provides virtual networks for tests.
package netlabtest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/olafctl/olaf/fpga/netlab"
)

// Pair consists of two hosts in separate networks and a cable between them.
type Pair struct {
	Near, Far *netlab.Node
	cable     *netlab.Cable
}

// Near is the address of the near host, as seen from the far host.
const Near = "10.19.0.1"

// NewPair creates a pair of hosts that exists until the test ends. It skips the test if the necessary rights are
// missing.
func NewPair(t testing.TB) *Pair {
	t.Helper()
	if err := netlab.CheckRights(netlab.NamespaceRights...); err != nil {
		t.Skip(err)
	}
	lab, err := netlab.New()
	mustNil(t, err)
	t.Cleanup(func() { mustNil(t, lab.Close()) })
	p := new(Pair)
	p.Near, err = lab.Node("near")
	mustNil(t, err)
	p.Far, err = lab.Node("far")
	mustNil(t, err)
	p.cable, err = netlab.ConnectNodes(netlab.End{Node: p.Near, Name: "far"}, netlab.End{Node: p.Far, Name: "near"}, 1500)
	mustNil(t, err)
	mustNil(t, p.cable.A.Address(netip.MustParsePrefix(Near+"/24")))
	mustNil(t, p.cable.B.Address(netip.MustParsePrefix("10.19.0.2/24")))
	return p
}

// Cut interrupts the cable for the duration dead.
func (p *Pair) Cut(t testing.TB, dead time.Duration) {
	t.Helper()
	end := p.cable.B
	link := func(set func(netlink.Link) error) {
		mustNil(t, end.Do(func() error {
			l, err := netlink.LinkByIndex(end.Index)
			if err != nil {
				return err
			}
			return set(l)
		}))
	}
	link(netlink.LinkSetDown)
	time.Sleep(dead) // the cable must stay down for this long
	link(netlink.LinkSetUp)
}

func mustNil(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
