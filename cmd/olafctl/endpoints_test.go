package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// TestLate says why a worker or a server stopped before it should, and what to do.
func TestLate(t *testing.T) {
	if err := late(t.Context(), nil); err != nil {
		t.Errorf("who was done: %v", err)
	}
	gone, end := context.WithCancelCause(t.Context())
	end(fmt.Errorf("%w: no interface has the address 192.0.2.1", endpoints.ErrOffline))
	for _, c := range []struct {
		ctx       context.Context
		err, kind error
		says      string
	}{
		{gone, nil, endpoints.ErrOffline, "no interface has the address 192.0.2.1; is the testbed still up"},
		{t.Context(), endpoints.ErrStalled, endpoints.ErrStalled, "after one of them was started anew all workers must be"},
	} {
		if err := late(c.ctx, c.err); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Error(err)
		}
	}
}
