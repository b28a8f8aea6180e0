package main

import (
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/program/programs"
)

// devices are what this program opens; the first is the default.
func devices() testbed.Devices {
	return testbed.Devices{
		testbed.Twin(programs.Built()...), testbed.PCI(), testbed.Kernel(), testbed.Host(programs.Built()...), testbed.Agent(programs.Open()...), testbed.RTL(), testbed.Playback(),
	}
}
