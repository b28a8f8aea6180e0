package realtime

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/fpgatest"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
)

// backends lists the backends that the tests open. The check of offered rates is off, because tests send at rates
// beyond the measured ones.
var backends = []dataplane.Backend{atAnyRate(xdp.NewBackend(dataplane.Native)), atAnyRate(xdp.NewBackend(dataplane.Generic))}

func atAnyRate(b dataplane.Backend) dataplane.Backend {
	b.AnyRate = true
	return b
}

// open opens a card for a test. If rights are missing, it skips the test and names them.
func open(t testing.TB, b dataplane.Backend) *Card {
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

// TestCards runs the conformance tests of all cards, and the tests of these cards, on each kind of card.
func TestCards(t *testing.T) {
	for _, b := range backends {
		t.Run(b.Address, func(t *testing.T) {
			c := open(t, b)
			t.Logf("carries %d frames/s", c.Carry())
			t.Run("whole frames", func(t *testing.T) { wholeFrames(t, c) }) // first, because it looks for leftovers of opening the card
			t.Run("conformance", func(t *testing.T) { fpgatest.Run(t, func(*testing.T) fpga.Device { return c }) })
			t.Run("runs", func(t *testing.T) { runs(t, c) })
			t.Run("inspect", func(t *testing.T) { inspect(t, c) })
		})
	}
}
