package iswitch

import (
	"net/netip"
	"testing"

	"github.com/olafctl/olaf/fpga/program/programtest"
)

func TestVectors(t *testing.T) { programtest.RunVectors(t, Describe(), 27) }

func TestSmallestAddress(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.10"), netip.MustParseAddr("10.0.1.1")
	for _, row := range []struct {
		switches []netip.Addr
		want     int
	}{{[]netip.Addr{a}, 0}, {[]netip.Addr{a, b}, 0}, {[]netip.Addr{c, b, a}, 2}, {[]netip.Addr{b, a, c}, 1}} {
		if have := smallestAddress(row.switches); have != row.want {
			t.Errorf("of %v switch %d is above, want %d", row.switches, have, row.want)
		}
	}
}
