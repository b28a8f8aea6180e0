package backends

import (
	"context"
	"fmt"
	"strings"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/rtl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// RTLDevice returns the row of the device table for the card's logic, simulated with Verilator. Its size can be set in
// the address. A testbed consists of any number of simulator processes that share the tables of one P4Runtime agent.
func RTLDevice() testbed.Device {
	return testbed.LocalDevice(testbed.Device{
		Prefix: "rtl:",
		Name:   "[ports=1]",
		Abilities: testbed.HasTables | testbed.VirtualTime | testbed.Repeats | testbed.Records | testbed.Copies |
			testbed.KeepsLogicTime,
		NotCard: "the simulation captures at the parameter server itself, and has its own tables",
	}, openRTL)
}

// openRTL starts the simulator processes one after the other, because the first builds the program for the others.
func openRTL(ctx context.Context, name string, o testbed.OpenOptions) (*testbed.Parts, error) {
	build, err := rtl.ParseBuild(name)
	if err != nil {
		return nil, err
	}
	if o.ReadPorts != 0 {
		if strings.Contains(name, "ports=") && build.Ports != o.ReadPorts {
			return nil, fmt.Errorf("%w: rtl:%s, but %d read ports were requested; omit one of the two", rtl.ErrSize,
				name, o.ReadPorts)
		}
		build.Ports = o.ReadPorts
	}
	backend := new(agent.Embedded)
	parts := &testbed.Parts{Tables: backend, Profile: p4.Twin()}
	for range max(o.Cards, 1) {
		c, err := rtl.Open(ctx, rtl.Config{Build: build, Tables: testbed.TablesOf(backend), Building: o.Building})
		if err != nil {
			return parts, err
		}
		c.Record(o.Wire)
		parts.Cards = append(parts.Cards, testbed.Card{Device: c, Tap: c})
	}
	return parts, nil
}
