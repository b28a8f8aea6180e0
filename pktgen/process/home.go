package process

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/olafctl/olaf"
)

// LookEvery is the default interval at which a host checks that it still has its address.
const LookEvery = time.Second

// Homed returns a context that ends with ErrOffline when no interface has the host's address any more, which its socket
// does not report until something is sent. It checks at the interval every until the returned end is called. It does
// not end if interfaces cannot be listed.
func Homed(ctx context.Context, own netip.AddrPort, every time.Duration) (homed context.Context, end func()) {
	return homedBy(ctx, own, every, net.InterfaceAddrs)
}

func homedBy(ctx context.Context, own netip.AddrPort, every time.Duration, look func() ([]net.Addr, error)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if home := own.Addr(); !home.IsLoopback() && !home.IsUnspecified() {
		go watch(ctx, cancel, home, every, look)
	}
	return ctx, func() { cancel(nil) }
}

// watch cancels a context when a host has lost its address.
func watch(ctx context.Context, end context.CancelCauseFunc, home netip.Addr, every time.Duration, look func() ([]net.Addr, error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if has, err := look(); err == nil && !among(has, home) {
				end(fmt.Errorf("%w: no interface has the address %v", ErrOffline, home))
			}
		}
	}
}

// among reports whether an address belongs to one of some interfaces.
func among(has []net.Addr, a netip.Addr) bool {
	return slices.ContainsFunc(has, func(one net.Addr) bool {
		p, err := netip.ParsePrefix(one.String())
		return err == nil && p.Addr() == a
	})
}

// wholeLanes is the number of lanes that a frame's length is a multiple of: a power of two that divides MaxOpenLanes.
const wholeLanes = 32

// MostLanes returns how many lanes a frame can have that a link with this MTU carries, at least one.
func MostLanes(mtu int) int {
	const ethernet = 14 // not in the MTU
	const header = olaf.HeaderBytes + olaf.AckStatusBytes - ethernet
	return min(max((mtu-header)/olaf.LaneBytes&^(wholeLanes-1), 1), MaxOpenLanes)
}

// LinkLanes returns MostLanes for the interface with a host's address; false if there is none.
func LinkLanes(own netip.Addr) (lanes int, found bool) {
	links, err := net.Interfaces()
	if err != nil {
		return 0, false
	}
	for _, link := range links {
		if has, err := link.Addrs(); err == nil && among(has, own) {
			return MostLanes(link.MTU), true
		}
	}
	return 0, false
}
