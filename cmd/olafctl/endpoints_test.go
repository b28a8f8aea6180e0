package main

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// TestHomed ends what waits at an address that no interface has, with a line that says so and what to do, and leaves the rest alone.
func TestHomed(t *testing.T) {
	ctx, leave := homed(t.Context(), netip.MustParseAddrPort("192.0.2.1:20300"), time.Millisecond) // of a block that nobody has
	defer leave()
	<-ctx.Done()
	err := late(ctx, nil)
	if !errors.Is(err, endpoints.ErrOffline) || !strings.Contains(err.Error(), "no interface has the address 192.0.2.1; is the testbed still up") {
		t.Error(err)
	}
	for _, here := range []string{"127.0.0.1:20300", "127.7.7.7:20300", "0.0.0.0:20300"} {
		ctx, leave := homed(t.Context(), netip.MustParseAddrPort(here), time.Nanosecond)
		if ctx.Err() != nil {
			t.Errorf("%s is no home: %v", here, context.Cause(ctx))
		}
		leave()
	}
	if gone(netip.MustParseAddr("127.0.0.1")) || !gone(netip.MustParseAddr("192.0.2.1")) {
		t.Error("the loopback interface has lost its address, or has got another one")
	}
	if err := late(t.Context(), nil); err != nil {
		t.Errorf("who was done: %v", err)
	}
	if err := late(t.Context(), endpoints.ErrStalled); !errors.Is(err, endpoints.ErrStalled) || !strings.Contains(err.Error(), "after one of them was started anew all workers must be") {
		t.Error(err)
	}
}
