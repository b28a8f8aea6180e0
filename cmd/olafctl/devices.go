package main

import (
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/roles"
)

// listDevices returns the devices that this program can open, with the switch programs of the given systems. The first
// device is the default.
func listDevices(systems system.Set) testbed.Devices {
	all, open := systems.Programs(), systems.Open().Programs()
	return testbed.Devices{
		testbed.TwinDevice(all...), testbed.CardDevice(), testbed.KernelDevice(), testbed.HostDevice(all...), testbed.NICDevice(),
		testbed.AgentDevice(open...), testbed.SSHDevice(open...),
		testbed.RTLDevice(), testbed.PlaybackDevice(), roles.NewDevice(open...),
	}
}
