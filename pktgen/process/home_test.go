package process

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestLostAddressCancelsWait checks that the wait at an address that no interface has is cancelled with a message, and
// that no other wait is.
func TestLostAddressCancelsWait(t *testing.T) {
	ctx, end := Homed(t.Context(), netip.MustParseAddrPort("192.0.2.1:20300"), time.Millisecond) // 192.0.2.0/24 is never assigned
	defer end()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, ErrOffline) || err.Error() != ErrOffline.Error()+": no interface has the address 192.0.2.1" {
		t.Error(err)
	}
	for _, here := range []string{"127.0.0.1:20300", "127.7.7.7:20300", "0.0.0.0:20300"} {
		ctx, end := Homed(t.Context(), netip.MustParseAddrPort(here), time.Nanosecond)
		if ctx.Err() != nil {
			t.Errorf("%s is no home: %v", here, context.Cause(ctx))
		}
		end()
	}
}

// TestWaitEndsWhenAddressIsGone checks that the wait continues while an interface has the address or if interfaces
// cannot be listed, and ends when the address is gone.
func TestWaitEndsWhenAddressIsGone(t *testing.T) {
	home := &net.IPNet{IP: net.IPv4(192, 0, 2, 1), Mask: net.CIDRMask(24, 32)}
	other := &net.IPNet{IP: net.IPv4(192, 0, 2, 2), Mask: net.CIDRMask(24, 32)}
	broken := errors.New("nobody can tell")
	looks := []struct {
		has []net.Addr
		err error
	}{{has: []net.Addr{other, home}}, {err: broken}, {has: []net.Addr{home}}, {has: []net.Addr{other}}}
	looked := make(chan int, len(looks))
	n := 0
	ctx, end := homedBy(t.Context(), netip.MustParseAddrPort("192.0.2.1:20300"), time.Millisecond, func() ([]net.Addr, error) {
		l := looks[min(n, len(looks)-1)]
		if n++; n <= len(looks) {
			looked <- n
		}
		return l.has, l.err
	})
	defer end()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, ErrOffline) || len(looked) != len(looks) {
		t.Errorf("ended after %d looks of %d: %v", len(looked), len(looks), err)
	}
}

// TestEndIsNotALostAddress checks that a call of the returned function end is not reported as a lost address.
func TestEndIsNotALostAddress(t *testing.T) {
	ctx, end := Homed(t.Context(), netip.MustParseAddrPort("192.0.2.1:20300"), time.Hour)
	end()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrOffline) {
		t.Error(err)
	}
}

// TestMostLanes checks the number of lanes for different MTUs: whole groups of 32, with room for an ACK's status, up to
// the kernel's limit.
func TestMostLanes(t *testing.T) {
	for mtu, want := range map[int]int{68: 1, 576: 128, 1500: 352, 3000: 704, 9000: 704} {
		if got := MostLanes(mtu); got != want {
			t.Errorf("an MTU of %d allows %d lanes, want %d", mtu, got, want)
		}
	}
}
