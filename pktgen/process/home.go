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

// LookEvery is the default interval at which a host checks whether it still has its address.
const LookEvery = time.Second

// Homed returns a context that ends with ErrOffline when no interface has the host's address any longer. Sockets do not
// report this until something is sent. Homed checks at the interval every until end is called. If the interfaces cannot
// be listed, the context does not end.
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

// watch cancels a context when a host has lost the address home.
func watch(ctx context.Context, end context.CancelCauseFunc, home netip.Addr, every time.Duration, look func() ([]net.Addr, error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if has, err := look(); err == nil && !hasAddress(has, home) {
				end(fmt.Errorf("%w: no interface has the address %v", ErrOffline, home))
			}
		}
	}
}

// hasAddress reports whether a is one of the interface addresses in has.
func hasAddress(has []net.Addr, a netip.Addr) bool {
	return slices.ContainsFunc(has, func(one net.Addr) bool {
		p, err := netip.ParsePrefix(one.String())
		return err == nil && p.Addr() == a
	})
}

// wholeLanes divides the number of lanes in every frame. It is a power of two that also divides MaxOpenLanes.
const wholeLanes = 32

// MostLanes returns the maximum number of lanes in a frame on a link with the given MTU. It is at least one.
func MostLanes(mtu int) int {
	const ethernet = 14 // the Ethernet header is not part of the MTU
	const header = olaf.HeaderBytes + olaf.AckStatusBytes - ethernet
	return min(max((mtu-header)/olaf.LaneBytes&^(wholeLanes-1), 1), MaxOpenLanes)
}

// LinkLanes returns MostLanes for the interface that has the address own. found is false if there is none.
func LinkLanes(own netip.Addr) (lanes int, found bool) {
	links, err := net.Interfaces()
	if err != nil {
		return 0, false
	}
	for _, link := range links {
		if has, err := link.Addrs(); err == nil && hasAddress(has, own) {
			return MostLanes(link.MTU), true
		}
	}
	return 0, false
}
