//go:build !linux

package testbed

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// openKernel returns an error, because it needs a Linux kernel.
func openKernel(context.Context, string, OpenOptions) (*Parts, error) {
	return nil, fmt.Errorf("%w here: the switch is the Linux kernel, and this is another one", ErrBackend)
}

// openHost returns an error, because it needs network namespaces.
func openHost([]program.Description, OpenOptions) (*Parts, error) {
	return nil, fmt.Errorf("%w here: workers and server are in network namespaces of Linux", ErrBackend)
}

// openBetween returns an error, because it needs a Linux kernel.
func openBetween(string) (fpga.Device, error) {
	return nil, fmt.Errorf("%w here: the queue is in the Linux kernel, and this is another one", ErrBackend)
}

// openNIC returns an error, because it needs a Linux kernel.
func openNIC(string) (fpga.Device, error) {
	return nil, fmt.Errorf("%w here: the generator needs packet sockets of Linux", ErrBackend)
}

// tablesBetween is never called, because openBetween fails.
func tablesBetween(fpga.Device) (agent.Backend, p4.Profile) { return nil, p4.Profile{} }
