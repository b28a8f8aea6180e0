package testbed

import (
	"context"
	"fmt"
	"strings"

	"github.com/olafctl/olaf/fpga/program"
)

// Kernel is the Linux kernel of this machine as the switch: XDP programs between workers and a server in namespaces.
func Kernel() Device {
	return Local(Device{
		Prefix: "xdp:", Name: "[generic]", Abilities: HasTables | LogsArrivals | HasHosts | AddsModels | Records | ShowsEnds, Guarded: true,
		NotCard: "its server captures in its own namespace", Named: kernelNamed,
	}, openKernel)
}

// kernelModes are where in the kernel programs meet frames, by what follows xdp:.
var kernelModes = map[string]string{"": "native", "native": "native", "generic": "generic"}

// kernelNamed refuses what follows xdp: and is no mode.
func kernelNamed(name string) error {
	if _, there := kernelModes[name]; there {
		return nil
	}
	if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		return fmt.Errorf("%w for %q: a testbed file is for 'olafctl bench -d xdp:%s' and 'olafctl testbed up'; here it is xdp: alone", ErrBackend, "xdp:"+name, name)
	}
	return fmt.Errorf("%w for %q: write xdp:, or xdp:%s where a driver has no XDP hook", ErrBackend, "xdp:"+name, "generic")
}

// Host is the same with the engine of this process as the switch, which needs no right to load programs. Nothing falls back to it:
// it is asked for by its name. Hosts can wait for what some switch programs send, which run in this process too.
func Host(built ...program.Description) Device {
	return Local(Device{
		Prefix: "host:", Abilities: HasTables | LogsArrivals | HasHosts | Records | ShowsEnds | ClosesLoop | TakesPrograms, Guarded: true, Programs: built,
		NotCard: "its server captures in its own namespace",
	}, func(_ context.Context, _ string, o OpenOptions) (*Parts, error) { return openHost(built, o) })
}
