package testbed

import (
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf/fpga/regmap"
)

// TestHostFaultsHaveRemedies checks that each fault of a host's device, interface or disk is reported on one line with
// its remedy.
func TestHostFaultsHaveRemedies(t *testing.T) {
	_, missing := FindInterface("none0", 0)
	card := AboutRequest{Device: "pci:0000:3b:00.0"}
	sender := AboutRequest{Device: "pci:0000:3b:00.0", Generator: true}
	for want, err := range map[string]error{
		"interface eth0 is down; run 'sudo ip link set eth0 up'":                                  (&NIC{Name: "eth0", MTU: 1500}).check(50),
		"interface eth0 has an MTU of 40, but frames need 50; run 'sudo ip link set eth0 mtu 50'": (&NIC{Name: "eth0", MTU: 40, Up: true}).check(50),
		"there is no interface none0; there are ":                                                 missing,
		"/tmp has room for 3 MB, but a run's files take up to 64 MB; free some space":             checkRoom("/tmp", 3<<20),
		"device refused: pci:0000:3b:00.0 was built without a queue (common.role is 0x2)":         card.checkRole(regmap.CommonRoleGenerator),
		"device refused: pci:0000:3b:00.0 was built without a generator (common.role is 0x1)":     sender.checkRole(regmap.CommonRoleAccelerator),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line with %q", err, want)
		}
	}
	if err := errors.Join((&NIC{MTU: 50, Up: true}).check(50), checkRoom("/tmp", leastFree), card.checkRole(regmap.CommonRoleAccelerator)); err != nil {
		t.Errorf("a host that is ready: %v", err)
	}
}
