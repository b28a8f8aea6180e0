package backends

import (
	"testing"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/pcie"
)

// TestRowsAreWhole checks that a row's abilities match its functions.
func TestRowsAreWhole(t *testing.T) {
	rows := testbed.Devices{CardDevice(new(pcie.Bus)), KernelDevice(), *betweenDevice("in,out"), HostDevice(), NICDevice(), RTLDevice(),
		PlaybackDevice()}
	for _, d := range rows {
		if d.Registers == nil || d.Lend == nil || d.Can(testbed.HasTables) != (d.Testbed != nil) {
			t.Errorf("%s: %+v", d.Form(), d)
		}
	}
}
