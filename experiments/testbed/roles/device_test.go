package roles

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
)

// TestClockBounds checks the use of a measured offset within the file's bound: by echo, larger bounds withhold ages; by
// PTP, the file's bound counts unless the exchanges contradict it.
func TestClockBounds(t *testing.T) {
	measured := testbed.Offset{AtNS: 7, OffsetNS: -5_000, BoundNS: 20_000}
	for name, c := range map[string]struct {
		bound  clockBound
		use    testbed.Offset
		beyond string
		fails  bool
	}{
		"any":                    {clockBound{}, measured, "", false},
		"echo within":            {clockBound{ns: 20_000}, measured, "", false},
		"echo beyond":            {clockBound{ns: 19_999}, measured, "compared within 20µs, and the testbed's file allows 19.999µs", false},
		"ptp":                    {clockBound{true, 200}, testbed.Offset{AtNS: 7, BoundNS: 200}, "", false},
		"ptp that is not so":     {clockBound{true, 200}, measured, "", true},
		"ptp that is barely not": {clockBound{true, 4_999}, measured, "", true},
		"ptp that may be so":     {clockBound{true, 5_000}, testbed.Offset{AtNS: 7, BoundNS: 5_000}, "", false},
	} {
		o := measured
		if name != "ptp" && c.bound.stated {
			o.BoundNS = 0
		}
		use, beyond, err := c.bound.apply(o)
		if c.fails != (err != nil) || err != nil && !errors.Is(err, errClocks) {
			t.Errorf("%s: %v, want an error: %t", name, err, c.fails)
		}
		if err == nil && (use != c.use || !strings.Contains(beyond, c.beyond) || (beyond == "") != (c.beyond == "")) {
			t.Errorf("%s: %+v, withheld because %q; want %+v and %q", name, use, beyond, c.use, c.beyond)
		}
	}
}

// TestFilesWithoutRolesAreRejected checks that files of nodes, and names of testbeds that are not up, are rejected with
// advice.
func TestFilesWithoutRolesAreRejected(t *testing.T) {
	nodes, err := filepath.Abs("../lab/examples/tree.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := FindPlan(nodes); !errors.Is(err, lab.ErrFile) || !strings.Contains(err.Error(), "describes nodes, not roles; use it as -d xdp:") {
		t.Errorf("a file of nodes: %v", err)
	}
	if _, err := FindPlan("./nowhere.yaml"); !errors.Is(err, lab.ErrFile) {
		t.Errorf("no file: %v", err)
	}
	if _, err := FindPlan("a-name-nobody-uses"); !errors.Is(err, lab.ErrAbsent) || !strings.Contains(err.Error(), "'olafctl testbed up FILE'") {
		t.Errorf("a name of none that is up: %v", err)
	}
}
