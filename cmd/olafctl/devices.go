package main

import "github.com/olafctl/olaf/experiments/testbed"

// devices are what this program opens; the first is the default.
func devices() testbed.Devices {
	return testbed.Devices{testbed.Twin(), testbed.PCI(), testbed.Agent(), testbed.Playback()}
}
