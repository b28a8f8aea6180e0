package rtl

import (
	"testing"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/fpgatest"
)

// TestConformance runs the conformance suite of all cards on one child, which each case resets.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	c := openBench(t, Build{})
	fpgatest.Run(t, func(*testing.T) fpga.Device { return c.Card })
}
