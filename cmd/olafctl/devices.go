package main

import (
	"github.com/olafctl/olaf/backends"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/roles"
	"github.com/olafctl/olaf/fpga/pcie"
)

// listDevices returns the devices that this program can open, with the cards on a bus and the switch programs of the
// given systems. The first device is the default.
func listDevices(systems system.Set, bus *pcie.Bus) testbed.Devices {
	all, open := systems.Programs(), systems.Open().Programs()
	return testbed.Devices{
		testbed.TwinDevice(all...), backends.CardDevice(bus), backends.KernelDevice(), backends.HostDevice(all...), backends.NICDevice(),
		testbed.AgentDevice(open...), testbed.SSHDevice(open...),
		backends.RTLDevice(), backends.PlaybackDevice(), roles.NewDevice(open...), roles.HeldDevice(open...),
	}
}
