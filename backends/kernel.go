package backends

import (
	"context"
	"fmt"
	"strings"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/program"
)

// KernelDevice returns the row of the device table for this machine's Linux kernel as the switch. XDP programs process
// the packets between workers and a server in namespaces.
func KernelDevice() testbed.Device {
	return testbed.LocalDevice(testbed.Device{
		Prefix: "xdp:", Name: "[generic]",
		Abilities: testbed.HasTables | testbed.LogsArrivals | testbed.HasHosts | testbed.AddsModels | testbed.BenchesModels |
			testbed.Records | testbed.ShowsEnds,
		Guarded: true,
		NotCard: "its server captures in its own namespace", Named: kernelNamed,
		Variant: betweenDevice,
	}, openKernel)
}

// kernelModes maps the text after xdp: in an address to the hook for the programs.
var kernelModes = map[string]string{"": "native", "native": "native", "generic": "generic"}

// kernelNamed rejects an invalid mode after xdp: in an address.
func kernelNamed(name string) error {
	if _, there := kernelModes[name]; there {
		return nil
	}
	if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		return fmt.Errorf("%w for %q: a testbed file is for 'olafctl bench -d xdp:%s' and 'olafctl testbed up'; use "+
			"only xdp: here", testbed.ErrBackend, "xdp:"+name, name)
	}
	return fmt.Errorf("%w for %q: write xdp:, or xdp:%s if a driver does not support XDP", testbed.ErrBackend,
		"xdp:"+name,
		"generic")
}

// HostDevice returns the row of the device table for this process's engine as the switch. It needs no right to load
// programs, but is never used as a fallback. Hosts can run in a closed loop with some switch programs, which also run
// in this process.
func HostDevice(built ...program.Description) testbed.Device {
	return testbed.LocalDevice(testbed.Device{
		Prefix: "host:",
		Abilities: testbed.HasTables | testbed.LogsArrivals | testbed.HasHosts | testbed.Records | testbed.ShowsEnds |
			testbed.ClosesLoop | testbed.TakesPrograms | testbed.BenchesModels | testbed.AnswersUpdates,
		Guarded: true, Programs: built,
		NotCard: "its server captures in its own namespace",
	}, func(_ context.Context, _ string, o testbed.OpenOptions) (*testbed.Parts, error) {
		return openHost(built, o)
	})
}
