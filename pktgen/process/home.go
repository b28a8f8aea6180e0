package process

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// LookEvery is how often a host looks whether it still has its address, if nothing else is wanted.
const LookEvery = time.Second

// Homed is a context that ends with ErrOffline when no interface has a host's own address any more, which its socket does not tell as long
// as nothing is sent. It looks every so often until it has ended, for which whoever asked calls end. Where nobody can tell it goes on.
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

// watch ends a context when a host has lost its address.
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

// among says whether an address is one of some interfaces'.
func among(has []net.Addr, a netip.Addr) bool {
	return slices.ContainsFunc(has, func(one net.Addr) bool {
		p, err := netip.ParsePrefix(one.String())
		return err == nil && p.Addr() == a
	})
}
