package realtime

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/fpgatest"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
)

// backends are those that the tests open. What they send at once is no rate that anybody claims to have measured.
var backends = []Backend{atAnyRate(KernelBackend(xdp.Native)), atAnyRate(KernelBackend(xdp.Generic))}

func atAnyRate(b Backend) Backend {
	b.AnyRate = true
	return b
}

// open opens a card for a test, which is skipped by name where rights are missing.
func open(t testing.TB, b Backend) *Card {
	t.Helper()
	c, err := Open(b, Hosts{})
	if errors.Is(err, netlab.ErrRights) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestCards asks of each kind of card what is asked of every one, and what only these can.
func TestCards(t *testing.T) {
	for _, b := range backends {
		t.Run(b.Address, func(t *testing.T) {
			c := open(t, b)
			t.Logf("carries %d frames/s", c.Carry())
			t.Run("whole frames", func(t *testing.T) { wholeFrames(t, c) }) // first: what opening left behind is to be seen
			t.Run("conformance", func(t *testing.T) { fpgatest.Run(t, func(*testing.T) fpga.Device { return c }) })
			t.Run("runs", func(t *testing.T) { runs(t, c) })
			t.Run("inspect", func(t *testing.T) { inspect(t, c) })
		})
	}
}
